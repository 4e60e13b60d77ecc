"""The queue's decisions: what is due, in which order, and when to look again."""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

LOW_PRIORITY = -100
"""For the initial list, relists and resyncs (controller-runtime's ``handler.LowPriority``)."""

AGING_SECONDS = 0.1
"""Head start, in seconds per point of priority, that a higher priority has over a lower one.

So `LOW_PRIORITY` yields to normal work for at most 10 s of its own age and then queues like it.
"""

URGENT_SPACING = 5.0
"""Seconds after a failure before an urgent add may retry the key, however long its backoff is."""


@dataclass(frozen=True, slots=True)
class Item(Generic[K]):
    """A key handed out to a worker, with what it waited for."""

    key: K
    priority: int
    waited: float
    """Seconds since the item became due."""


@dataclass(slots=True)
class _Entry:
    priority: int
    ready_at: float
    floor: float  # backoff: not before this time, whatever is added
    urgent_floor: float  # what an urgent add lowers the floor to
    ticket: int  # the heap tuple that speaks for this entry; older tuples are stale


class QueueCore(Generic[K]):
    """Which key is next. Not thread-safe; every method is told the time in monotonic seconds.

    Invariants:

    - every key in `_entries` is either in exactly one heap under its current ticket, or in
      `_processing`;
    - a heap tuple whose ticket is not its entry's is stale and skipped (lazy deletion);
    - `_ready_tickets` holds the ticket of each entry that is due, and of no other.
    """

    def __init__(self) -> None:
        self._entries: dict[K, _Entry] = {}
        self._processing: set[K] = set()
        self._waiting: list[tuple[float, int, K]] = []  # (ready_at, ticket, key)
        self._ready: list[tuple[float, int, K]] = []  # (deadline, ticket, key)
        self._ready_tickets: dict[int, float] = {}  # ticket -> since when it is due
        self._tickets = 0
        self.came_due = 0
        """How often a key became due: what client-go counts as an add, merged ones not counted again."""

    def add(self, key: K, now: float, *, after: float = 0.0, priority: int = 0, urgent: bool = False) -> None:
        """Ask for `key` to be processed in `after` seconds at `priority`; merges with what is there."""
        at = now + max(after, 0.0)
        entry = self._entries.get(key)
        if entry is None:
            self._entries[key] = entry = _Entry(priority, at, 0.0, 0.0, 0)
        else:
            raised = priority > entry.priority
            if urgent:
                entry.floor = min(entry.floor, entry.urgent_floor)
            earliest = max(min(entry.ready_at, at), entry.floor)
            if not raised and earliest == entry.ready_at:
                return
            entry.priority = max(entry.priority, priority)
            entry.ready_at = earliest
        if key not in self._processing:
            self._place(key, entry, now)

    def retry(
        self,
        key: K,
        now: float,
        delay: float,
        *,
        priority: int = 0,
        urgent: bool = False,
        at_least: float = 0.0,
    ) -> None:
        """Schedule a failed `key` again in `delay` seconds; plain adds do not bring it forward.

        What was added while the key was being processed is merged into the retry, which will see
        that change too; `urgent` says that such a change asked for an early retry. Even that comes in no
        less than `at_least` seconds.
        """
        delay = max(delay, at_least)
        entry = self._entries.get(key)
        if entry is not None:
            priority = max(priority, entry.priority)
            self._ready_tickets.pop(entry.ticket, None)
        urgent_floor = now + max(min(delay, URGENT_SPACING), at_least)
        at = urgent_floor if urgent else now + delay
        self._entries[key] = entry = _Entry(priority, at, at, urgent_floor, 0)
        if key not in self._processing:
            self._place(key, entry, now)

    def take(self, now: float) -> Item[K] | None:
        """Hand out the next due key, or None. The caller owes a `done` for it."""
        self._promote(now)
        while self._ready:
            _, ticket, key = heapq.heappop(self._ready)
            due_since = self._ready_tickets.pop(ticket, None)
            if due_since is None:
                continue
            entry = self._entries.pop(key)
            self._processing.add(key)
            return Item(key, entry.priority, now - due_since)
        return None

    def done(self, key: K, now: float) -> None:
        """`key` is no longer being processed; if it was added meanwhile, it queues at the tail."""
        self._processing.discard(key)
        entry = self._entries.get(key)
        if entry is not None:
            self._place(key, entry, now)

    def next_due(self, now: float) -> float | None:
        """Seconds until something is due (0 if something is); None if only an add can change that."""
        self._promote(now)
        if self._ready_tickets:
            return 0.0
        return max(self._waiting[0][0] - now, 0.0) if self._waiting else None

    def discard(self, key: K) -> None:
        """Drop what is queued for `key`, if anything."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._ready_tickets.pop(entry.ticket, None)

    def clear(self) -> None:
        """Drop all that is queued; keys being processed still owe their `done`."""
        self._entries.clear()
        self._waiting.clear()
        self._ready.clear()
        self._ready_tickets.clear()

    @property
    def ready(self) -> int:
        """Keys that a worker could take now."""
        return len(self._ready_tickets)

    def ready_by_priority(self) -> dict[int, int]:
        """The same by priority. Looks at every entry."""
        counts: dict[int, int] = {}
        for entry in self._entries.values():
            if entry.ticket in self._ready_tickets:
                counts[entry.priority] = counts.get(entry.priority, 0) + 1
        return counts

    @property
    def processing(self) -> int:
        """Keys that workers are busy with."""
        return len(self._processing)

    def __len__(self) -> int:
        """Keys that are due, delayed, or added again while being processed."""
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def _place(self, key: K, entry: _Entry, now: float) -> None:
        self._tickets += 1
        due_since = self._ready_tickets.pop(entry.ticket, None)
        entry.ticket = self._tickets
        if due_since is not None or entry.ready_at <= now:
            self.came_due += due_since is None
            # An entry that was due stays due and keeps its age when its priority is raised.
            self._make_ready(key, entry, now if due_since is None else due_since)
        else:
            heapq.heappush(self._waiting, (entry.ready_at, entry.ticket, key))
            if len(self._waiting) > 2 * len(self._entries) + 64:
                self._compact()

    def _make_ready(self, key: K, entry: _Entry, due_since: float) -> None:
        self._ready_tickets[entry.ticket] = due_since
        deadline = due_since - entry.priority * AGING_SECONDS
        heapq.heappush(self._ready, (deadline, entry.ticket, key))

    def _compact(self) -> None:
        """Drop stale tuples: a hot key leaves one behind each time its resync is brought forward."""
        self._waiting = [
            (entry.ready_at, entry.ticket, key)
            for key, entry in self._entries.items()
            if entry.ticket not in self._ready_tickets and key not in self._processing
        ]
        heapq.heapify(self._waiting)

    def _promote(self, now: float) -> None:
        while self._waiting:
            ready_at, ticket, key = self._waiting[0]
            entry = self._entries.get(key)
            current = entry is not None and entry.ticket == ticket and key not in self._processing
            if current and ready_at > now:
                return
            heapq.heappop(self._waiting)
            if current and entry is not None:
                self.came_due += 1
                self._make_ready(key, entry, ready_at)
