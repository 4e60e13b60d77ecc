"""What the store holds: the states of objects, the changes between them, and how both can be missed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from kubeloop.sandbox.registry import Object

ResourceKey = tuple[str, str]
"""(group, plural): all versions of a resource share their objects."""


class Compacted(Exception):
    """The revision asked for is older than the kept history, which begins after `oldest`."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"revision {asked} has been compacted, the oldest kept one is {oldest}")
        self.asked = asked
        self.oldest = oldest


class Exists(Exception):
    """A create found the key taken."""


class Changed(Exception):
    """An update or delete found another revision (or nothing) than it was computed from."""


def object_key(namespace: str, name: str) -> str:
    """An object's key inside its resource; sorts as the real server's keys do."""
    return f"{namespace}/{name}" if namespace else name


def to_json(value: Any) -> bytes:
    """Compact UTF-8 JSON; a lone surrogate becomes U+FFFD, as Go's decoder has it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


class Record:
    """One stored state of one object. Immutable; its JSON is made once, when first asked for."""

    __slots__ = ("_json", "name", "namespace", "obj", "revision")

    def __init__(self, namespace: str, name: str, obj: Object, revision: int) -> None:
        self.namespace = namespace
        self.name = name
        self.obj = obj
        self.revision = revision
        self._json: bytes | None = None

    @property
    def json(self) -> bytes:
        data = self._json
        if data is None:
            # Two threads may both do this once; they compute the same bytes.
            data = self._json = to_json(self.obj)
        return data


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
