"""A fault looks the same through a socket and in process: tests in process prove what holds over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubeloop.client import load_config
from kubeloop.client.dialer import Urllib3Dialer
from kubeloop.client.http_transport import HttpTransport
from kubeloop.sandbox import Sandbox

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WATCH = f"{CONFIG_MAPS}?watch=1&resourceVersion=1&timeoutSeconds=5"


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Sandbox, list[Any]]]:
    """A sandbox with three objects, and both ways to it."""
    with Sandbox(http=True) as running:
        for name in ("a", "b", "c"):
            running.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
        config = load_config(str(running.kubeconfig(tmp_path / "kubeconfig")))
        over_http = HttpTransport(Urllib3Dialer(config.endpoint, config.credentials))
        yield running, [running.transport(), over_http]
        over_http.close()


def asked(transport: Any) -> object:
    """The status and length of an answer, or the kind of OSError."""
    try:
        answer = transport.request("GET", CONFIG_MAPS, headers={}, body=None, timeout=0.3)
    except TimeoutError:
        return TimeoutError
    except ConnectionError:
        return ConnectionError
    return answer.status, len(answer.body)


def watched(transport: Any) -> tuple[bytes, object]:
    """What comes of a watch, and how it ends."""
    data = b""
    stream = transport.stream("GET", WATCH, headers={}, connect_timeout=0.3, read_timeout=0.3)
    try:
        for chunk in stream.chunks():
            data += chunk
    except TimeoutError:
        return data, TimeoutError
    except ConnectionError:
        return data, ConnectionError
    finally:
        stream.close()
    return data, None


@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        ({"reset": True}, ConnectionError),
        ({"refuse": True}, ConnectionError),
        ({"lose_answer": True}, ConnectionError),
        ({"truncate": 20}, ConnectionError),
        ({"silence": True}, TimeoutError),
        ({"latency": 5}, TimeoutError),
        ({"status": 502, "body": "x" * 70}, (502, 70)),
    ],
)
def test_requests_fail_alike(
    both: tuple[Sandbox, list[Any]], effect: dict[str, Any], expected: object
) -> None:
    sandbox, transports = both
    sandbox.faults.add(**effect)
    assert [asked(transport) for transport in transports] == [expected, expected]


def test_slow_and_piecemeal_answers_are_whole_alike(both: tuple[Sandbox, list[Any]]) -> None:
    sandbox, transports = both
    sandbox.faults.add(pieces=3, latency=0.02)
    first, second = (asked(transport) for transport in transports)
    assert first == second


@pytest.mark.parametrize(
    ("effect", "lines", "end"),
    [
        ({"end_after": 2}, 2, None),
        ({"gone_after": 2}, 3, None),
        ({"reset_after": 2}, 2, ConnectionError),
        ({"silence_after": 2}, 2, TimeoutError),
        ({"truncate": 30}, 0, ConnectionError),
        ({"end_after": 3, "pieces": 5}, 3, None),
        ({"stale": 1, "end_after": 3}, 3, None),
    ],
)
def test_watches_fail_alike(
    both: tuple[Sandbox, list[Any]], effect: dict[str, Any], lines: int, end: object
) -> None:
    sandbox, transports = both
    sandbox.faults.add(verb="watch", **effect)
    found = [watched(transport) for transport in transports]
    assert [(data.count(b"\n"), how) for data, how in found] == [(lines, end), (lines, end)]
    assert found[0][0] == found[1][0]
