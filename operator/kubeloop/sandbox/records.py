"""What the store holds: the states of objects, the changes between them, and how both can be missed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from kubeloop.sandbox.registry import Object

ResourceKey = tuple[str, str]
"""(group, plural): all versions of a resource share their objects."""


class Compacted(Exception):
    """The revision asked for is older than the kept history, which begins after `oldest`."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"revision {asked} has been compacted, the oldest kept one is {oldest}")
        self.asked = asked
        self.oldest = oldest


@dataclass(frozen=True, slots=True)
class Backup:
    """A whole state of the store."""

    revision: int
    items: dict[ResourceKey, dict[str, Record]]


class Exists(Exception):
    """A create found the key taken."""


class Changed(Exception):
    """An update or delete found another revision (or nothing) than it was computed from."""


def object_key(namespace: str, name: str) -> str:
    """An object's key inside its resource; sorts as the real server's keys do."""
    return f"{namespace}/{name}" if namespace else name


_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


def to_json(value: Any) -> bytes:
    """Compact UTF-8 JSON; a lone surrogate becomes U+FFFD, as Go's decoder has it."""
    text = _encode(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


class Reader(Protocol):
    """What of a schema reading needs."""

    def prune(self, obj: Object) -> tuple[Object, list[str]]: ...
    def default(self, obj: Object) -> Object: ...


class Record:
    """One stored state of one object. Immutable; its JSON is made once, when first asked for."""

    __slots__ = ("_json", "_read", "name", "namespace", "obj", "revision")

    def __init__(self, namespace: str, name: str, obj: Object, revision: int) -> None:
        self.namespace = namespace
        self.name = name
        self.obj = obj
        self.revision = revision
        self._json: bytes | None = None
        self._read: tuple[Reader, Record] | None = None

    @property
    def json(self) -> bytes:
        data = self._json
        if data is None:
            # Two threads may both do this once; they compute the same bytes.
            data = self._json = to_json(self.obj)
        return data

    def trust(self, schema: Reader) -> None:
        """Note that `obj` is already as `schema` has it."""
        self._read = (schema, self)

    def distrust(self, schema: Reader) -> None:
        """Note that storage holds more than `obj` shows: the next write, even an empty one, is one."""
        self._read = (schema, Record(self.namespace, self.name, self.obj, self.revision))

    def as_read(self, schema: Reader) -> Record:
        """This state as the schema of its storage version has it today: pruned and defaulted.

        Itself when nothing differs; else computed once per schema.
        """
        known = self._read
        if known is None or known[0] is not schema:
            obj = schema.default(schema.prune(self.obj)[0])
            fresh = self if obj == self.obj else Record(self.namespace, self.name, obj, self.revision)
            # Two threads may both do this once; they compute the same.
            known = self._read = (schema, fresh)
        return known[1]


EventType = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True, slots=True)
class Event:
    """One change. For DELETED, `record` is the last state under the revision of the deletion."""

    type: EventType
    resource: ResourceKey
    record: Record
    previous: Record | None

    @property
    def revision(self) -> int:
        return self.record.revision
