"""A stage: the product's real threads on the sandbox, on one clock that the test moves.

Minutes of outage or lease take no time, and nothing is guessed about how fast a machine is: after each step
of the clock the stage waits until every thread has done what there was to do.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import FrameType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import webapp_operator.reconcile
from kubeloop.client import Client
from kubeloop.clock import FakeClock, StopEvent
from kubeloop.controller import Controller, Outcome
from kubeloop.leader import ElectionSettings, LeaseLock
from kubeloop.manager import Manager, WriteGate
from kubeloop.manager.checks import liveness, readiness
from kubeloop.manager.telemetry import Telemetry
from kubeloop.observe.events import EventRecorder
from kubeloop.sandbox import Sandbox
from kubeloop.sandbox.requestlog import Entry
from webapp_operator.reconcile import webapp_controller
from webapp_operator.types import WebApp

PATIENCE = 30.0
"""Seconds of real time within which threads come to rest."""
STEP = 0.25
"""Seconds by which the clock is moved at a time."""
WEBAPPS, DEPLOYMENTS, LEASES = "webapps.example.com", "deployments.apps", "leases.coordination.k8s.io"


@dataclass(frozen=True)
class Sent:
    """A request as it left the client. `at` is seconds of the stage's clock."""

    at: float
    method: str
    target: str
    headers: Mapping[str, str]

    @property
    def plural(self) -> str:
        """The resource."""
        parts = urlsplit(self.target).path.strip("/").split("/")
        parts = parts[2:] if parts[0] == "api" else parts[3:]
        return parts[2] if parts[0] == "namespaces" and len(parts) > 2 else parts[0]

    @property
    def query(self) -> dict[str, str]:
        """The options."""
        return {key: values[0] for key, values in parse_qs(urlsplit(self.target).query).items()}

    @property
    def verb(self) -> str:
        """list, watch, get; or for writes the method in small letters."""
        if self.method != "GET":
            return self.method.lower()
        if self.query.get("watch"):
            return "watch"
        tail = urlsplit(self.target).path.rstrip("/").rpartition("/")[2]
        return "list" if tail == self.plural else "get"


class Wire:
    """A transport that remembers what goes through it."""

    def __init__(self, inner: Any, clock: FakeClock) -> None:
        self.inner = inner
        self.clock = clock
        self.sent: list[Sent] = []

    def request(self, method: str, target: str, **rest: Any) -> Any:
        self.sent.append(Sent(self.clock.monotonic(), method, target, dict(rest.get("headers") or {})))
        return self.inner.request(method, target, **rest)

    def stream(self, method: str, target: str, **rest: Any) -> Any:
        self.sent.append(Sent(self.clock.monotonic(), method, target, dict(rest.get("headers") or {})))
        return self.inner.stream(method, target, **rest)

    def close(self) -> None:
        self.inner.close()

    def of(self, verb: str, plural: str | None = None, since: float = -1.0) -> list[Sent]:
        """What was sent of this kind from second `since` on."""
        return [s for s in self.sent if s.verb == verb and plural in (None, s.plural) and s.at >= since]


