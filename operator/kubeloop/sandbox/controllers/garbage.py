"""The garbage collector: dependents follow their owners (background), precede them (foreground), or stay.

The decisions are those of kube-controller-manager's garbagecollector, reduced to a store that is never stale:
what is not in the store does not exist.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from kubeloop.sandbox.controllers.base import Controller
from kubeloop.sandbox.controllers.client import SystemClient
from kubeloop.sandbox.controllers.graph import FOREGROUND, ORPHAN, Graph, Node
from kubeloop.sandbox.pipeline.backend import Backend
from kubeloop.sandbox.registry import Object, ResourceInfo
from kubeloop.sandbox.store import Event


class GarbageCollector(Controller):
    """Keys are uids of objects to look at, or of owners that are gone."""

    name = "generic-garbage-collector"

    def __init__(self, backend: Backend, client: SystemClient, graph: Graph) -> None:
        self._backend = backend
        self._client = client
        self._graph = graph

    def observe(self, event: Event) -> Iterable[Hashable]:
        metadata = event.record.obj["metadata"]
        if event.type == "DELETED":
            yield metadata["uid"]
            for owner in metadata.get("ownerReferences") or ():
                yield owner["uid"]
        elif metadata.get("ownerReferences") or metadata.get("deletionTimestamp"):
            yield metadata["uid"]
        if event.previous is not None and event.type == "MODIFIED":
            # An owner that waits for its dependents must hear of one that left it.
            before = event.previous.obj["metadata"].get("ownerReferences")
            if before and before != metadata.get("ownerReferences"):
                for owner in before:
                    yield owner["uid"]

    def reconcile(self, key: Hashable) -> float | None:
        uid = str(key)
        node = self._graph.nodes.get(uid)
        if node is None:
            for dependent in self._graph.dependents(uid):
                self._attempt_to_delete(dependent)
            return None
        if node.deleting and node.has_finalizer(ORPHAN):
            self._orphan(node)
        elif node.deleting_dependents:
            self._foreground(node)
        elif not node.deleting:
            self._attempt_to_delete(node)
        return None

    # -- the three ways --------------------------------------------------------------------------

    def _attempt_to_delete(self, node: Node) -> None:
        """Delete `node` if no owner is left that keeps it (attemptToDeleteItem)."""
        if node.deleting and not node.deleting_dependents:
            return
        if node.deleting_dependents:
            self._foreground(node)
            return
        owners = node.owners
        if not owners:
            return
        solid, waiting, unknown = self._classify(node, owners)
        if unknown:
            return  # an owner of a kind that is not served: nothing is known about it, nothing is deleted
        info = self._info(node)
        if solid:
            if len(solid) < len(owners):
                self._set_owners(node, solid)
            return
        dependents = self._graph.dependents(node.uid)
        if waiting and dependents:
            if any(dependent.deleting_dependents for dependent in dependents):
                # A circle of owners that all wait for each other: stop blocking.
                self._set_owners(node, [{**owner, "blockOwnerDeletion": False} for owner in owners])
            policy = "Foreground"
        elif node.has_finalizer(ORPHAN):
            policy = "Orphan"
        else:
            policy = "Foreground" if node.has_finalizer(FOREGROUND) else "Background"
        self._client.delete(info, node.namespace, node.name, uid=node.uid, propagation=policy)

    def _foreground(self, node: Node) -> None:
        """Delete the dependents; when none that blocks is left, let the owner go."""
        dependents = self._graph.dependents(node.uid)
        blocking = [
            dependent
            for dependent in dependents
            if any(o["uid"] == node.uid and o.get("blockOwnerDeletion") for o in dependent.owners)
        ]
        for dependent in dependents:
            if not dependent.deleting:
                self._attempt_to_delete(dependent)
        if not blocking:
            self._remove_finalizer(node, FOREGROUND)

    def _orphan(self, node: Node) -> None:
        """Take the owner out of its dependents, then let it go."""
        for dependent in self._graph.dependents(node.uid):
            self._set_owners(dependent, [o for o in dependent.owners if o["uid"] != node.uid])
        self._remove_finalizer(node, ORPHAN)

    # -- parts -----------------------------------------------------------------------------------

    def _classify(self, node: Node, owners: list[Object]) -> tuple[list[Object], list[Object], bool]:
        """The owners that keep `node`, those that wait for it to go, and whether one cannot be judged."""
        solid: list[Object] = []
        waiting: list[Object] = []
        unknown = False
        for owner in owners:
            group, _, version = owner["apiVersion"].rpartition("/")
            info = self._backend.registry.by_kind(group, version, owner["kind"])
            if info is None or (info.namespaced and not node.namespace):
                unknown = True
                continue
            namespace = node.namespace if info.namespaced else ""
            record = self._backend.store.get(info.key, namespace, owner["name"])
            if record is None or record.obj["metadata"]["uid"] != owner["uid"]:
                continue  # absent, or another object of that name: dangling
            if Node(info.key, record.obj).deleting_dependents:
                waiting.append(owner)
            else:
                solid.append(owner)
        return solid, waiting, unknown

    def _info(self, node: Node) -> ResourceInfo:
        info = self._backend.registry.any_version(*node.resource)
        assert info is not None
        return info

    def _set_owners(self, node: Node, owners: list[Object]) -> None:
        metadata: Object = {"uid": node.uid, "ownerReferences": owners or None}
        self._client.merge(self._info(node), node.namespace, node.name, {"metadata": metadata})

    def _remove_finalizer(self, node: Node, name: str) -> None:
        metadata = node.obj["metadata"]
        left = [found for found in metadata.get("finalizers") or () if found != name]
        patch: Object = {
            "resourceVersion": metadata["resourceVersion"],
            "finalizers": left or None,
        }
        info = self._info(node)
        if self._backend.store.get(info.key, node.namespace, node.name) is not None:
            self._client.merge(info, node.namespace, node.name, {"metadata": patch})
