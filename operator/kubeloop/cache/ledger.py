"""`Ledger`: what is in a store, and what its handlers have been told. A plain object: no lock, thread or I/O.

Three things write to it: the reflector's lists, its watch events, and the answers to our own writes, which
arrive at any time before or after the watch tells the same ("write-through"). The rules that keep them from
harming each other:

* An own write counts if it is newer than the object *and* than everything the watch has shown (`seen`): what
  is older than that the watch has already judged, perhaps by a deletion.
* Such an entry is *ahead*: events that are older than it are ignored, the event with its version confirms it.
  Handlers hear of it then, in the watch's order, and exactly once.
* When the watch has passed an entry's version without showing it, the object is out of its scope (a label
  selector) or of its world (a restored backup), and is dropped.
* A list is believed, also with lower versions than known; except about own writes whose answers came after
  the list was asked for and which are newer than it.
* A uid that we deleted never comes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kubeloop.cache.codec import Candidate, Entry, Undecodable
from kubeloop.cache.indexes import Indexes

Scope = str | None
"""What one reflector looks after: a namespace, or None for all there is."""


class Notice(NamedTuple):
    """A change to tell: `old` and `new` are never both None. `object` is the later of them, if decoded."""

    key: str
    old: Entry | None
    new: Entry | None
    object: Any = None
    own: bool = False


@dataclass(slots=True)
class _Ahead:
    """An own write that the watch has not shown yet."""

    serial: int
    """Counts own writes, and marks where between them a list was asked for."""
    version: int
    """Of the entry; 0 for a deletion, whose version the server does not tell."""
    dead: dict[str, int]
    """uids that we deleted and whose end the watch has not shown yet, with the last version that we had."""

    def is_late(self, entry: Entry) -> bool:
        """Whether something about the object is from before our deletion of it."""
        return entry.uid in self.dead or entry.version <= max(self.dead.values(), default=0)


class Ledger:
    """Entries by key, with the built-in indexes; see the module for the rules."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.indexes = Indexes()
        self.seen: dict[Scope, int] = {}
        """The newest version that the reflector of each scope has shown."""
        self._ahead: dict[str, _Ahead] = {}
        # What handlers know, where it is not what the store holds: ahead entries, own deletes, and objects
        # that became undecodable.
        self._told: dict[str, Entry | None] = {}
        self._serial = 0
        self._floor = 0  # no ahead entry has a lower version than this, except 0; saves looking at them all

    def known(self) -> dict[str, Entry]:
        """What handlers have been told of and is not gone."""
        told = {key: entry for key, entry in self.entries.items() if key not in self._told}
        told.update((key, entry) for key, entry in self._told.items() if entry is not None)
        return told

    # What the reflector brings

    def begin_list(self) -> int:
        """To be called before a list is asked for; its answer goes to `replace` with this number."""
        return self._serial

    def replace(
        self,
        scope: Scope,
        found: Mapping[str, Candidate[Any]],
        spoiled: Mapping[str, Undecodable],
        version: int,
        began: int,
    ) -> list[Notice]:
        """A whole list as of `version`: everything else in the scope is gone. Deletions are told first."""
        self.seen[scope] = version
        gone = [
            key
            for key in {**self.entries, **self._told, **self._ahead}
            if key not in found and key not in spoiled and _covers(scope, key)
        ]
        notices: list[Notice] = []
        for key in gone:
            if self._outlives(key, version, began):
                notices += self._bury(key, version)
                continue
            known = self._known(key)
            self._clear(key)
            if known is not None:
                notices.append(Notice(key, known, None))
        for key, bad in spoiled.items():
            self._spoil(key)
            notices += self._end_other(key, bad.uid)
        changed: list[Notice] = []
        for key, candidate in found.items():
            if self._outlives(key, version, began, candidate.entry):
                notices += self._bury(key, version, candidate.entry.uid)
                continue
            for notice in self._settle(candidate):
                (notices if notice.new is None else changed).append(notice)
        return notices + changed

    def change(self, scope: Scope, candidate: Candidate[Any]) -> list[Notice]:
        """An ADDED or MODIFIED event."""
        key, entry = candidate.key, candidate.entry
        notices = self._pass(scope, entry.version, key)
        current = self.entries.get(key)
        ahead = self._ahead.get(key)
        if ahead is not None and current is None and ahead.is_late(entry):
            return notices  # a late word of what we deleted
        if current is not None and not _supersedes(entry, current, ahead is not None):
            return notices
        return notices + self._settle(candidate)

    def remove(
        self, scope: Scope, key: str, uid: str, version: int, final: Candidate[Any] | None
    ) -> list[Notice]:
        """A DELETED event; `final` is its object, if that could be decoded."""
        notices = self._pass(scope, version, key)
        current = self.entries.get(key)
        if current is not None and current.uid == uid and version < current.version:
            return notices
        known = self._known(key)
        ahead = self._ahead.get(key)
        if known is not None and known.uid == uid:
            last, decoded = (final.entry, final.decoded) if final else (known, None)
            own = ahead is not None and uid in ahead.dead
            notices.append(Notice(key, last, None, decoded, own))
            known = None
        if current is not None and current.uid == uid:
            self._clear(key)
        elif ahead is not None:
            ahead.dead.pop(uid, None)
            if not ahead.version and not ahead.dead:
                del self._ahead[key]
        self._tell(key, known)
        return notices

    def spoil(self, scope: Scope, bad: Undecodable) -> list[Notice]:
        """An ADDED or MODIFIED event whose object cannot be read: it is there, but not in the store."""
        notices = self._pass(scope, bad.version, bad.key)
        current = self.entries.get(bad.key)
        if current is None or bad.version >= current.version:
            self._spoil(bad.key)
        return notices + self._end_other(bad.key, bad.uid, bad.version)

    def observe(self, scope: Scope, version: int) -> list[Notice]:
        """A bookmark: the watch has shown everything up to `version`."""
        return self._pass(scope, version, None)

    # What our own writes bring

    def write_through(self, candidate: Candidate[Any]) -> bool:
        """The answer to an own write; whether it was news."""
        key, entry = candidate.key, candidate.entry
        scope = self._scope_of(key)
        if scope is ... or entry.version <= self.seen[scope]:
            return False
        current = self.entries.get(key)
        if current is not None and entry.version <= current.version:
            return False
        ahead = self._ahead.get(key)
        if ahead is not None and ahead.is_late(entry):
            return False  # written before we deleted it, answered later
        self._told.setdefault(key, current)
        self._serial += 1
        self._ahead[key] = _Ahead(self._serial, entry.version, ahead.dead if ahead else {})
        self._floor = min(self._floor, entry.version) if self._floor else entry.version
        self._put(candidate)
        return True

    def forget(self, key: str, uid: str) -> bool:
        """An own delete after which the server does not keep the object; whether it was news."""
        current = self.entries.get(key)
        if current is None or current.uid != uid:
            return False
        self._told.setdefault(key, current)
        self._serial += 1
        ahead = self._ahead.get(key)
        self._ahead[key] = _Ahead(self._serial, 0, {**(ahead.dead if ahead else {}), uid: current.version})
        self._drop(key)
        return True

    # Steps

    def _known(self, key: str) -> Entry | None:
        return self._told[key] if key in self._told else self.entries.get(key)

    def _tell(self, key: str, known: Entry | None) -> None:
        """Handlers know `known` of this key, be that what the store holds or not."""
        if known is self.entries.get(key):
            self._told.pop(key, None)
        else:
            self._told[key] = known

    def _settle(self, candidate: Candidate[Any]) -> list[Notice]:
        """The store and the handlers agree on this entry from now on."""
        key, entry, decoded = candidate.key, candidate.entry, candidate.decoded
        known = self._known(key)
        current = self.entries.get(key)
        own = key in self._ahead and current is not None and _same(current, entry)
        self._ahead.pop(key, None)
        self._told.pop(key, None)
        if current is None or not _same(current, entry):
            self._put(candidate)
        if known is None:
            return [Notice(key, None, entry, decoded, own)]
        if known.uid != entry.uid:
            return [Notice(key, known, None), Notice(key, None, entry, decoded, own)]
        if known.version == entry.version:
            return []
        return [Notice(key, known, entry, decoded, own)]

    def _outlives(self, key: str, version: int, began: int, listed: Entry | None = None) -> bool:
        """Whether our own write of this key is something that a list of `version` cannot know."""
        ahead = self._ahead.get(key)
        if ahead is None or ahead.serial <= began:
            return False
        # What we deleted and the list does not show is gone, unless it is newer than the list.
        here = listed.uid if listed else ""
        ahead.dead = {uid: at for uid, at in ahead.dead.items() if uid == here or at > version}
        if ahead.version:
            return ahead.version > version
        return bool(ahead.dead) and (listed is None or ahead.is_late(listed))

    def _bury(self, key: str, version: int, listed: str = "") -> list[Notice]:
        """A list of `version` shows that what handlers know is gone, although we are ahead of the list."""
        known = self._known(key)
        if known is None or known.uid == listed or known.version > version:
            return []
        self._tell(key, None)
        return [Notice(key, known, None)]

    def _pass(self, scope: Scope, version: int, besides: str | None) -> list[Notice]:
        """The watch has come to `version`: drop what should have been shown by now, and was not."""
        if version > self.seen.get(scope, 0):
            self.seen[scope] = version
        if not self._floor or version < self._floor:
            return []
        notices: list[Notice] = []
        floor = 0
        for key, ahead in list(self._ahead.items()):
            if not ahead.version:
                continue
            if ahead.version <= version and key != besides and _covers(scope, key):
                known = self._known(key)
                self._clear(key)
                if known is not None:
                    notices.append(Notice(key, known, None))
            elif not floor or ahead.version < floor:
                floor = ahead.version
        self._floor = floor
        return notices

    def _spoil(self, key: str) -> None:
        known = self._known(key)
        self._clear(key)
        self._tell(key, known)

    def _end_other(self, key: str, uid: str, version: int | None = None) -> list[Notice]:
        """Where there is an object that cannot be read, another one that handlers know of has gone (unless
        that is newer than this news of `version`)."""
        known, current = self._known(key), self.entries.get(key)
        if known is None or known.uid == uid or (version is not None and known.version >= version):
            return []
        if current is not None and current.uid == known.uid:
            return []  # an own write that is newer shows that it lives
        self._tell(key, None)
        return [Notice(key, known, None)]

    def _clear(self, key: str) -> None:
        self._ahead.pop(key, None)
        self._told.pop(key, None)
        self._drop(key)

    def _put(self, candidate: Candidate[Any]) -> None:
        key = candidate.key
        self.indexes.put(self.entries.get(key), candidate)
        self.entries[key] = candidate.entry

    def _drop(self, key: str) -> None:
        entry = self.entries.pop(key, None)
        if entry is not None:
            self.indexes.drop(key, entry)

    def _scope_of(self, key: str) -> Any:
        """The scope that looks after a key; `...` if none does."""
        if None in self.seen:
            return None
        namespace = key.partition("/")[0]
        return namespace if namespace in self.seen else ...

    def open_scopes(self, scopes: Iterable[Scope]) -> None:
        """Declare what reflectors look after; own writes elsewhere are none of this ledger's business."""
        for scope in scopes:
            self.seen.setdefault(scope, 0)


def _covers(scope: Scope, key: str) -> bool:
    return scope is None or key.startswith(f"{scope}/")


def _same(one: Entry, other: Entry) -> bool:
    return one.version == other.version and one.uid == other.uid


def _supersedes(entry: Entry, current: Entry, ahead: bool) -> bool:
    """Whether an event's entry is to take the place of the store's."""
    if ahead:
        return entry.version >= current.version  # equal: the confirmation
    return entry.version > current.version
