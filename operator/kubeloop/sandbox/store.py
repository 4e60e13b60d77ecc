"""The one store of everything: current objects, a bounded history of changes, and watchers on it.

Contract:
- One integer revision for all resources; each write takes the next one and puts it into the object's
  `metadata.resourceVersion`. Objects are immutable once stored; a change stores a new one.
- The state of a resource at any revision that is not compacted can still be listed; a watch can start at any.
- A watcher is only told of (and woken for) the resource, namespace and name it asked for.
- Thread-safe. Nothing waits in here, and no callback runs under the lock but a watcher's `notify`.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable

from kubeloop.sandbox.records import (
    Backup,
    Changed,
    Compacted,
    Event,
    EventType,
    Exists,
    Record,
    ResourceKey,
    object_key,
    to_json,
)
from kubeloop.sandbox.registry import Object
from kubeloop.sandbox.watcher import Watcher

__all__ = [
    "DEFAULT_HISTORY",
    "Backup",
    "Changed",
    "Compacted",
    "Event",
    "EventType",
    "Exists",
    "Record",
    "ResourceKey",
    "Store",
    "Watcher",
    "object_key",
    "to_json",
]

DEFAULT_HISTORY = 20_000
"""How many changes are kept before the oldest are compacted."""


class _Table:
    """The objects and the history of one resource; all access under the store's lock."""

    __slots__ = ("begin", "changed", "events", "items", "keys", "revisions", "watchers")

    def __init__(self) -> None:
        self.items: dict[str, Record] = {}
        self.keys: list[str] = []  # sorted
        self.events: list[Event] = []
        self.revisions: list[int] = []  # of `events`, for bisecting
        self.changed = 0  # the newest change's revision
        self.begin = 0  # watches from before this revision are refused
        self.watchers: dict[tuple[str | None, str | None], list[Watcher]] = {}


