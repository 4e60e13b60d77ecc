"""How often one child is repaired: a fight with another actor costs a bounded number of writes. Pure.

Whoever else insists on his own values answers each repair at once, and two programs that do so would write
as fast as the server lets them, for ever. A burst is let through at once, so that accidents, and people who
try things by hand, wait for nothing.
"""

from __future__ import annotations

from cachetools import LRUCache

BURST = 20
"""Repairs of one child that need not wait."""

INTERVAL = 5.0
"""Seconds in which one more is earned."""

CHILDREN_REMEMBERED = 4096
"""What falls out of memory has its whole burst again; a fight stays in, as it is what was used last."""


class RepairPace:
    """A token bucket for each child. Not thread-safe."""

    def __init__(self) -> None:
        self._paid: LRUCache[tuple[str, str], float] = LRUCache(CHILDREN_REMEMBERED)

    def take(self, kind: str, key: str, now: float) -> float:
        """Ask to repair a child at `now` (monotonic seconds): 0, and it counts; or the seconds until it may
        be."""
        paid = max(self._paid.get((kind, key), now), now)  # when all past repairs are paid off
        early = paid + INTERVAL - now - BURST * INTERVAL
        if early > 0:
            return early
        self._paid[kind, key] = paid + INTERVAL
        return 0.0
