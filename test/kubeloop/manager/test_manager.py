"""Start and stop of the whole, and that only the leader writes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kubeloop.client import Client
from kubeloop.clock import StopEvent
from kubeloop.controller import Context, Controller, Result
from kubeloop.leader import ElectionSettings, LeaseLock, NotLeader
from kubeloop.manager import Manager, WriteGate
from kubeloop.manager.checks import liveness, readiness
from kubeloop.manager.telemetry import Telemetry
from kubeloop.observe.events import EventRecorder
from kubeloop.sandbox import Sandbox
from webapp_operator.reconcile import webapp_controller
from webapp_operator.types import WebApp

LEASES = "leases.coordination.k8s.io"
TIMEOUT = 20.0


def wait_for(holds: Callable[[], object], what: str) -> None:
    pause = threading.Event()
    for _ in range(int(TIMEOUT / 0.02)):
        if holds():
            return
        pause.wait(0.02)
    pytest.fail(f"waited in vain for: {what}")


class Replica:
    """One process of the operator, as far as that goes inside another one."""

    def __init__(
        self, sandbox: Sandbox, name: str, controller: Controller[Any] | None = None, *, elect: bool = True
    ) -> None:
        self.stop_event = StopEvent()
        self.lost: list[str] = []
        self.telemetry = Telemetry(lease="test" if elect else "", process=False)
        gate = WriteGate(elected_only=elect, refusals=self.telemetry.refusals)
        self.client = Client(sandbox.transport(), user_agent=name, stop=self.stop_event, fence=gate.check)
        events = EventRecorder(self.client, "example.com/test", name)
        self.manager = Manager(self.client, telemetry=self.telemetry, events=events)
        self.controller = self.manager.add(controller or webapp_controller())
        if elect:
            settings = ElectionSettings(name, 2, 1.5, 0.1, trust_absence=True)
            lock = LeaseLock(sandbox.transport(), "default", "test")
            self.manager.elect(lock, settings, gate, self.lost.append)
        self.clean: bool | None = None
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        self.clean = self.manager.run(self.stop_event, shutdown_timeout=5)

    @property
    def leads(self) -> bool:
        return self.manager.elector is None or self.manager.elector.may_write()

    def stop(self) -> bool | None:
        self.stop_event.set()
        self.thread.join(10)
        assert not self.thread.is_alive()
        return self.clean


@pytest.fixture
def start(sandbox: Sandbox) -> Iterator[Callable[..., Replica]]:
    replicas: list[Replica] = []

    def make(name: str, controller: Controller[Any] | None = None, **options: Any) -> Replica:
        replicas.append(Replica(sandbox, name, controller, **options))
        return replicas[-1]

    yield make
    for replica in replicas:
        replica.stop()


def create(sandbox: Sandbox, name: str = "hello") -> None:
    sandbox.create(
        {
            "apiVersion": "example.com/v1",
            "kind": "WebApp",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"image": "nginx:1.27", "replicas": 1},
        }
    )


def written(sandbox: Sandbox, by: str) -> list[str]:
    return [e.resource for e in sandbox.log.writes(user_agent=by) if e.resource != "events"]


def test_only_the_leader_works_and_the_standby_is_warm(
    sandbox: Sandbox, start: Callable[..., Replica]
) -> None:
    one = start("one")
    wait_for(lambda: one.leads, "the first to lead")
    two = start("two")
    wait_for(lambda: two.manager.wait_synced(StopEvent(), 0), "the standby's caches")
    create(sandbox)
    wait_for(lambda: sandbox.get("deployments.apps", "hello", "default"), "the Deployment")
    wait_for(lambda: two.manager.informers[WebApp].store.get("default/hello"), "the standby to hear of it")

    assert written(sandbox, "one")
    assert not written(sandbox, "two")
    assert (one.telemetry.refusals.value(), two.telemetry.refusals.value()) == (0, 0)
    with pytest.raises(NotLeader):
        two.client.delete(WebApp.resource, "hello", "default")


def test_a_stop_hands_over_within_a_second(sandbox: Sandbox, start: Callable[..., Replica]) -> None:
    """Go anchors 6 (13): workers end, then the lease is released."""
    one = start("one")
    wait_for(lambda: one.leads, "the first to lead")
    two = start("two")
    wait_for(lambda: two.manager.wait_synced(StopEvent(), 0), "the standby's caches")
    one.stop_event.set()
    pause = threading.Event()
    one.thread.join(5)
    for _ in range(50):
        if two.leads:
            break
        pause.wait(0.02)

    assert two.leads
    assert one.clean is True
    assert one.lost == []
    create(sandbox)
    wait_for(lambda: written(sandbox, "two"), "the second to work")


def test_a_stolen_lease_closes_the_gate_and_ends_the_process(
    sandbox: Sandbox, start: Callable[..., Replica]
) -> None:
    """kubernetes-client/python#1914."""
    one = start("one")
    wait_for(lambda: one.leads, "the first to lead")
    sandbox.patch(LEASES, "test", {"spec": {"holderIdentity": "thief", "renewTime": None}}, "default")
    wait_for(lambda: one.lost, "the loss to be told")

    assert not one.leads
    with pytest.raises(NotLeader):
        one.client.delete(WebApp.resource, "hello", "default")
    lease = sandbox.get(LEASES, "test", "default")
    assert lease is not None
    assert lease["spec"]["holderIdentity"] == "thief"


