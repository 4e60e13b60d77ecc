"""The same small operator on kopf, controller-runtime and kube-rs, each unmodified, against the sandbox.

Each looks after the Greetings of greetings.yaml: a ConfigMap that says the text (and comes back when it is
lost), an Event, a status, a finalizer with a farewell. Built and run by `make test-compat`.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.compat

HERE = Path(__file__).parent
PATIENCE = 60.0
"""Seconds that an operator has to come up and to do what is to be done: the machine may be busy."""
FINALIZER = "compat.example.com/farewell"
GREETING: dict[str, Any] = {
    "apiVersion": "compat.example.com/v1",
    "kind": "Greeting",
    "metadata": {"name": "hello", "namespace": "default"},
    "spec": {"text": "good morning"},
}

Start = Callable[[list[str]], None]


def command(operator: str) -> list[str]:
    """How `operator` is started, from what `hack/compat.sh` built."""
    built = Path(os.environ["KUBELOOP_COMPAT"])
    return {
        "kopf": [str(built / "kopf/bin/kopf"), "run", "-A", str(HERE / "kopf_operator/greeter.py")],
        "client_go": [str(built / "client_go/greeter"), "operator"],
        "kube_rs": [str(built / "kube_rs/debug/greeter")],
    }[operator]


def until(holds: Callable[[], Any], what: str) -> Any:
    """Wait for a true value, and give it."""
    pause, deadline = threading.Event(), time.monotonic() + PATIENCE
    while not (value := holds()):
        assert time.monotonic() < deadline, f"after {PATIENCE:.0f} s it is still not true that {what}"
        pause.wait(0.05)
    return value


@pytest.fixture(params=["kopf", "client_go", "kube_rs"])
def operator(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_an_operator_lives_its_whole_life(operator: str, own_server: Any, program: Start) -> None:
    sandbox = own_server.sandbox

    def said(name: str) -> str | None:
        found = sandbox.get("configmaps", name, "default")
        return found and found["data"]["text"]

    def greeting() -> dict[str, Any]:
        found = sandbox.get("greetings.compat.example.com", "hello", "default")
        return found if found is not None else {}

    def seen() -> int:
        return int(greeting().get("status", {}).get("observedGeneration", 0))

    before = sandbox.create({**GREETING, "metadata": {"name": "earlier", "namespace": "default"}})
    program(command(operator))
    until(lambda: said("earlier") == "good morning", "an object of before the start is seen to")

    sandbox.create(GREETING)
    until(lambda: said("hello") == "good morning", "the ConfigMap is there")
    until(lambda: seen() == 1, "the status says that generation 1 is done")
    assert greeting()["metadata"]["finalizers"] == [FINALIZER]
    (owner,) = sandbox.get("configmaps", "hello", "default")["metadata"]["ownerReferences"]
    assert owner["uid"] == greeting()["metadata"]["uid"]
    assert owner["controller"] is True

    def events() -> list[dict[str, Any]]:
        return [event for event in sandbox.list("events", "default") if event.get("reason") == "Greeted"]

    event = until(lambda: [e for e in events() if e["involvedObject"]["name"] == "hello"], "an Event tells")[
        0
    ]
    assert event["message"] == "said good morning"

    sandbox.patch("greetings.compat.example.com", "hello", {"spec": {"text": "good night"}}, "default")
    until(lambda: said("hello") == "good night", "the ConfigMap follows the spec")
    until(lambda: seen() == 2, "the status says that generation 2 is done")

    sandbox.delete("configmaps", "hello", "default")
    until(lambda: said("hello") == "good night", "the lost ConfigMap is back")

    sandbox.delete("greetings.compat.example.com", "hello", "default")
    until(lambda: not greeting(), "the finalizer is gone, and the object with it")
    assert said("farewell-hello") == "good night"
    until(lambda: said("hello") is None, "the garbage collector took the ConfigMap")
    assert before["metadata"]["uid"]
    own_server.assert_nothing_was_refused()


def test_an_operator_survives_the_end_of_its_watches(operator: str, own_server: Any, program: Start) -> None:
    """Every watch is cut and the history forgotten (410): the client starts anew, nothing is missed."""
    sandbox = own_server.sandbox
    program(command(operator))
    sandbox.create(GREETING)
    until(lambda: sandbox.get("configmaps", "hello", "default"), "the ConfigMap is there")
    for watcher in sandbox.backend.store.watchers():
        watcher.close()
    sandbox.compact()
    sandbox.patch("greetings.compat.example.com", "hello", {"spec": {"text": "still here"}}, "default")
    until(
        lambda: sandbox.get("configmaps", "hello", "default")["data"]["text"] == "still here",
        "the ConfigMap follows the spec",
    )


def test_the_clients_of_client_go(own_server: Any) -> None:
    """Discovery, typed and dynamic clients, informers, pages, apply, a rollout: see session.go."""
    greeter = Path(os.environ["KUBELOOP_COMPAT"]) / "client_go/greeter"
    done = subprocess.run(
        [str(greeter), "session"],
        env=own_server.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE * 2,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    own_server_log = own_server.sandbox.log.entries()
    unknown = [f"{entry} {entry.path}" for entry in own_server_log if entry.status in (415, 500, 501)]
    assert not unknown, "\n".join(unknown)


def test_only_the_leader_works_with_client_go(own_server: Any, program: Start) -> None:
    """controller-runtime's election: a Lease in the sandbox, held by one, given back at the end."""
    sandbox = own_server.sandbox
    program(command("client_go"))

    def holder() -> str:
        lease = sandbox.get("leases.coordination.k8s.io", "greeter-client-go", "default")
        return str(lease["spec"].get("holderIdentity", "")) if lease else ""

    first = until(holder, "somebody holds the Lease")
    program(command("client_go"))
    sandbox.create(GREETING)
    until(lambda: sandbox.get("configmaps", "hello", "default"), "the leader works")
    assert holder() == first
