"""`Store`: the local copy of all objects of one kind, and what may be asked of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from kubeloop.cache.codec import Candidate, Codec, Entry, Undecodable, raw_item
from kubeloop.cache.ledger import Ledger, Notice, Scope
from kubeloop.model import ApiObject

K = TypeVar("K", bound=ApiObject)

HOT = 512
"""Objects that are kept decoded, the last that changed: what is reconciled next is likely one of them."""

ECHOES = 256
"""Own writes whose echo on the watch is waited for with their bytes. What falls out is decoded once more."""

_list = list  # within the class the name is a method's


class Store(Generic[K]):
    """Objects by key and by indexes. Thread-safe.

    Objects are immutable, so what callers do with them cannot reach the store. Most are decoded when they are
    read (10 to 30 µs each), the `HOT` ones are at hand. Each query is answered from one moment. Objects are
    there from the first own write or list on; whether all are is the informer's `has_synced`.
    """

    def __init__(self, codec: Codec[K], scopes: Iterable[Scope] = (None,)) -> None:
        self._codec = codec
        # Guards _ledger. Held for dictionary work and the user's index functions, never for I/O or handlers.
        self._lock = threading.RLock()
        self._ledger = Ledger()
        self._hot: dict[str, tuple[Entry, K]] = {}  # oldest first
        self._echoes: dict[bytes, Candidate[K]] = {}  # oldest first
        self._ledger.open_scopes(scopes)

    # Reading

    def get(self, key: str) -> K | None:
        """The object `namespace/name` (or `name`), or None."""
        entry = self._ledger.entries.get(key)  # one dictionary look-up needs no lock
        if entry is None:
            return None
        hot = self._hot.get(key)
        return hot[1] if hot is not None and hot[0] is entry else self._codec.read(entry)

    def list(self) -> _list[K]:
        """All objects, in no particular order. Decodes them all: prefer an index."""
        with self._lock:
            entries = list(self._ledger.entries.values())
        return [self._codec.read(entry) for entry in entries]

    def keys(self) -> _list[str]:
        """All keys."""
        with self._lock:
            return list(self._ledger.entries)

    def by_index(self, index: str, value: str) -> _list[K]:
        """The objects that an index has under `value`. Raises KeyError for an unknown index.

        Built in: "owner" (uid of the controller owner) and "namespace".
        """
        with self._lock:
            entries = [self._ledger.entries[key] for key in self._ledger.indexes.keys(index, value)]
        return [self._codec.read(entry) for entry in entries]

    def keys_by_index(self, index: str, value: str) -> _list[str]:
        """The same without decoding anything."""
        with self._lock:
            return self._ledger.indexes.keys(index, value)

    def version_of(self, key: str) -> int:
        """The resourceVersion of an object without decoding it; 0 if it is not there."""
        entry = self._ledger.entries.get(key)
        return entry.version if entry else 0

    def __len__(self) -> int:
        return len(self._ledger.entries)

    def __contains__(self, key: object) -> bool:
        return key in self._ledger.entries

    @property
    def resource_version(self) -> int:
        """The newest version that the watch has shown."""
        return max(self._ledger.seen.values(), default=0)

    @property
    def index_errors(self) -> int:
        """How often an index function raised."""
        return self._ledger.indexes.errors

    def add_index(self, name: str, function: Callable[[K], Iterable[str]]) -> None:
        """Index by the values that `function` gives for an object; what is there is indexed at once.

        The function must be pure and quick: it runs under the store's lock. If it raises, the object is in
        the store but not in this index. Raises ValueError if the name is taken.
        """
        with self._lock:
            objects = {key: self._codec.read(entry) for key, entry in self._ledger.entries.items()}
            self._ledger.indexes.add(name, function, objects)

    # Own writes

    def write_through(self, obj: Mapping[str, object] | bytes) -> K | None:
        """Take in the answer to an own write, so that the next read sees it; gives it decoded, None if it
        cannot be read.

        Ignored if the store or its watch know better already, or if nobody watches that namespace.
        """
        raw = obj.rstrip() if isinstance(obj, bytes) else raw_item(obj)
        candidate = self._codec.candidate(raw)
        if not isinstance(candidate, Candidate):
            return None
        decoded = candidate.object
        with self._lock:
            if self._ledger.write_through(candidate):
                self._keep_hot(candidate)
                self._echoes[raw] = candidate
                if len(self._echoes) > ECHOES:
                    del self._echoes[next(iter(self._echoes))]
        return decoded

    def forget(self, key: str, resource_version: int | None = None, *, uid: str | None = None) -> None:
        """An own delete has removed the object for good (the answer was a Status, not a dying object).

        Say which one it was by `uid`, or as the object that has not changed since `resource_version`: if the
        store holds another by now, nothing happens.
        """
        with self._lock:
            entry = self._ledger.entries.get(key)
            if entry is None or (uid is not None and entry.uid != uid):
                return
            if uid is None and resource_version is not None and entry.version > resource_version:
                return
            self._ledger.forget(key, entry.uid)
            self._hot.pop(key, None)

    # For the reflector

    def candidate(self, raw: bytes) -> Candidate[K] | Undecodable | None:
        """See `Codec.candidate`. The echo of an own write is, byte for byte, the answer that was decoded
        then."""
        with self._lock:
            echo = self._echoes.pop(raw, None) if self._echoes else None
        return echo if echo is not None else self._codec.candidate(raw)

    def begin_list(self) -> int:
        """See `Ledger.begin_list`."""
        with self._lock:
            return self._ledger.begin_list()

    def replace(
        self,
        scope: Scope,
        found: Mapping[str, Candidate[K]],
        spoiled: Mapping[str, Undecodable],
        version: int,
        began: int,
    ) -> _list[Notice]:
        """See `Ledger.replace`."""
        with self._lock:
            notices = self._ledger.replace(scope, found, spoiled, version, began)
            entries = self._ledger.entries
            self._hot = {key: hot for key, hot in self._hot.items() if entries.get(key) is hot[0]}
            for candidate in found.values():
                self._keep_hot(candidate)
            return notices

    def change(self, scope: Scope, candidate: Candidate[K]) -> _list[Notice]:
        """See `Ledger.change`."""
        with self._lock:
            notices = self._ledger.change(scope, candidate)
            self._keep_hot(candidate)
            return notices

    def remove(
        self, scope: Scope, key: str, uid: str, version: int, final: Candidate[K] | None
    ) -> _list[Notice]:
        """See `Ledger.remove`."""
        with self._lock:
            notices = self._ledger.remove(scope, key, uid, version, final)
            if key not in self._ledger.entries:
                self._hot.pop(key, None)
            return notices

    def spoil(self, scope: Scope, bad: Undecodable) -> _list[Notice]:
        """See `Ledger.spoil`."""
        with self._lock:
            return self._ledger.spoil(scope, bad)

    def observe(self, scope: Scope, version: int) -> _list[Notice]:
        """See `Ledger.observe`."""
        with self._lock:
            return self._ledger.observe(scope, version)

    def known(self) -> dict[str, Entry]:
        """What handlers have been told of."""
        with self._lock:
            return self._ledger.known()

    def _keep_hot(self, candidate: Candidate[K]) -> None:
        """Called with the lock held."""
        if candidate.decoded is None or self._ledger.entries.get(candidate.key) is not candidate.entry:
            return
        self._hot.pop(candidate.key, None)
        self._hot[candidate.key] = (candidate.entry, candidate.decoded)
        if len(self._hot) > HOT:
            del self._hot[next(iter(self._hot))]
