"""Credentials: fresh, read once however many ask, never absent in silence."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from kubeloop.client.credentials import (
    RETRY_INTERVAL,
    TOKEN_TTL,
    CachedCredentials,
    Fresh,
    basic,
    bearer,
    fixed,
    token_file,
)
from kubeloop.client.errors import ConfigError
from kubeloop.clock import FakeClock


def test_a_token_is_stripped_and_must_be_one() -> None:
    """python-peers 2.4: a newline in the file makes an invalid header"""
    assert bearer(" abc\n") == {"Authorization": "Bearer abc"}
    for bad in ("", " \n", "a b", "a\r\nX: y", "ä"):
        with pytest.raises(ConfigError) as caught:
            bearer(bad)
        assert not bad.strip() or bad not in str(caught.value)


def test_basic_authentication() -> None:
    assert basic("me", "pässword") == {"Authorization": "Basic bWU6cMOkc3N3b3Jk"}


def test_a_token_file_is_read_anew_every_minute(tmp_path: Path) -> None:
    """jupyterhub/kubespawner, CodeRun#72: rotated service account tokens"""
    file = tmp_path / "token"
    file.write_text("one\n")
    clock = FakeClock()
    credentials = token_file(str(file), clock)
    assert credentials.headers() == {"Authorization": "Bearer one"}
    file.write_text("two\n")
    assert credentials.headers() == {"Authorization": "Bearer one"}
    clock.advance(TOKEN_TTL)
    assert credentials.headers() == {"Authorization": "Bearer two"}


def test_a_refused_token_is_read_anew_at_once(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    credentials = token_file(str(file), FakeClock())
    refused = credentials.headers()
    assert not credentials.renew(refused)
    file.write_text("two")
    assert credentials.renew(refused)
    assert credentials.renew(refused)  # another thread's refusal of the old one: no need to read again
    assert credentials.headers() == {"Authorization": "Bearer two"}


def test_a_file_that_is_missing_for_a_moment_does_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "token"
    clock = FakeClock()
    credentials = token_file(str(file), clock)
    with pytest.raises(OSError, match="token"):
        credentials.headers()
    file.write_text("one")
    clock.advance(RETRY_INTERVAL)
    assert credentials.headers() == {"Authorization": "Bearer one"}
    file.unlink()
    clock.advance(TOKEN_TTL)
    assert credentials.headers() == {"Authorization": "Bearer one"}


def test_many_threads_read_once() -> None:
    """python-peers 2.4: 8 threads ran 8 plugins"""
    calls: list[int] = []
    inside = threading.Event()

    def read() -> Fresh:
        calls.append(1)
        inside.wait(0.1)
        return Fresh({"Authorization": "x"}, 60)

    credentials = CachedCredentials(read, name="slow")
    seen: list[Any] = []
    threads = [threading.Thread(target=lambda: seen.append(credentials.headers())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    assert seen == [{"Authorization": "x"}] * 8


def test_a_failing_source_is_not_asked_once_a_request() -> None:
    calls: list[int] = []

    def read() -> Fresh:
        calls.append(1)
        raise ConfigError("down")

    clock = FakeClock()
    credentials = CachedCredentials(read, name="down", clock=clock)
    for _ in range(10):
        with pytest.raises(ConfigError, match="down"):
            credentials.headers()
    assert len(calls) == 1
    clock.advance(RETRY_INTERVAL)
    with pytest.raises(ConfigError):
        credentials.headers()
    assert len(calls) == 2


def test_a_fixed_token_is_looked_up_anew_only_when_refused() -> None:
    current = [{"Authorization": "a"}]
    credentials = fixed({"Authorization": "a"}, lambda: current[0], FakeClock())
    refused = credentials.headers()
    assert not credentials.renew(refused)
    current[0] = {"Authorization": "b"}
    assert credentials.renew(refused)
    assert credentials.headers() == {"Authorization": "b"}


def test_no_secret_is_shown() -> None:
    credentials = CachedCredentials(lambda: Fresh(bearer("secret"), 1), name="x")
    credentials.headers()
    assert "secret" not in repr(credentials)
