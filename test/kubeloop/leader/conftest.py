"""A server that knows nothing but Leases, as a transport, with the network in the test's hand."""

from __future__ import annotations

import json
import queue
import random
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from kubeloop.leader import ElectionSettings, ElectorCore, LeaseLock, Phase
from kubeloop.leader.actions import (
    Action,
    Create,
    Event,
    Now,
    Read,
    Refused,
    Seen,
    Sleep,
    Tick,
    Update,
    Written,
)

PATIENCE = 200
"""How many requests, or sleeps, in a row are taken for going somewhere."""

PATH = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class LeaseStream:
    """A watch: an initial ADDED, then every change."""

    status = 200
    headers: Mapping[str, str] = {}

    def __init__(self, first: list[dict[str, Any]]) -> None:
        self.lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        for event in first:
            self.lines.put(event)

    def chunks(self) -> Iterator[bytes]:
        while (event := self.lines.get()) is not None:
            yield json.dumps(event).encode() + b"\n"

    def close(self) -> None:
        self.lines.put(None)


class LeaseServer:
    """Optimistic locking, uids and validation as kube-apiserver 1.36 does them for one Lease.

    `before` is called with method and timeout before a request is carried out, `after` before its answer is
    given: they raise to lose it, or block to make it hang.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.lease: dict[str, Any] | None = None
        self.requests: list[str] = []
        self.agents: set[str] = set()
        self.before: Callable[[str, float], None] = lambda _method, _timeout: None
        self.after: Callable[[str, float], None] = lambda _method, _timeout: None
        self.watches: list[LeaseStream] = []
        self.can_watch = True
        self.closed = 0
        self._version = 0

    # The transport

    def request(
        self, method: str, target: str, *, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Answer:
        self.agents.add(headers["User-Agent"])
        self.before(method, timeout)
        with self._lock:
            self.requests.append(method)
            answer = self._carry_out(method, target, json.loads(body) if body else None)
        self.after(method, timeout)
        return answer

    def stream(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str],  # noqa: ARG002
        connect_timeout: float,  # noqa: ARG002
        read_timeout: float,  # noqa: ARG002
    ) -> LeaseStream:
        assert method == "GET"
        assert "fieldSelector=metadata.name%3Dleader" in target
        if not self.can_watch:
            raise ConnectionRefusedError("no watches today")
        with self._lock:
            lease = [] if self.lease is None else [{"type": "ADDED", "object": self.lease}]
            self.watches.append(LeaseStream(lease))
            return self.watches[-1]

    def close(self) -> None:
        self.closed += 1

    # The same without a transport, for those who make very many requests

    def perform(self, action: Read | Create | Update) -> Event:
        """What `LeaseLock` makes of the answer to a request that nothing happens to."""
        match action:
            case Read():
                return Seen(self.lease)
            case Create(lease):
                if self.lease is not None:
                    return Refused()
            case Update(lease):
                sent, there = lease["metadata"], (self.lease or {"metadata": {}})["metadata"]
                if any(sent[key] != there.get(key) for key in ("uid", "resourceVersion")):
                    return Refused()
        self.write(dict(lease))
        return Written(self.lease or {})

    # Other people

    def write(self, lease: dict[str, Any] | None) -> None:
        """Put `lease` there whatever there is, or remove it."""
        with self._lock:
            gone = self.lease
            if lease is not None:
                self._version += 1
                metadata = {"name": "leader", "namespace": "ns", "uid": str(uuid.uuid4())}
                metadata |= lease.get("metadata") or {}
                lease = {
                    **lease,
                    "metadata": {**metadata, "resourceVersion": str(self._version)},
                }
            self.lease = lease
            for watch in self.watches:
                watch.lines.put(
                    {"type": "DELETED", "object": gone}
                    if lease is None
                    else {"type": "MODIFIED", "object": lease}
                )

    def edit(self, **spec: Any) -> None:
        """Change fields of the spec, as `kubectl edit` does."""
        with self._lock:
            assert self.lease is not None
            self.write({**self.lease, "spec": {**self.lease["spec"], **spec}})

    @property
    def spec(self) -> dict[str, Any]:
        with self._lock:
            assert self.lease is not None
            return dict(self.lease["spec"])

    def holder(self) -> str:
        with self._lock:
            return str(self.lease["spec"].get("holderIdentity") or "") if self.lease else ""

    def _carry_out(self, method: str, target: str, body: dict[str, Any] | None) -> Answer:
        live = self.lease
        if method == "GET":
            return _not_found() if live is None else Answer(200, json.dumps(live).encode())
        assert body is not None
        spec = body.get("spec") or {}
        if spec.get("leaseDurationSeconds", 1) < 1:
            return _status(422, "Invalid", "spec.leaseDurationSeconds: must be greater than 0")
        for name in ("renewTime", "acquireTime"):
            if name in spec and len(spec[name]) != len("2026-01-01T00:00:00.000000Z"):
                return _status(400, "BadRequest", f"parsing time {spec[name]!r}")
        if method == "POST":
            assert target.startswith(PATH)
            if live is not None:
                return _status(409, "AlreadyExists", 'leases.coordination.k8s.io "leader" already exists')
            self.write(body)
        else:
            assert target.startswith(PATH + "/leader")
            sent, there = body["metadata"], (live or {"metadata": {}})["metadata"]
            if any(sent[key] != there.get(key) for key in ("uid", "resourceVersion")):
                return _status(409, "Conflict", "the object has been modified")
            self.write(body)
        return Answer(200, json.dumps(self.lease).encode())


def _not_found() -> Answer:
    return _status(404, "NotFound", 'leases.coordination.k8s.io "leader" not found')


def _status(code: int, reason: str, message: str) -> Answer:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        "details": {"name": "leader", "kind": "leases"},
    }
    return Answer(code, json.dumps(status).encode())


@pytest.fixture
def server() -> LeaseServer:
    return LeaseServer()


@pytest.fixture
def lock(server: LeaseServer) -> LeaseLock:
    return LeaseLock(server, "ns", "leader", agent="test")


@pytest.fixture(scope="session")
def make_server() -> type[LeaseServer]:
    return LeaseServer


class Script:
    """One core played by hand: time only passes when the test says so."""

    def __init__(self, server: LeaseServer, identity: str = "a", **options: Any) -> None:
        self.server = server
        self.core = ElectorCore("ns", "leader", ElectionSettings(identity, **options), random.Random(1))
        self.lock = LeaseLock(server, "ns", "leader", agent="test")
        self.time = 1000.0
        self.wall = datetime(2026, 1, 1, tzinfo=UTC)

    @property
    def now(self) -> Now:
        return Now(self.time, self.wall)

    def step(self, event: Event | None = None) -> Action:
        return self.core.step(self.now, event or Tick())

    def settle(self, event: Event | None = None) -> Action:
        """Step and make all requests, without time passing, until there is nothing to do at once."""
        action = self.step(event)
        for _ in range(PATIENCE):
            if not isinstance(action, Read | Create | Update):
                return action
            action = self.step(self.lock.perform(action))
        raise AssertionError(f"it goes round in circles: {action}")

    def wait(self, seconds: float) -> Action:
        """Let time pass and do what is due meanwhile, when it is due."""
        end = self.time + seconds
        action = self.settle()
        for _ in range(PATIENCE):
            if not isinstance(action, Sleep) or action.until > end:
                self.pass_time(end - self.time)
                return self.settle()
            self.pass_time(action.until - self.time)
            action = self.settle()
        raise AssertionError(f"it goes round in circles: {action}")

    def pass_time(self, seconds: float) -> None:
        self.time += max(seconds, 0.0)
        self.wall += timedelta(seconds=max(seconds, 0.0))

    def lead(self) -> None:
        """Become leader on a Lease that somebody released."""
        self.server.write({"spec": {"leaseTransitions": 3}})
        self.settle()
        assert self.core.phase is Phase.LEADING
        self.server.requests.clear()


@pytest.fixture
def script(server: LeaseServer) -> Callable[..., Script]:
    return partial(Script, server)