class Operator:
    """One process of an operator, as far as that goes inside another one."""

    def __init__(
        self,
        stage: Stage,
        controller: Controller[Any] | None = None,
        *,
        name: str = "operator",
        elect: bool = False,
        token: str | None = None,
        namespaces: tuple[str, ...] = (),
        workers: int | None = 2,
        grace: float = 30.0,
    ) -> None:
        self.name = name
        self._stage = stage
        self._grace = grace
        clock = stage.clock
        self.stop_event = StopEvent(clock)
        self.lost: list[str] = []
        self.outcomes: list[tuple[str, Outcome]] = []
        self.telemetry = Telemetry(host="api.test", lease="operator" if elect else "", process=False)
        gate = WriteGate(elected_only=elect, refusals=self.telemetry.refusals)
        self.wire = Wire(stage.sandbox.transport(token), clock)
        self.client = Client(
            self.wire,
            clock=clock,
            user_agent=name,
            stop=self.stop_event,
            fence=gate.check,
            observer=self.telemetry.requested,
        )
        self.manager = Manager(
            self.client,
            namespaces=namespaces,
            clock=clock,
            workers=workers,
            report=lambda key, outcome: self.outcomes.append((key, outcome)),
            telemetry=self.telemetry,
            events=EventRecorder(self.client, "example.com/test", name, clock=clock),
        )
        self.controller = self.manager.add(controller or webapp_controller())
        if elect:
            lock = LeaseLock(stage.sandbox.transport(token), "default", "operator", clock=clock, agent=name)
            settings = ElectionSettings(name, trust_absence=True)
            self.manager.elect(lock, settings, gate, self.lost.append)
        self.clean: bool | None = None
        self.thread = threading.Thread(target=self._run, name=f"{name}-main")
        self.thread.start()

    def _run(self) -> None:
        self.clean = self.manager.run(self.stop_event, shutdown_timeout=self._grace)

    @property
    def leads(self) -> bool:
        return self.manager.elector is not None and self.manager.elector.may_write()

    @property
    def synced(self) -> bool:
        return self.manager.wait_synced(StopEvent(), 0)

    def entries(self, **wanted: Any) -> list[Entry]:
        """Its requests, as the server saw them."""
        return self._stage.sandbox.log.entries(user_agent=self.name, **wanted)

    def writes(self, since: int = 0, *, events: bool = False, **wanted: Any) -> list[Entry]:
        """Its write requests; without Events and Leases unless these are asked for."""
        found = self._stage.sandbox.log.writes(since=since, user_agent=self.name, **wanted)
        return found if events else [e for e in found if e.resource not in ("events", "leases")]

    def unwell(self) -> str:
        """What /healthz says; empty if all is well."""
        return "; ".join(filter(None, (check() for check in liveness(self.manager).values())))

    def unready(self) -> str:
        """What /readyz?verbose says; empty if all is well."""
        return "; ".join(filter(None, (check() for check in readiness(self.manager).values())))

    def metrics(self) -> str:
        """/metrics."""
        return self.telemetry.set.render()[0].decode()

    def stop(self) -> bool | None:
        """As SIGTERM does; whether it ended cleanly within its grace. Its end needs no time to pass."""
        self.stop_event.set()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive(), "the operator did not stop"
        return self.clean