def test_a_lease_is_not_released_while_a_reconcile_may_still_write(
    sandbox: Sandbox, start: Callable[..., Replica]
) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def hang(_app: WebApp, _ctx: Context[WebApp]) -> Result:
        entered.set()
        go_on.wait(30)
        return Result()

    one = start("one", Controller(WebApp, hang, field_manager="test"))
    create(sandbox)
    assert entered.wait(TIMEOUT)
    try:
        one.stop_event.set()
        one.thread.join(10)
        lease = sandbox.get(LEASES, "test", "default")

        assert one.clean is False
        assert lease is not None
        assert lease["spec"]["holderIdentity"] == "one"
    finally:
        go_on.set()
        assert one.controller.workers.join(5)


def test_without_an_election_work_begins_when_the_caches_are_synced(
    sandbox: Sandbox, start: Callable[..., Replica]
) -> None:
    create(sandbox)
    one = start("one", elect=False)
    wait_for(lambda: sandbox.get("deployments.apps", "hello", "default"), "the Deployment")

    assert one.stop() is True
    assert written(sandbox, "one")[:3] == ["webapps", "deployments", "webapps"]


def test_a_stop_ends_a_wait_for_a_retry(sandbox: Sandbox, start: Callable[..., Replica]) -> None:
    """A server that says "come back in ten seconds" does not delay the stop by them."""
    asked = threading.Event()

    def fails(_app: WebApp, ctx: Context[WebApp]) -> Result:
        asked.set()
        ctx.client.get(WebApp.resource, "hello", "default")
        return Result()

    one = start("one", Controller(WebApp, fails, field_manager="test"), elect=False)
    sender: Any = one.client._sender
    real = sender.transport.request

    def busy(method: str, target: str, **rest: Any) -> Any:
        if target.endswith("/webapps/hello"):
            return _Busy()
        return real(method, target, **rest)

    sender.transport.request = busy
    create(sandbox)
    assert asked.wait(TIMEOUT)
    threading.Event().wait(0.3)
    one.stop_event.set()
    one.thread.join(3)

    assert not one.thread.is_alive()


class _Busy:
    status = 429
    headers = {"retry-after": "10"}
    body = b'{"kind":"Status","code":429,"reason":"TooManyRequests"}'


class TestProbes:
    def test_all_is_well(self, start: Callable[..., Replica]) -> None:
        one = start("one")
        wait_for(lambda: one.leads, "the first to lead")
        wait_for(lambda: one.manager.wait_synced(StopEvent(), 0), "the caches")
        checks = {**liveness(one.manager), **readiness(one.manager)}

        assert checks.keys() == {
            "informers",
            "workers",
            "leaderElection",
            "caches",
            "freshness",
            "lease",
            "shutdown",
        }
        assert {name: check() for name, check in checks.items()} == dict.fromkeys(checks, "")

    def test_a_missing_kind_is_named_with_its_verb(self) -> None:
        with Sandbox() as bare:
            one = Replica(bare, "one", elect=False)
            try:
                wait_for(lambda: "webapps" in readiness(one.manager)["caches"](), "the reason")
                reason = readiness(one.manager)["caches"]()

                assert "WebApp: " in reason
                assert "list" in reason or "watch" in reason
                assert liveness(one.manager)["informers"]() == ""
            finally:
                one.stop()

    def test_a_lease_that_cannot_be_read_is_named(self) -> None:
        def may(asked: Any) -> bool:
            return bool(asked.resource != "leases")

        with Sandbox(authorizer=may) as closed:
            closed.apply(WebApp.crd())
            one = Replica(closed, "one")
            try:
                wait_for(lambda: "leases" in readiness(one.manager)["lease"](), "the reason")
                assert not one.leads
                assert liveness(one.manager)["leaderElection"]() == ""
            finally:
                one.stop()

    def test_a_process_that_stops_is_not_ready(self, start: Callable[..., Replica]) -> None:
        one = start("one", elect=False)
        one.stop()

        assert readiness(one.manager)["shutdown"]() == "the process is stopping"
        assert liveness(one.manager)["workers"]() == ""

    def test_a_dead_worker_fails_liveness(self, start: Callable[..., Replica]) -> None:
        one = start("one", elect=False)
        wait_for(lambda: one.manager.wait_synced(StopEvent(), 0), "the caches")
        wait_for(lambda: one.controller.workers._threads[0].ident, "the workers")
        one.controller.queue.shut_down()  # as if they had died: nobody stopped the manager
        wait_for(lambda: liveness(one.manager)["workers"](), "the death to be seen")


class TestUnreadable:
    def test_only_the_leader_says_so_and_only_once(
        self, sandbox: Sandbox, start: Callable[..., Replica]
    ) -> None:
        """A standby's informers see the object too, and must not write."""
        crd = WebApp.crd()
        loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        properties = {"spec": loose, "status": loose}
        (version,) = crd["spec"]["versions"]
        version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": properties}}
        version["subresources"] = {"status": {}}
        sandbox.apply(crd)
        one = start("one")
        wait_for(lambda: one.leads, "the first to lead")
        two = start("two")
        sandbox.create(
            {
                "apiVersion": "example.com/v1",
                "kind": "WebApp",
                "metadata": {"name": "odd", "namespace": "default"},
                "spec": {"image": "nginx", "replicas": "many"},
            }
        )

        def phase() -> Any:
            return ((sandbox.get("webapps.example.com", "odd", "default") or {}).get("status") or {}).get(
                "phase"
            )

        wait_for(lambda: phase() == "Failed", "the status")
        wait_for(lambda: two.manager.informers[WebApp].undecodable, "the standby to see it")
        threading.Event().wait(1.2)  # a second, the grain of its timestamp: a loop would show

        assert written(sandbox, "one") == ["webapps"]
        assert written(sandbox, "two") == []
        assert one.telemetry.terminal_errors.value("webapp") >= 1
