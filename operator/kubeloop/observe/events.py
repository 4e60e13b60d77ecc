"""Events: what happened to an object, for people (``kubectl describe``, ``kubectl events``).

They are decoration: writing them never blocks or fails a reconcile, whatever is too much is dropped and
counted, and a server that refuses them is complained about once. `EventAggregator` decides which are written,
`EventRecorder` adds the queue and the thread.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cachetools import LRUCache

from kubeloop.client import ApiError, Client, MergePatch, NotFound, TransportError
from kubeloop.clock import Clock, SystemClock
from kubeloop.model import KubeObject, Resource
from kubeloop.observe.logs import fields
from kubeloop.thread import ThreadOwner

EVENTS = Resource("events.k8s.io", "v1", "events", "Event")

BURST, REFILL = 25, 300.0
"""Writes about one object at once, and the seconds until it may have another (client-go's spam filter)."""

TOTAL_BURST, TOTAL_REFILL = 25, 0.2
"""The same for all objects together. Ten thousand new WebApps must not cost ten thousand more writes, nor a
trickle of them for an hour: beyond this only warnings wait for their turn, the rest is dropped."""

SERIES_END = 360.0
"""Seconds after which the same thing again is a new event and no longer one more of its series."""

SERIES_REFRESH = 1800.0
"""Seconds after which a series is written again; until then only when its count has doubled, so that what
people see is never less than half of the truth (client-go's newer recorder shows 2 for half an hour)."""

OBJECTS = 4096
"""Objects, and events, that are remembered (client-go's LRU size)."""

QUEUE_SIZE = 1000
"""Events that may wait to be written; more are dropped."""

MAX_NOTE = 1024
"""Bytes of a note that the server accepts."""

_logger = logging.getLogger("kubeloop.observe")


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened. Equal ones within `SERIES_END` are one series."""

    api_version: str
    kind: str
    namespace: str | None
    name: str
    uid: str
    reason: str
    note: str
    warning: bool
    action: str


@dataclass(frozen=True, slots=True)
class Create:
    """Write a new Event of this name."""

    name: str


@dataclass(frozen=True, slots=True)
class Again:
    """Write into the Event of this name that it has happened `count` times."""

    name: str
    count: int


@dataclass(slots=True)
class _Series:
    name: str
    last: float
    written: float
    count: int = 1
    told: int = 1


@dataclass(slots=True)
class Bucket:
    """A token bucket: `burst` at once, one more every `refill` seconds."""

    burst: int
    refill: float
    tokens: float
    since: float

    def take(self, now: float) -> bool:
        """Take a token if there is one."""
        if self.wait(now) > 0:
            return False
        self.tokens -= 1
        return True

    def wait(self, now: float) -> float:
        """Seconds until there is a token."""
        self.tokens = min(self.burst, self.tokens + (now - self.since) / self.refill)
        self.since = now
        return max(0.0, (1 - self.tokens) * self.refill)


class EventAggregator:
    """Decides what to write about what happens. Not thread-safe; no clock, thread or I/O.

    client-go's newer recorder leaves the note out of a series' identity and so loses all notes but the first;
    here a different note is a different event, and the bucket of the object bounds their number.
    """

    def __init__(self) -> None:
        self._series: LRUCache[Happening, _Series] = LRUCache(OBJECTS)
        self._buckets: LRUCache[str, Bucket] = LRUCache(OBJECTS)

    def decide(self, what: Happening, now: float) -> Create | Again | None:
        """What to write now; None if it is only counted, or too much."""
        series = self._series.get(what)
        if series is not None and now - series.last <= SERIES_END:
            series.count += 1
            series.last = now
            # The second one makes it a series, which is news.
            if series.count < 2 * series.told and now - series.written < SERIES_REFRESH:
                return None
            if not self._bucket(what.uid, now).take(now):
                return None
            series.written, series.told = now, series.count
            return Again(series.name, series.count)
        if not self._bucket(what.uid, now).take(now):
            return None
        # A name of an object may have 253 characters, dots included.
        name = f"{what.name[:230].rstrip('.-')}.{os.urandom(8).hex()}"
        self._series[what] = _Series(name, now, now)
        return Create(name)

    def forget(self, what: Happening) -> None:
        """Its Event is no longer there: the next time it is a new one."""
        self._series.pop(what, None)

    def _bucket(self, uid: str, now: float) -> Bucket:
        bucket = self._buckets.get(uid)
        if bucket is None:
            bucket = self._buckets[uid] = Bucket(BURST, REFILL, BURST, now)
        return bucket


class EventRecorder(ThreadOwner):
    """Owns the thread ``events``. `emit` from any thread; `stop` it after all that emit: what may be written
    at once still is, the rest is dropped."""

    def __init__(self, client: Client, controller: str, instance: str, *, clock: Clock | None = None) -> None:
        """`controller` reports, e.g. ``example.com/webapp-operator``; `instance` is this very process."""
        super().__init__("events", clock or SystemClock())
        self._client = client
        self._controller = controller
        self._instance = instance[:128]
        self._aggregator = EventAggregator()  # used by the thread only
        self._complained = False  # about the server, since it last took one; used by the thread only
        self._total = Bucket(TOTAL_BURST, TOTAL_REFILL, TOTAL_BURST, self._clock.monotonic())
        # Guarded by _condition.
        self._waiting: deque[tuple[Happening, float, datetime]] = deque()
        self._outcomes = dict.fromkeys(("written", "merged", "dropped", "failed"), 0)

    def emit(
        self,
        regarding: KubeObject,
        reason: str,
        note: str,
        *,
        warning: bool = False,
        action: str = "Reconcile",
    ) -> None:
        """Something happened to `regarding`. Returns at once and never raises."""
        what = Happening(
            regarding.api_version or regarding.resource.api_version,
            regarding.resource.kind,
            regarding.namespace,
            regarding.name,
            regarding.uid,
            reason,
            _shortened(note),
            warning,
            action,
        )
        with self._condition:
            if self._stopping or len(self._waiting) >= QUEUE_SIZE:
                self._outcomes["dropped"] += 1
                return
            self._waiting.append((what, self._clock.monotonic(), self._clock.now()))
            self._condition.notify_all()

    def read(self) -> Iterable[tuple[tuple[str, ...], float]]:
        """How many events were written, merged, dropped and failed: for metrics."""
        with self._condition:
            return [((outcome,), float(count)) for outcome, count in self._outcomes.items()]

    def _run(self) -> None:
        while (next_ := self._next()) is not None:
            what, at, time = next_
            outcome = self._write(what, at, time)
            with self._condition:
                self._outcomes[outcome] += 1

    def _next(self) -> tuple[Happening, float, datetime] | None:
        """The next event, once another write is allowed; None at the end."""
        with self._condition:
            while True:
                wait = self._total.wait(self._clock.monotonic()) if self._waiting else None
                if wait == 0:
                    return self._waiting.popleft()
                if self._waiting and not self._waiting[0][0].warning:
                    self._waiting.popleft()
                    self._outcomes["dropped"] += 1
                    continue
                if self._stopping:
                    self._outcomes["dropped"] += len(self._waiting)
                    return None
                self._clock.wait(self._condition, wait)

    def _write(self, what: Happening, at: float, time: datetime) -> str:
        decision = self._aggregator.decide(what, at)
        if decision is None:
            return "merged"
        self._total.take(self._clock.monotonic())
        namespace = what.namespace or "default"
        try:
            if isinstance(decision, Create):
                self._client.create(EVENTS, self._event(decision.name, namespace, what, time))
            else:
                series = {"count": decision.count, "lastObservedTime": _micro_time(time)}
                self._client.patch(EVENTS, decision.name, namespace, MergePatch({"series": series}))
        except NotFound:
            self._aggregator.forget(what)  # it has expired, or its namespace is gone
            return "failed"
        except Exception as error:  # noqa: BLE001 - the fence's refusal, or whatever: decoration ends nothing
            if isinstance(decision, Create):
                self._aggregator.forget(what)
            self._failed(what, error)
            return "failed"
        self._complained = False
        return "written"

    def _failed(self, what: Happening, error: Exception) -> None:
        """Log what came instead of an answer: as a warning once, until the server takes Events again."""
        level = logging.DEBUG
        if not self._complained and _is_trouble(error):
            self._complained, level = True, logging.WARNING
        _logger.log(
            level,
            "events cannot be written, going on without",
            extra=fields(ns=what.namespace or "", name=what.name, reason=what.reason, error=str(error)),
        )

    def _event(self, name: str, namespace: str, what: Happening, time: datetime) -> dict[str, Any]:
        regarding = {
            "apiVersion": what.api_version,
            "kind": what.kind,
            "namespace": what.namespace,
            "name": what.name,
            "uid": what.uid,
        }
        return {
            "apiVersion": EVENTS.api_version,
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": _micro_time(time),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": what.action,
            "reason": what.reason,
            "type": "Warning" if what.warning else "Normal",
            "regarding": {key: value for key, value in regarding.items() if value},
            "note": what.note,
        }


def _is_trouble(error: Exception) -> bool:
    """Whether somebody should look into it: not if this process may not write now, or the namespace goes."""
    if isinstance(error, ApiError):
        return all(cause.get("reason") != "NamespaceTerminating" for cause in error.causes)
    return isinstance(error, TransportError)


def _micro_time(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _shortened(note: str) -> str:
    encoded = note.encode("utf-8", "replace")
    if len(encoded) <= MAX_NOTE:
        return encoded.decode()
    return encoded[: MAX_NOTE - 3].decode("utf-8", "ignore") + "..."
