"""From an event about a child to the keys of the objects that must be looked at.

A child speaks for its controller owner (group and kind must match, not the version: a child written
under v1 still belongs to a controller that has moved to v2). It also speaks for whoever is waiting
for its name: a WebApp that found a foreign Deployment in its way has no owner reference on it, and
must hear when that Deployment changes or goes (D2).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from kubeloop.model import KubeObject, Resource


def owner_key(child: KubeObject, owner: Resource) -> str | None:
    """Key of the controller owner of `child` if it is of the kind `owner`, else None."""
    reference = child.controller_owner()
    if reference is None or reference.kind != owner.kind:
        return None
    group, _, _ = reference.api_version.rpartition("/")
    if group != owner.group:
        return None
    return f"{child.namespace}/{reference.name}" if owner.namespaced and child.namespace else reference.name


class Waiters:
    """Who waits for which name. Thread-safe.

    An entry lives until the waiter is looked at again, so that there are never more entries than
    objects.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards both maps
        self._by_child: dict[tuple[str, str], set[str]] = {}
        self._by_waiter: dict[str, set[tuple[str, str]]] = {}

    def wait(self, waiter: str, kind: str, child_key: str) -> None:
        """`waiter` wants to be looked at when the object `child_key` of `kind` changes."""
        with self._lock:
            self._by_child.setdefault((kind, child_key), set()).add(waiter)
            self._by_waiter.setdefault(waiter, set()).add((kind, child_key))

    def forget(self, waiter: str) -> None:
        """`waiter` is being looked at, or is gone."""
        with self._lock:
            for child in self._by_waiter.pop(waiter, ()):
                waiting = self._by_child[child]
                waiting.discard(waiter)
                if not waiting:
                    del self._by_child[child]

    def of(self, kind: str, child_key: str) -> Iterable[str]:
        """The keys that wait for the object `child_key` of `kind`."""
        with self._lock:
            return tuple(self._by_child.get((kind, child_key), ()))

    def __len__(self) -> int:
        with self._lock:
            return len(self._by_waiter)
