"""A thread-safe, delaying, prioritised, rate-limited queue of keys."""

from __future__ import annotations

import random
import threading
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from kubeloop.backoff import Backoff, PerKeyBackoff
from kubeloop.clock import Clock, SystemClock
from kubeloop.queue.core import Item, QueueCore

K = TypeVar("K", bound=Hashable)

RETRY_BACKOFF = Backoff(base=0.1, cap=60.0, factor=2.0, jitter=0.5)
"""Delays after failed reconciles.

client-go goes from 5 ms to 1000 s: a dozen tries in the first half minute help nobody, and a quarter
of an hour of silence after the cause is gone is what users complain of (kubernetes#112325).
"""


class QueueObserver(Protocol):
    """Told of what happens in the queue, under its lock: must be quick and must not raise.

    What can be looked up when somebody asks is in `QueueStats` instead.
    """

    def taken(self, waited: float) -> None:
        """A worker got a key that was due for `waited` seconds."""
        ...

    def finished(self, worked: float) -> None:
        """It is done with it after `worked` seconds."""
        ...

    def retried(self) -> None:
        """A key failed and will be tried again."""
        ...


@dataclass(frozen=True, slots=True)
class QueueStats:
    """A look at a queue."""

    ready: dict[int, int]
    """Keys that wait for a worker, by priority."""
    delayed: int
    """Keys that wait for their time (a resync, a backoff), or for the reconcile of them that runs."""
    failing: int
    """Keys whose last reconcile failed."""
    adds: int
    """How often a key became due so far."""
    busy: list[float]
    """For how many seconds each worker that is busy has been with its key."""


