"""Time as a dependency: every deadline and every wait in the runtime goes through a `Clock`.

Two kinds of time exist and are never mixed. *Monotonic* seconds decide (deadlines, backoff, lease
expiry); they never jump. *Wall-clock* time is only ever written down (a timestamp in a status or a
log line); nothing is decided by comparing it.

Waiting is done on a `threading.Condition`, so that it can always be interrupted, and through the
clock, so that a test can move time by hand.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Where time comes from and how it is waited for."""

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back; only differences have a meaning."""
        ...

    def now(self) -> datetime:
        """The wall-clock time in UTC, for timestamps that people or other programs read."""
        ...

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        """Wait on `condition`, which the caller holds, for at most `timeout` seconds (None: for ever).

        May return early; the caller loops over its own predicate and deadline.
        """
        ...


class SystemClock:
    """The machine's clocks."""

    def monotonic(self) -> float:
        return time.monotonic()

    def now(self) -> datetime:
        return datetime.now(UTC)

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        # Waiting longer than TIMEOUT_MAX raises OverflowError: a server's "Retry-After: 1e12" or a
        # huge interval flag must not kill a thread.
        condition.wait(None if timeout is None else min(max(timeout, 0.0), threading.TIMEOUT_MAX))


class FakeClock:
    """A clock that only moves when `advance` is called; wakes everybody who waits on it.

    `start` is the wall-clock time at monotonic second 0.
    """

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._seconds = 0.0
        self._lock = threading.Lock()  # guards _seconds and _waiting
        self._waiting: dict[int, tuple[threading.Condition, int]] = {}

    def monotonic(self) -> float:
        with self._lock:
            return self._seconds

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.monotonic())

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        """Wait until notified or until `advance` was called (whether or not `timeout` is over)."""
        if timeout is not None and timeout <= 0:
            return
        key = id(condition)
        with self._lock:
            self._waiting[key] = (condition, self._waiting.get(key, (condition, 0))[1] + 1)
        try:
            condition.wait()
        finally:
            with self._lock:
                count = self._waiting[key][1] - 1
                if count:
                    self._waiting[key] = (condition, count)
                else:
                    del self._waiting[key]

    def advance(self, seconds: float) -> None:
        """Move time forward by `seconds` and wake all waiters, so that they look at it again."""
        if seconds < 0:
            raise ValueError("time only moves forward")
        with self._lock:
            self._seconds += seconds
            conditions = [condition for condition, _ in self._waiting.values()]
        for condition in conditions:
            with condition:
                condition.notify_all()


class StopEvent:
    """An event that is set once and can be waited for on a `Clock`, alone or beside other conditions."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock: Clock = clock or SystemClock()
        # Re-entrant: a signal handler may set the event while the main thread waits for it.
        self._condition = threading.Condition(threading.RLock())
        self._set = False
        self._others: list[threading.Condition] = []

    def is_set(self) -> bool:
        """Whether it was set."""
        return self._set

    def set(self) -> None:
        """Set it, for good, and wake everybody who waits for it."""
        with self._condition:
            self._set = True
            others = list(self._others)
            self._condition.notify_all()
        for condition in others:
            with condition:
                condition.notify_all()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds of the clock (None: for ever); whether the event is set."""
        deadline = None if timeout is None else self._clock.monotonic() + timeout
        with self._condition:
            while not self._set:
                left = None if deadline is None else deadline - self._clock.monotonic()
                if left is not None and left <= 0:
                    break
                self._clock.wait(self._condition, left)
            return self._set

    @contextmanager
    def waking(self, condition: threading.Condition) -> Iterator[None]:
        """While inside, setting the event also notifies `condition`, on which the caller waits for
        something else. Its lock must be re-entrant (a Condition's own is), see `set`."""
        with self._condition:
            self._others.append(condition)
        try:
            yield
        finally:
            with self._condition:
                self._others.remove(condition)
