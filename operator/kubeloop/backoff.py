"""How long to wait before the next try: exponential, capped, with jitter; no clock, no sleep.

Jitter is what client-go's rate limiters lack: without it, all objects that failed together retry
together for ever.
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

TOLD_JITTER = 0.25
"""Part of a Retry-After that may be added to it."""

TOLD_CAP = 60.0
"""Seconds; a longer Retry-After is not believed."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """A schedule of delays in seconds: ``base * factor**n``, at most `cap`, each spread by `jitter`.

    With jitter `j`, a delay `d` is drawn uniformly from ``[d * (1 - j), d]``, so that `cap` stays
    the longest wait there is. `j` must lie in [0, 1].
    """

    base: float
    cap: float
    factor: float = 2.0
    jitter: float = 0.5

    def __post_init__(self) -> None:
        if not (0 < self.base <= self.cap and self.factor >= 1 and 0 <= self.jitter <= 1):
            raise ValueError(f"impossible backoff: {self}")

    def delay(self, failures: int, rng: random.Random) -> float:
        """Seconds to wait after the `failures`-th failure in a row (the first is 1)."""
        full = self.cap
        # Past this many doublings the cap is reached for any base; a larger power would overflow a float.
        if failures <= 1000:
            try:
                full = min(self.cap, self.base * self.factor ** max(failures - 1, 0))
            except OverflowError:
                full = self.cap
        return full * (1 - self.jitter * rng.random())


def as_told(seconds: float, rng: random.Random) -> float:
    """The wait in seconds for a server's Retry-After: not sooner than told, and spread, because all who were
    told at once must not come back at once."""
    return min(seconds, TOLD_CAP) * (1 + TOLD_JITTER * rng.random())


class PerKeyBackoff(Generic[K]):
    """Counts failures in a row per key and hands out the schedule's delays. Not thread-safe."""

    def __init__(self, schedule: Backoff, rng: random.Random | None = None) -> None:
        self._schedule = schedule
        self._rng = rng or random.Random()
        self._failures: dict[K, int] = {}

    def failed(self, key: K) -> float:
        """Record one more failure of `key` and return the seconds to wait before its next try."""
        count = self._failures.get(key, 0) + 1
        self._failures[key] = count
        return self._schedule.delay(count, self._rng)

    def forget(self, key: K) -> None:
        """`key` succeeded or is gone: its next failure starts from the base again."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """How often `key` failed in a row."""
        return self._failures.get(key, 0)

    def __len__(self) -> int:
        return len(self._failures)