class WorkQueue(Generic[K]):
    """See the package for the contract. All methods may be called from any thread."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        backoff: Backoff = RETRY_BACKOFF,
        rng: random.Random | None = None,
        observer: QueueObserver | None = None,
    ) -> None:
        self._clock: Clock = clock or SystemClock()
        self._observer = observer
        # One lock owns everything below.
        lock = threading.Lock()
        self._condition = threading.Condition(lock)  # workers wait here for something to take
        self._quiet = threading.Condition(lock)  # `wait_quiet` waits here
        self._timer_until: float | None = None  # what the worker that watches the clock waits for
        self._idle = 0  # workers that wait
        self._core: QueueCore[K] = QueueCore()
        self._failures: PerKeyBackoff[K] = PerKeyBackoff(backoff, rng)
        self._started: dict[K, float] = {}  # keys being processed -> since when
        self._urgent: set[K] = set()  # keys with an urgent add while being processed
        self._stopping = False
        self._draining = False
        self._changed_at = self._clock.monotonic()

    def add(self, key: K, *, after: float = 0.0, priority: int = 0, urgent: bool = False) -> None:
        """Queue `key`, due in `after` seconds. Ignored once the queue is shut down."""
        with self._condition:
            if self._stopping:
                return
            now = self._clock.monotonic()
            if urgent and key in self._started:
                self._urgent.add(key)
            self._core.add(key, now, after=after, priority=priority, urgent=urgent)
            if after <= 0:
                self._changed_at = now
            self._wake(now)

    def get(self, timeout: float | None = None) -> Item[K] | None:
        """Wait for a due key; None when the queue is shut down or `timeout` seconds are over.

        The caller must call `done` with the key on every path.
        """
        with self._condition:
            deadline = None if timeout is None else self._clock.monotonic() + timeout
            while True:
                now = self._clock.monotonic()
                if self._stopping and not (self._draining and self._core.next_due(now) == 0.0):
                    return None
                item = self._core.take(now)
                if item is not None:
                    self._started[item.key] = now
                    if self._observer is not None:
                        self._observer.taken(item.waited)
                    if self._timer_until is None:
                        self._wake(now)  # somebody else has to watch the clock now
                    return item
                if deadline is not None and deadline <= now:
                    self._wake(now)  # the same
                    return None
                self._wait(now, deadline)

    def _wake(self, now: float) -> None:
        """Wake a worker if there is something for it: a key that is due, or a time to watch for that is
        earlier than what is watched. Each worker woken in vain costs more than the queue's own work."""
        if self._idle:
            due = self._core.next_due(now)
            if due is not None and (not due or self._timer_until is None or now + due < self._timer_until):
                self._condition.notify()

    def _wait(self, now: float, deadline: float | None) -> None:
        """Wait for work. Only one worker watches the clock for delayed keys, the others just sleep:
        otherwise each delayed key would wake them all."""
        due = self._core.next_due(now)
        until = None if due is None else now + due
        if until is not None and (self._timer_until is None or until < self._timer_until):
            self._timer_until = until
        else:
            until = None
        ends = [at for at in (until, deadline) if at is not None]
        self._idle += 1
        try:
            self._clock.wait(self._condition, min(ends) - now if ends else None)
        finally:
            self._idle -= 1
        if until is not None and self._timer_until == until:
            self._timer_until = None

    def done(self, key: K) -> None:
        """The worker that got `key` has finished with it, for better or worse."""
        with self._condition:
            now = self._clock.monotonic()
            started = self._started.pop(key, None)
            self._urgent.discard(key)
            self._core.done(key, now)
            self._changed_at = now
            if self._observer is not None and started is not None:
                self._observer.finished(now - started)
            if key in self._core:
                self._wake(now)
            self._quiet.notify_all()

    def retry(self, key: K, *, priority: int = 0, at_least: float = 0.0) -> float:
        """`key` failed: queue it again after its backoff, and not before `at_least` seconds, whatever happens
        (what a server asked for). Returns the delay in seconds."""
        with self._condition:
            delay = max(self._failures.failed(key), at_least)
            if not self._stopping:
                now, urgent = self._clock.monotonic(), key in self._urgent
                self._core.retry(key, now, delay, priority=priority, urgent=urgent, at_least=at_least)
                if self._observer is not None:
                    self._observer.retried()
                self._wake(now)
            return delay

    def forget(self, key: K) -> None:
        """`key` succeeded or is gone: its backoff starts from the beginning next time."""
        with self._condition:
            self._failures.forget(key)

    def discard(self, key: K) -> None:
        """Drop `key`: nothing is left to do for it. Forgets its failures too."""
        with self._condition:
            self._core.discard(key)
            self._failures.forget(key)

    def failures(self, key: K) -> int:
        """How often `key` failed in a row."""
        with self._condition:
            return self._failures.failures(key)

    def shut_down(self, *, drain: bool = False) -> None:
        """Take no more adds and wake everybody; with `drain`, still hand out what is due now."""
        with self._condition:
            self._stopping = True
            self._draining = drain
            if not drain:
                self._core.clear()
            self._condition.notify_all()
            self._quiet.notify_all()

    def wait_quiet(self, quiet: float, timeout: float) -> bool:
        """Wait until nothing was due, taken or added for `quiet` seconds; False after `timeout`.

        Delayed keys (resync, backoff) do not count: they are known and wait for their time.
        """
        with self._condition:
            deadline = self._clock.monotonic() + timeout
            while True:
                now = self._clock.monotonic()
                idle = not self._core.processing and self._core.next_due(now) != 0.0
                left = self._changed_at + quiet - now
                if self._stopping or (idle and left <= 0):
                    return True
                if now >= deadline:
                    return False
                wait = min(deadline - now, left if idle and left > 0 else deadline - now)
                self._clock.wait(self._quiet, wait)

    @property
    def ready(self) -> int:
        """Keys that are due and wait for a worker."""
        with self._condition:
            return self._core.ready

    def __len__(self) -> int:
        with self._condition:
            return len(self._core)

    def busy(self) -> dict[K, float]:
        """The keys being processed and for how many seconds already."""
        with self._condition:
            now = self._clock.monotonic()
            return {key: now - since for key, since in self._started.items()}

    def stats(self) -> QueueStats:
        """How it stands; for metrics and status pages, since it looks at every key."""
        with self._condition:
            now = self._clock.monotonic()
            self._core.next_due(now)  # what has become due since somebody last looked
            ready = self._core.ready_by_priority()
            return QueueStats(
                ready=ready,
                delayed=len(self._core) - sum(ready.values()),
                failing=len(self._failures),
                adds=self._core.came_due,
                busy=[now - since for since in self._started.values()],
            )
