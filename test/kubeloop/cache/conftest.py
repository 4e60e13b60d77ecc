"""A kind, a scripted server without sockets, and a way to wait for what another thread does."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from kubeloop.cache.codec import Codec
from kubeloop.client import Client
from kubeloop.client.transport import Answered
from kubeloop.clock import FakeClock
from kubeloop.model import KubeObject, Model, Resource


class ThingSpec(Model):
    size: int
    note: str = ""


class Thing(KubeObject):
    resource = Resource("example.com", "v1", "things", "Thing")
    spec: ThingSpec


def make_thing(
    name: str, version: int, *, size: Any = 1, uid: str = "", namespace: str = "ns", **more: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            **more,
        },
        "spec": {"size": size},
    }


class ScriptedStream:
    """The body of a watch, fed by the test."""

    def __init__(self, status: int = 200, body: bytes = b"") -> None:
        self.status = status
        self.headers: Mapping[str, str] = {}
        self.read_timeouts: list[float] = []
        self._condition = threading.Condition()
        self._chunks: list[bytes | BaseException | None] = [body, None] if body else []
        self.closed = False

    def set_read_timeout(self, seconds: float) -> None:
        self.read_timeouts.append(seconds)

    def feed(self, *chunks: bytes | BaseException | None) -> None:
        """Bytes to deliver, an error to raise, or None for the end."""
        with self._condition:
            self._chunks += chunks
            self._condition.notify_all()

    def event(self, kind: str, obj: dict[str, Any]) -> None:
        self.feed(json.dumps({"type": kind, "object": obj}, separators=(",", ":")).encode() + b"\n")

    def bookmark(self, version: int, *, ends_list: bool = False) -> None:
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if ends_list:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        self.event("BOOKMARK", {"kind": "Thing", "apiVersion": "example.com/v1", "metadata": metadata})

    def end(self) -> None:
        self.feed(None)

    def chunks(self) -> Iterator[bytes]:
        while True:
            with self._condition:
                while not self._chunks and not self.closed:
                    self._condition.wait()
                if self.closed:
                    return
                chunk = self._chunks.pop(0)
            if chunk is None:
                return
            if isinstance(chunk, BaseException):
                raise chunk
            yield chunk

    def close(self) -> None:
        with self._condition:
            self.closed = True
            self._condition.notify_all()


Answerer = Callable[[str, dict[str, str]], Any]


class ScriptedServer:
    """A transport whose answers the test decides: `on_list`, `on_watch` and `on_check` (a list that only asks
    for the version) get path and query and give an `Answered`, a `ScriptedStream`, or an exception to raise.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.on_list: Answerer = lambda *_: listing([], 1)
        self.on_watch: Answerer = lambda *_: ScriptedStream()
        self.on_check: Answerer = lambda *_: listing([], 1_000_000)
        self.streams: list[ScriptedStream] = []
        self._lock = threading.Lock()

    def request(self, *_: object, **__: object) -> Answered:
        raise AssertionError("a reflector only makes requests that can be cancelled")

    def stream(self, _: str, target: str, *, read_timeout: float, **__: object) -> ScriptedStream:
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        kind = "watch" if query.get("watch") == "true" else "check" if query.get("limit") == "1" else "list"
        with self._lock:
            self.requests.append((kind, parts.path, query))
        answerers = {"watch": self.on_watch, "check": self.on_check, "list": self.on_list}
        answer = answerers[kind](parts.path, query)
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, Answered):
            return ScriptedStream(answer.status, answer.body)
        answer.read_timeouts.append(read_timeout)
        with self._lock:
            if kind == "watch":
                self.streams.append(answer)
        return answer

    def close(self) -> None:
        """Nothing is open."""

    def count(self, kind: str) -> int:
        return sum(1 for request in list(self.requests) if request[0] == kind)


def listing(items: list[dict[str, Any]], version: int, continue_: str = "") -> Answered:
    metadata = {"resourceVersion": str(version), "continue": continue_}
    document = {"kind": "ThingList", "apiVersion": "example.com/v1", "metadata": metadata, "items": items}
    return Answered(200, {}, json.dumps(document).encode())


def refusal(code: int, reason: str, **more: Any) -> Answered:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return Answered(code, {}, json.dumps({**status, "message": f"{reason} it is", **more}).encode())


class Tools:
    """What tests need by name."""

    Thing = Thing
    Stream = ScriptedStream
    thing = staticmethod(make_thing)
    listing = staticmethod(listing)
    refusal = staticmethod(refusal)

    @staticmethod
    def until(true: Callable[[], object], clock: FakeClock | None = None, seconds: float = 10.0) -> None:
        """Wait for what another thread does; with a fake clock, let its time go by meanwhile."""
        pause = threading.Event()
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, "it did not happen"
            if clock is not None:
                clock.advance(0.5)
            pause.wait(0.002)


@pytest.fixture
def tools() -> type[Tools]:
    return Tools


@pytest.fixture
def server() -> ScriptedServer:
    return ScriptedServer()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def client(server: ScriptedServer) -> Client:
    return Client(server)


@pytest.fixture
def codec() -> Codec[Thing]:
    return Codec(Thing)
