"""The admin endpoint of a sandbox that runs as a process of its own."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kubeloop.sandbox import Sandbox
from kubeloop.sandbox.clocks import MovableClock

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def served() -> Iterator[Sandbox]:
    with Sandbox(http=True, admin=True, clock=MovableClock()) as running:
        yield running


def ask(
    sandbox: Sandbox, method: str, target: str, body: Any = None, **headers: str
) -> tuple[int, dict[str, Any]]:
    host, port = sandbox.url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=5)
    try:
        connection.request(method, target, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def eventually(condition: Callable[[], bool]) -> bool:
    pause = threading.Event()
    return any(condition() or pause.wait(0.02) for _ in range(250))


def test_faults_are_added_listed_and_removed(served: Sandbox) -> None:
    assert ask(served, "POST", "/sandbox/faults", {"verb": "list", "status": 503})[0] == 200
    assert ask(served, "GET", CONFIG_MAPS)[0] == 503
    (fault,) = ask(served, "GET", "/sandbox/faults")[1]["faults"]
    assert fault == {"number": 1, "verb": "list", "status": 503, "fired": 1, "matched": 1, "left": None}
    assert ask(served, "DELETE", "/sandbox/faults/1")[0] == 200
    assert ask(served, "DELETE", "/sandbox/faults/1")[0] == 404
    assert ask(served, "GET", CONFIG_MAPS)[0] == 200
    served.faults.add(status=500)
    assert ask(served, "DELETE", "/sandbox/faults") == (200, {})
    assert not served.faults


@pytest.mark.parametrize("wrong", [{"explode": True}, {"status": 9}, {}, []])
def test_nonsense_is_refused(served: Sandbox, wrong: Any) -> None:
    assert ask(served, "POST", "/sandbox/faults", wrong)[0] == 400


def test_the_clock_jumps_forward(served: Sandbox) -> None:
    before = ask(served, "GET", "/sandbox/clock")[1]["monotonic"]
    status, clock = ask(served, "POST", "/sandbox/clock", {"advance": 3600})
    assert status == 200
    assert clock["monotonic"] - before >= 3600
    with Sandbox(http=True, admin=True) as still:
        assert ask(still, "POST", "/sandbox/clock", {"advance": 1})[0] == 409


def test_the_log_can_be_asked(served: Sandbox) -> None:
    ask(served, "GET", CONFIG_MAPS)
    ask(served, "GET", f"{CONFIG_MAPS}/x")
    entries = ask(served, "GET", "/sandbox/log?resource=configmaps&status=404")[1]["entries"]
    assert [(e["verb"], e["name"]) for e in entries] == [("get", "x")]


def test_a_restart_loses_the_data_if_asked(served: Sandbox) -> None:
    served.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    served.compact()
    assert ask(served, "POST", "/sandbox/compact", {})[0] == 200
    assert ask(served, "POST", "/sandbox/restart", {"data": "sell"})[0] == 400
    assert ask(served, "POST", "/sandbox/restart", {"data": "lose"})[0] == 200
    assert eventually(lambda: served.get("configmaps", "a", "default") is None)
    served.finish_restart(5)
    assert ask(served, "GET", f"{CONFIG_MAPS}/a")[0] == 404


def test_only_programs_on_this_machine_are_served(served: Sandbox) -> None:
    assert ask(served, "GET", "/sandbox/faults", Host="evil.example.com")[0] == 403
    assert ask(served, "GET", "/sandbox/faults", Origin="http://localhost")[0] == 403
    assert ask(served, "GET", "/sandbox/nothing")[0] == 404
    with Sandbox(http=True) as plain:
        host, port = plain.url.removeprefix("http://").split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=5)
        connection.request("GET", "/sandbox/faults")
        assert connection.getresponse().status == 404
        connection.close()
