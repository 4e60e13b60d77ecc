"""Exec plugins: what they get, what they may answer, and how they fail."""

from __future__ import annotations

import json
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kubeloop.client.errors import ConfigError
from kubeloop.client.exec_plugin import ExecPlugin, exec_credentials
from kubeloop.clock import FakeClock

V1 = "client.authentication.k8s.io/v1"
START = datetime(2026, 1, 1, tzinfo=UTC)

# A `#!` line cannot hold a path with blanks: the shell starts Python on the same file, which reads a string.
SHEBANG = f'#!/bin/sh\n"exec" "{sys.executable}" "$0" "$@"\n'


@pytest.fixture
def plugin(tmp_path: Path) -> Any:
    """Makes a plugin that answers with a status and notes each run and what it was told."""
    log = tmp_path / "runs"

    def make(status: Any, *, code: int = 0, version: str = V1, cluster: Any = None, **spec: Any) -> Any:
        answer = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
        script = tmp_path / "plugin"
        script.write_text(
            f"{SHEBANG}import os, sys\n"
            f"open({str(log)!r}, 'a').write(os.environ['KUBERNETES_EXEC_INFO'] + '\\n')\n"
            f"print({answer!r})\nprint('it went wrong', file=sys.stderr)\nsys.exit({code})\n"
        )
        script.chmod(0o755)
        return ExecPlugin(
            {"command": "./plugin", "apiVersion": V1, **spec},
            cluster or {"server": "https://x"},
            base=str(tmp_path),
            clock=FakeClock(START),
        )

    make.runs = lambda: [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []  # type: ignore[attr-defined]
    return make


def test_a_token_without_expiry_is_used_until_it_is_refused(plugin: Any) -> None:
    """tomplus/kubernetes_asyncio#257"""
    credentials = exec_credentials(plugin({"token": "t\n"}))
    for _ in range(3):
        assert credentials.headers() == {"Authorization": "Bearer t"}
    assert len(plugin.runs()) == 1
    assert not credentials.renew(credentials.headers())
    assert len(plugin.runs()) == 2


def test_a_token_is_renewed_before_it_expires(plugin: Any) -> None:
    expiry = (START + timedelta(minutes=10)).isoformat().replace("+00:00", "Z")
    fresh = plugin({"token": "t", "expirationTimestamp": expiry}).read()
    assert fresh.ttl == 540


def test_a_short_lived_token_does_not_run_the_plugin_for_each_request(plugin: Any) -> None:
    """python-peers 2.4: 5 of 5"""
    expiry = (START + timedelta(seconds=40)).isoformat()
    assert plugin({"token": "t", "expirationTimestamp": expiry}).read().ttl == 20


def test_eight_threads_run_it_once(plugin: Any) -> None:
    credentials = exec_credentials(plugin({"token": "t"}))
    threads = [threading.Thread(target=credentials.headers) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(plugin.runs()) == 1


def test_it_is_told_about_the_cluster_if_it_asks(plugin: Any, tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("CA")
    cluster = {
        "server": "https://x",
        "certificate-authority": str(tmp_path / "ca"),
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}],
    }
    plugin({"token": "t"}, cluster=cluster, provideClusterInfo=True).read()
    plugin({"token": "t"}).read()
    told, not_told = plugin.runs()
    assert told["spec"]["cluster"] == {
        "server": "https://x",
        "certificate-authority-data": "Q0E=",
        "config": {"audience": "a"},
    }
    assert not_told["spec"] == {"interactive": False}


def test_a_certificate_is_kept_private_and_changes_with_each_renewal(plugin: Any) -> None:
    credentials = exec_credentials(plugin({"clientCertificateData": "CERT", "clientKeyData": "KEY"}))
    pair = credentials.client_certificate()
    assert pair is not None
    assert [Path(path).read_text() for path in pair] == ["CERT", "KEY"]
    assert Path(pair[1]).stat().st_mode & 0o077 == 0
    assert credentials.headers() == {}
    assert credentials.renew({})
    assert credentials.client_certificate() != pair


@pytest.mark.parametrize(
    ("status", "options", "complaint"),
    [
        ({"token": "t"}, {"code": 3}, "failed with code 3: it went wrong"),
        ({}, {}, "neither token nor certificate"),
        ({"clientCertificateData": "x"}, {}, "certificate without key"),
        ({"token": "t", "expirationTimestamp": "2025-01-01T00:00:00Z"}, {}, "has expired"),
        ({"token": "t", "expirationTimestamp": "soon"}, {}, "bad expirationTimestamp"),
        ({"token": "t"}, {"version": "other/v1"}, "answered as 'other/v1'"),
        ("text", {}, "answered as"),
        ({"token": "two words"}, {}, "characters that no token has"),
    ],
)
def test_it_fails_closed(plugin: Any, status: Any, options: Any, complaint: str) -> None:
    """kubernetes-client/python#2354: logged, then 403 as anonymous"""
    credentials = exec_credentials(plugin(status, **options))
    with pytest.raises(ConfigError, match=complaint):
        credentials.headers()


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"command": ""}, "without command"),
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "is none of"),
        ({"interactiveMode": "Always"}, "wants a terminal"),
    ],
)
def test_a_section_that_cannot_work_is_refused_at_once(plugin: Any, spec: Any, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        plugin({}, **spec)


def test_a_missing_plugin_says_how_to_get_it(plugin: Any) -> None:
    with pytest.raises(ConfigError, match=r"no-such-plugin not found\. Install it"):
        plugin({}, command="no-such-plugin", installHint="Install it").read()


def test_its_output_is_never_shown(plugin: Any, tmp_path: Path) -> None:
    made = plugin({"token": "t"})
    (tmp_path / "plugin").write_text(f"{SHEBANG}print('secret')\n")
    with pytest.raises(ConfigError, match="did not print an ExecCredential") as caught:
        made.read()
    assert "secret" not in str(caught.value)
