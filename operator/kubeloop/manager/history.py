"""What the controllers did lately, for the status page: the newest reconciles, and what is failing."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from datetime import datetime

from kubeloop.clock import Clock
from kubeloop.controller.engine import End, Outcome

RECENT = 512
"""Reconciles that are remembered."""

FAILING = 1000
"""Failing objects that are remembered; the oldest are forgotten first."""


@dataclass(frozen=True, slots=True)
class Past:
    """One reconcile that has ended."""

    key: str
    at: float
    """Monotonic seconds."""
    seconds: float
    end: End
    writes: int


@dataclass(frozen=True, slots=True)
class Trouble:
    """An object whose last reconcile did not go well."""

    key: str
    end: End
    error: str
    since: datetime
    times: int


class History:
    """Of one controller. Thread-safe; `record` costs about a microsecond."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._recent: deque[Past] = deque(maxlen=RECENT)
        self._lock = threading.Lock()  # guards _troubles
        self._troubles: dict[str, Trouble] = {}

    def record(self, key: str, outcome: Outcome) -> None:
        """One reconcile has ended."""
        self._recent.append(
            Past(key, self._clock.monotonic(), outcome.seconds, outcome.end, len(outcome.changes))
        )
        if outcome.error is None:
            if key in self._troubles:
                with self._lock:
                    self._troubles.pop(key, None)
            return
        error = str(outcome.error) or type(outcome.error).__name__
        with self._lock:
            before = self._troubles.pop(key, None)
            since, times = (before.since, before.times) if before else (self._clock.now(), 0)
            self._troubles[key] = Trouble(key, outcome.end, error, since, times + 1)
            while len(self._troubles) > FAILING:
                del self._troubles[next(iter(self._troubles))]

    def recent(self) -> list[Past]:
        """The newest reconciles, oldest first."""
        return list(self._recent)

    def troubles(self) -> list[Trouble]:
        """The objects that are failing, the newest failure first."""
        with self._lock:
            return list(reversed(self._troubles.values()))