class Store:
    """See the module's docstring. `history` bounds the number of kept changes over all resources."""

    def __init__(self, *, history: int = DEFAULT_HISTORY, first_revision: int = 1) -> None:
        self._lock = threading.RLock()  # guards everything below
        self._tables: dict[ResourceKey, _Table] = {}
        self._order: deque[ResourceKey] = deque()  # the resource of each kept change, oldest first
        self._history = history
        self._revision = first_revision
        self._compacted = 0
        self.epoch = 0
        """How often another state was restored."""
        self._watching_all: list[Watcher] = []

    # -- reading ---------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """The revision of the newest write."""
        return self._revision

    @property
    def compacted(self) -> int:
        """Changes up to this revision are no longer in the history."""
        return self._compacted

    def get(self, key: ResourceKey, namespace: str, name: str) -> Record | None:
        """The current state of one object."""
        table = self._tables.get(key)
        # A dict read is atomic, and records are immutable: no lock on the hottest path.
        return None if table is None else table.items.get(f"{namespace}/{name}" if namespace else name)

    def current(self, key: ResourceKey, namespace: str | None = None) -> tuple[list[Record], int]:
        """All current objects (of one namespace), in key order, and the revision that state has."""
        with self._lock:
            table = self._tables.get(key)
            if table is None:
                return [], self._revision
            items = table.items
            return [items[k] for k in _within(table.keys, namespace)], self._revision

    def count(self, key: ResourceKey) -> int:
        """How many objects a resource has."""
        table = self._tables.get(key)
        return 0 if table is None else len(table.items)

    def list_at(self, key: ResourceKey, revision: int, namespace: str | None = None) -> list[Record]:
        """The objects as they were at `revision`.

        Raises `Compacted` when that is no longer known. The caller checks that it is not in the future.
        """
        with self._lock:
            if revision < self._compacted:
                raise Compacted(revision, self._compacted)
            table = self._tables.get(key)
            if table is None:
                return []
            undone: dict[str, Record | None] = {}
            for event in table.events[bisect_right(table.revisions, revision) :]:
                undone.setdefault(object_key(event.record.namespace, event.record.name), event.previous)
            if not undone:
                return [table.items[k] for k in _within(table.keys, namespace)]
            state: dict[str, Record] = dict(table.items)
            for name, record in undone.items():
                if record is None:
                    state.pop(name, None)
                else:
                    state[name] = record
            return [state[k] for k in _within(sorted(state), namespace)]

    def changed(self, key: ResourceKey) -> int:
        """The revision of a resource's newest change; 0 when there never was one."""
        table = self._tables.get(key)
        return 0 if table is None else table.changed

    def oldest(self, key: ResourceKey) -> int:
        """The oldest revision that a resource can be watched from."""
        table = self._tables.get(key)
        return self._compacted if table is None else max(self._compacted, table.begin)

    def resources(self) -> list[ResourceKey]:
        """The resources that have objects now."""
        with self._lock:
            return [key for key, table in self._tables.items() if table.items]

    # -- writing ---------------------------------------------------------------------------------

    def create(self, key: ResourceKey, namespace: str, name: str, obj: Object) -> Record:
        """Store a new object. Raises `Exists`."""
        with self._lock:
            table = self._table(key)
            name_key = object_key(namespace, name)
            if name_key in table.items:
                raise Exists(name_key)
            record = self._next(namespace, name, obj)
            insort(table.keys, name_key)
            table.items[name_key] = record
            self._publish(key, table, Event("ADDED", key, record, None))
            return record

    def update(self, key: ResourceKey, old: Record, obj: Object) -> Record:
        """Replace `old` by a new state. Raises `Changed` if `old` is not the current state any more."""
        with self._lock:
            table = self._table(key)
            name_key = object_key(old.namespace, old.name)
            if table.items.get(name_key) is not old:
                raise Changed(name_key)
            record = self._next(old.namespace, old.name, obj)
            table.items[name_key] = record
            self._publish(key, table, Event("MODIFIED", key, record, old))
            return record

    def delete(self, key: ResourceKey, old: Record, last: Object | None = None) -> Record:
        """Remove `old`; `last` is the final state to tell watchers of. Raises `Changed` as `update` does.

        The result carries the revision of the deletion.
        """
        with self._lock:
            table = self._table(key)
            name_key = object_key(old.namespace, old.name)
            if table.items.get(name_key) is not old:
                raise Changed(name_key)
            record = self._next(old.namespace, old.name, old.obj if last is None else last)
            del table.items[name_key]
            del table.keys[bisect_left(table.keys, name_key)]
            self._publish(key, table, Event("DELETED", key, record, old))
            return record

    def compact(self, revision: int | None = None) -> None:
        """Forget the changes up to `revision` (None: all): reads and watches from before get `Compacted`."""
        with self._lock:
            limit = self._revision if revision is None else min(revision, self._revision)
            while self._order:
                table = self._tables[self._order[0]]
                if table.revisions[0] > limit:
                    break
                self._drop_oldest()
            self._compacted = max(self._compacted, limit)

    def backup(self) -> Backup:
        """The present state, to `restore` later."""
        with self._lock:
            return Backup(self._revision, {key: dict(table.items) for key, table in self._tables.items()})

    def restore(self, backup: Backup) -> None:
        """Be as at the time of `backup`, revisions included, without a history; all watchers are closed."""
        for watcher in self.watchers():
            watcher.close()
        with self._lock:
            self.epoch += 1
            self._revision = self._compacted = backup.revision
            self._order.clear()
            self._tables = {}
            for key, items in backup.items.items():
                table = self._table(key)
                table.items, table.keys = dict(items), sorted(items)
                table.changed = backup.revision

    # -- watching --------------------------------------------------------------------------------

    def watch(
        self, key: ResourceKey, after: int, namespace: str | None = None, name: str | None = None
    ) -> Watcher:
        """Everything that happens after revision `after`, beginning with what the history holds of it.

        Of an `after` that is yet to come nothing is heard until then. Raises `Compacted` when the history no
        longer reaches back to `after`.
        """
        with self._lock:
            table = self._table(key)
            oldest = self.oldest(key)
            if after < oldest:
                raise Compacted(after, oldest)
            watcher = Watcher(self, key, namespace, name, after=after)
            for event in table.events[bisect_right(table.revisions, after) :]:
                record = event.record
                if namespace in (None, record.namespace) and name in (None, record.name):
                    watcher.put(event)
            table.watchers.setdefault((namespace, name), []).append(watcher)
            return watcher

    def begin(self, key: ResourceKey) -> None:
        """A resource is served from now on: as in the real server its watches reach back no further."""
        with self._lock:
            self._table(key).begin = self._revision

    def list_and_watch(
        self, key: ResourceKey, namespace: str | None = None, name: str | None = None
    ) -> tuple[list[Record], int, Watcher]:
        """The current state and a watcher of everything after it, with nothing in between lost."""
        with self._lock:
            records, revision = self.current(key, namespace)
            if name is not None:
                records = [record for record in records if record.name == name]
            return records, revision, self.watch(key, revision, namespace, name)

    def watch_all(self, wake: threading.Condition | None = None) -> tuple[list[Event], Watcher]:
        """Everything there is now, as ADDED events, and a watcher of everything after it; all resources."""
        with self._lock:
            watcher = Watcher(self, None, None, None, wake)
            self._watching_all.append(watcher)
            return [
                Event("ADDED", key, record, None)
                for key, table in self._tables.items()
                for record in table.items.values()
            ], watcher

    def watcher_progress(self, watcher: Watcher) -> int | None:
        """See `Watcher.progress`."""
        with self._lock:
            return None if watcher.pending() else self._revision

    def forget_watcher(self, watcher: Watcher) -> None:
        """See `Watcher.close`."""
        with self._lock:
            if watcher in self._watching_all:
                self._watching_all.remove(watcher)
            table = self._tables.get(watcher.key) if watcher.key is not None else None
            if table is None:
                return
            group = table.watchers.get((watcher.namespace, watcher.name), [])
            if watcher in group:
                group.remove(watcher)
                if not group:
                    del table.watchers[(watcher.namespace, watcher.name)]

    def watchers(self) -> Iterable[Watcher]:
        """All open watchers."""
        with self._lock:
            by_table = [w for t in self._tables.values() for group in t.watchers.values() for w in group]
            return by_table + self._watching_all

    # -- inside ----------------------------------------------------------------------------------

    def _table(self, key: ResourceKey) -> _Table:
        table = self._tables.get(key)
        if table is None:
            table = self._tables[key] = _Table()
        return table

    def _next(self, namespace: str, name: str, obj: Object) -> Record:
        self._revision += 1
        metadata = {**obj["metadata"], "resourceVersion": str(self._revision)}
        return Record(namespace, name, {**obj, "metadata": metadata}, self._revision)

    def _publish(self, key: ResourceKey, table: _Table, event: Event) -> None:
        table.changed = event.record.revision
        table.events.append(event)
        table.revisions.append(event.record.revision)
        self._order.append(key)
        if len(self._order) > self._history:
            # In batches: dropping from the front of a list moves all the rest.
            for _ in range(max(1, self._history // 10)):
                self._drop_oldest()
        for watcher in self._watching_all:
            watcher.put(event)
        watchers = table.watchers
        if watchers:
            namespace, name = event.record.namespace, event.record.name
            for scope in ((None, None), (namespace, None), (namespace, name), (None, name)):
                for watcher in watchers.get(scope, ()):
                    watcher.put(event)

    def _drop_oldest(self) -> None:
        table = self._tables[self._order.popleft()]
        self._compacted = table.revisions[0]
        del table.events[0], table.revisions[0]


def _within(keys: list[str], namespace: str | None) -> list[str]:
    if namespace is None:
        return keys
    # "0" follows "/" directly, so this is the range of everything beginning with "namespace/".
    return keys[bisect_left(keys, f"{namespace}/") : bisect_left(keys, f"{namespace}0")]
