"""Who owns whom: all objects by uid, and the dependents of each owner. Kept current by the loop's events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kubeloop.sandbox.registry import Object
from kubeloop.sandbox.store import Event, ResourceKey

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


@dataclass(slots=True)
class Node:
    """One object."""

    resource: ResourceKey
    obj: Object

    @property
    def namespace(self) -> str:
        return str(self.obj["metadata"].get("namespace", ""))

    @property
    def name(self) -> str:
        return str(self.obj["metadata"]["name"])

    @property
    def uid(self) -> str:
        return str(self.obj["metadata"]["uid"])

    @property
    def deleting(self) -> bool:
        return bool(self.obj["metadata"].get("deletionTimestamp"))

    @property
    def owners(self) -> list[Object]:
        return list(self.obj["metadata"].get("ownerReferences") or ())

    def has_finalizer(self, name: str) -> bool:
        return name in (self.obj["metadata"].get("finalizers") or ())

    @property
    def deleting_dependents(self) -> bool:
        """Whether it waits, being deleted in the foreground, for its dependents."""
        return self.deleting and self.has_finalizer(FOREGROUND)


class Graph:
    """Not thread-safe: only the loop touches it."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self._dependents: dict[str, dict[str, None]] = {}  # insertion order keeps runs deterministic

    def take(self, event: Event) -> None:
        """Take in one change."""
        obj = event.record.obj
        uid = obj["metadata"]["uid"]
        if event.previous is not None:
            for owner in event.previous.obj["metadata"].get("ownerReferences") or ():
                group = self._dependents.get(owner["uid"])
                if group is not None:
                    group.pop(uid, None)
                    if not group:
                        del self._dependents[owner["uid"]]
        if event.type == "DELETED":
            self.nodes.pop(uid, None)
            return
        self.nodes[uid] = Node(event.resource, obj)
        for owner in obj["metadata"].get("ownerReferences") or ():
            self._dependents.setdefault(owner["uid"], {})[uid] = None

    def dependents(self, uid: str) -> list[Node]:
        """All objects that name `uid` among their owners."""
        return [self.nodes[found] for found in self._dependents.get(uid, ()) if found in self.nodes]

    def controlled(self, uid: str, resource: ResourceKey) -> Iterator[Node]:
        """The dependents of one resource that `uid` is the controller of."""
        for node in self.dependents(uid):
            if node.resource == resource and any(
                owner["uid"] == uid and owner.get("controller") for owner in node.owners
            ):
                yield node