class Stage:
    """Sandbox, clock, and the operators on it."""

    def __init__(self, **options: Any) -> None:
        self._others = set(threading.enumerate())
        self.clock = FakeClock()
        self.sandbox = Sandbox(clock=self.clock, seed=1, **options)
        self.sandbox.start()
        self.sandbox.apply(WebApp.crd())
        self.operators: list[Operator] = []

    # Actors

    def operate(self, controller: Controller[Any] | None = None, **options: Any) -> Operator:
        """Start an operator, and let it come to rest."""
        self.operators.append(Operator(self, controller, **options))
        self.settle()
        return self.operators[-1]

    def make(self, name: str = "hello", namespace: str = "default", **spec: Any) -> dict[str, Any]:
        """A WebApp, made by its user."""
        return self.sandbox.create(
            {
                "apiVersion": "example.com/v1",
                "kind": "WebApp",
                "metadata": {"name": name, "namespace": namespace},
                "spec": {"image": "nginx:1.27", "replicas": 2, **spec},
            }
        )

    def touch(self, number: int, name: str = "hello") -> None:
        """Change the WebApp in a way that asks for nothing."""
        change = {"metadata": {"annotations": {"touched": str(number)}}}
        self.sandbox.patch(WEBAPPS, name, change, "default")

    def make_noise(self) -> None:
        """Changes to objects that nobody here watches: the server's resourceVersion moves."""
        for number in range(5):
            meta = {"name": "noise", "labels": {"number": str(number)}}
            self.sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})

    def cut(self, *plurals: str) -> None:
        """The server ends all watches of these resources."""
        for watcher in self.sandbox.backend.store.watchers():
            if watcher.key is not None and watcher.key[1] in plurals:
                watcher.close()

    def app(self, name: str = "hello", namespace: str = "default") -> dict[str, Any]:
        """The WebApp; {} when it is not there."""
        return self.sandbox.get(WEBAPPS, name, namespace) or {}

    def deployment(self, name: str = "hello", namespace: str = "default") -> dict[str, Any]:
        """The Deployment; {} when it is not there."""
        return self.sandbox.get(DEPLOYMENTS, name, namespace) or {}

    def phase(self, name: str = "hello", namespace: str = "default") -> str:
        """The phase of the WebApp."""
        return str(self.app(name, namespace).get("status", {}).get("phase", ""))

    def condition(self, kind: str, name: str = "hello") -> dict[str, Any]:
        """A condition of the WebApp; {} when it is not there."""
        conditions = self.app(name).get("status", {}).get("conditions", ())
        return next((c for c in conditions if c["type"] == kind), {})

    def ready(self, *names: str) -> None:
        """Wait until these WebApps are Ready."""
        for name in names or ("hello",):
            self.until(lambda name=name: self.phase(name) == "Ready", what=f"{name} to be ready")

    # Time

    @property
    def time(self) -> float:
        """Seconds since the beginning."""
        return self.clock.monotonic()

    def settle(self) -> None:
        """Wait, in real time, until every thread waits for something that has not happened yet."""
        pause = threading.Event()
        give_up = time.monotonic() + PATIENCE
        while busy := self._busy():
            assert time.monotonic() < give_up, f"does not come to rest: {busy}"
            pause.wait(0.0003)

    def pass_time(self, seconds: float, step: float = STEP) -> None:
        """Let time pass in small steps; everybody does what is due in between."""
        end = self.time + seconds
        self.settle()
        while (left := end - self.time) > 1e-9:
            self.clock.advance(min(step, left))
            self.settle()

    def until(
        self, holds: Callable[[], object], within: float = 60.0, what: str = "", step: float = STEP
    ) -> float:
        """Let time pass until something holds; the seconds that it took."""
        began = self.time
        self.settle()
        while not holds():
            assert self.time - began < within, f"waited {within:g} s in vain: {what or holds}"
            self.clock.advance(step)
            self.settle()
        return self.time - began

    def _busy(self) -> str:
        frames = sys._current_frames()
        for thread in threading.enumerate():
            if thread in self._others or thread is threading.current_thread():
                continue
            frame = frames.get(thread.ident or 0)
            if frame is None or not _waits(frame):
                return thread.name
        return ""

    def close(self) -> None:
        self.sandbox.faults.clear()
        for operator in self.operators:
            operator.stop_event.set()
        for operator in self.operators:
            give_up = time.monotonic() + PATIENCE
            while operator.thread.is_alive() and time.monotonic() < give_up:
                operator.thread.join(0.01)
                self.clock.advance(1.0)  # for whoever waits for an answer that is late
            operator.stop()
        self.sandbox.stop()
        self.sandbox.check()


_WAIT = threading.Condition.wait.__code__
_JOIN = getattr(threading.Thread, "_wait_for_tstate_lock", threading.Thread.join).__code__


def _waits(frame: FrameType) -> bool:
    """Whether a thread is in `Condition.wait` and was not notified yet, or joins one that lives."""
    names = frame.f_locals
    if frame.f_code is _JOIN:
        return bool(names["self"].is_alive())
    return frame.f_code is _WAIT and "waiter" in names and names["waiter"] in names["self"]._waiters


@pytest.fixture
def make_stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Stage]]:
    """Makes a stage; arguments are the Sandbox's."""
    stages: list[Stage] = []

    class Dated(datetime):
        """The status' timestamps follow the stage's clock, or a write too many might go unnoticed."""

        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return stages[-1].clock.now().astimezone(tz or UTC)

    monkeypatch.setattr(webapp_operator.reconcile, "datetime", Dated)

    def make(**options: Any) -> Stage:
        stages.append(Stage(**options))
        return stages[-1]

    yield make
    for stage in stages:
        stage.close()


@pytest.fixture
def stage(make_stage: Callable[..., Stage]) -> Stage:
    """A stage with nothing on it yet."""
    return make_stage()


@pytest.fixture
def make_wire(stage: Stage) -> Callable[[], Wire]:
    """Transports of the stage's sandbox that remember what goes through them."""
    return lambda: Wire(stage.sandbox.transport(), stage.clock)
