"""A clock that runs by itself and can be moved forward besides."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

from kubeloop.clock import SystemClock


class MovableClock(SystemClock):
    """The machine's clocks plus what `advance` was called with: for a sandbox that serves people."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._lock = threading.Lock()  # guards both
        self._waiting: list[threading.Condition] = []

    def monotonic(self) -> float:
        return super().monotonic() + self._ahead

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self._ahead)

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        with self._lock:
            self._waiting.append(condition)
        try:
            super().wait(condition, timeout)
        finally:
            with self._lock:
                self._waiting.remove(condition)

    def advance(self, seconds: float) -> None:
        """Jump forward by `seconds` and wake all waiters, so that they look at the time again."""
        if seconds < 0:
            raise ValueError("time only moves forward")
        with self._lock:
            self._ahead += seconds
            conditions = list(self._waiting)
        for condition in conditions:
            with condition:
                condition.notify_all()
