"""What a client on a socket sees of each fault."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from kubeloop.sandbox import Sandbox

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WATCH = f"{CONFIG_MAPS}?watch=1&resourceVersion=1&timeoutSeconds=60"


@pytest.fixture
def served() -> Iterator[Sandbox]:
    with Sandbox(http=True) as running:
        yield running


@pytest.fixture
def connection(served: Sandbox) -> Iterator[http.client.HTTPConnection]:
    host, port = served.url.removeprefix("http://").split(":")
    made = http.client.HTTPConnection(host, int(port), timeout=5)
    yield made
    made.close()


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def ask(connection: http.client.HTTPConnection, target: str = CONFIG_MAPS) -> http.client.HTTPResponse:
    connection.request("GET", target)
    return connection.getresponse()


def test_a_status_with_retry_after(served: Sandbox, connection: http.client.HTTPConnection) -> None:
    served.faults.add(status=429, retry_after=3, count=1)
    answer = ask(connection)
    assert (answer.status, answer.getheader("Retry-After")) == (429, "3")
    assert json.loads(answer.read())["details"] == {"retryAfterSeconds": 3}
    assert ask(connection).status == 200


@pytest.mark.parametrize("effect", [{"reset": True}, {"refuse": True}, {"lose_answer": True}])
def test_a_connection_is_reset(
    served: Sandbox, connection: http.client.HTTPConnection, effect: dict[str, Any]
) -> None:
    served.faults.add(**effect)
    with pytest.raises(ConnectionResetError):
        ask(connection)


def test_a_half_open_connection_is_only_ended_by_the_client(
    served: Sandbox, connection: http.client.HTTPConnection
) -> None:
    served.faults.add(silence=True)
    connection.timeout = 0.3
    with pytest.raises(TimeoutError):
        ask(connection)


def test_a_body_breaks_off(served: Sandbox, connection: http.client.HTTPConnection) -> None:
    served.faults.add(truncate=10)
    answer = ask(connection)
    assert int(answer.getheader("Content-Length") or 0) > 10
    with pytest.raises(http.client.IncompleteRead) as caught:
        answer.read()
    assert len(caught.value.partial) == 10


def test_a_body_comes_byte_by_byte(served: Sandbox, connection: http.client.HTTPConnection) -> None:
    served.faults.add(pieces=1)
    assert json.loads(ask(connection).read())["kind"] == "ConfigMapList"


def test_a_watch_ends_is_reset_or_breaks_off(served: Sandbox, connection: http.client.HTTPConnection) -> None:
    for name in ("a", "b", "c"):
        served.create(config_map(name))
    served.faults.add(verb="watch", end_after=2, count=1)
    assert len(ask(connection, WATCH).read().splitlines()) == 2
    served.faults.add(verb="watch", truncate=30, count=1)
    with pytest.raises(http.client.IncompleteRead):
        ask(connection, WATCH).read()
    connection.close()
    served.faults.add(verb="watch", reset_after=1)
    answer = ask(connection, WATCH)
    assert json.loads(answer.readline())["object"]["metadata"]["name"] == "a"
    with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
        answer.read()


def test_a_silent_watch_stays_open(served: Sandbox, connection: http.client.HTTPConnection) -> None:
    served.faults.add(verb="watch", silence_after=1)
    connection.timeout = 0.3
    answer = ask(connection, WATCH.replace("Seconds=60", "Seconds=1"))
    served.create(config_map("a"))
    served.create(config_map("b"))
    assert json.loads(answer.readline())["type"] == "ADDED"
    with pytest.raises(TimeoutError):
        answer.readline()
    assert isinstance(connection.sock, socket.socket)
