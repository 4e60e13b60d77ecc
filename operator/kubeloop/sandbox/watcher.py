"""One subscription to the store's changes."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from kubeloop.sandbox.records import Event, ResourceKey

if TYPE_CHECKING:
    from kubeloop.sandbox.store import Store

WATCH_QUEUE = 20_000
"""How many undelivered events a watcher may have before it is closed, as the real server drops slow ones."""


class Watcher:
    """Events of one resource (optionally one namespace, one name), queued until they are taken.

    Only of what comes after revision `after`: one from a revision that the store has yet to reach hears
    nothing until then. `key` None means all resources. `wake` is a condition that its reader waits on; it is
    notified on each event and on close. Several watchers of one reader may share it.
    """

    def __init__(
        self,
        store: Store,
        key: ResourceKey | None,
        namespace: str | None,
        name: str | None,
        wake: threading.Condition | None = None,
        after: int = 0,
    ) -> None:
        self._store = store
        self._after = after
        self.key = key
        self.namespace = namespace
        self.name = name
        self.wake = wake or threading.Condition()
        self._events: deque[Event] = deque()
        self.closed = False
        self.overflowed = False

    def put(self, event: Event) -> None:
        """Called by the store, in revision order."""
        if event.record.revision <= self._after:
            return
        with self.wake:
            if len(self._events) >= WATCH_QUEUE:
                self.overflowed = True
            else:
                self._events.append(event)
            self.wake.notify_all()

    def take(self) -> list[Event]:
        """All queued events; empty when there are none. Never waits."""
        with self.wake:
            events = list(self._events)
            self._events.clear()
            return events

    def ready(self) -> bool:
        """Whether there is something to do for the reader (hold `wake` to wait for it)."""
        return bool(self._events) or self.closed or self.overflowed

    def progress(self) -> int | None:
        """The revision up to which everything has been taken; None while events are queued, until the store
        has come to where the watcher begins, and once it is closed, since it misses what happens then."""
        revision = self._store.watcher_progress(self)
        return None if self.closed or revision is None or revision < self._after else revision

    def pending(self) -> bool:
        return bool(self._events)

    def close(self) -> None:
        """Stop receiving; a reader that waits is woken. Safe from any thread, any number of times."""
        self._store.forget_watcher(self)
        with self.wake:
            self.closed = True
            self.wake.notify_all()
