"""The namespace controller: a new namespace gets its service account, a deleted one is emptied and goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

from kubeloop.sandbox.controllers.base import Controller
from kubeloop.sandbox.controllers.client import SystemClient, object_path
from kubeloop.sandbox.controllers.conditions import put
from kubeloop.sandbox.pipeline.backend import NAMESPACES, Backend
from kubeloop.sandbox.registry import Object
from kubeloop.sandbox.store import Event

FINALIZER = "kubernetes"
SERVICE_ACCOUNTS = ("", "serviceaccounts")


class NamespaceController(Controller):
    """Keys are names of namespaces."""

    name = "namespace-controller"

    def __init__(self, backend: Backend, client: SystemClient) -> None:
        self._backend = backend
        self._client = client

    def observe(self, event: Event) -> Iterable[Hashable]:
        if event.resource == NAMESPACES:
            if event.type != "DELETED":
                yield event.record.name
            return
        lost_account = event.resource == SERVICE_ACCOUNTS and event.type == "DELETED"
        if event.record.namespace and (lost_account or self._terminating(event.record.namespace)):
            yield event.record.namespace

    def _terminating(self, name: str) -> bool:
        record = self._backend.store.get(NAMESPACES, "", name)
        return record is not None and bool(record.obj["metadata"].get("deletionTimestamp"))

    def reconcile(self, key: Hashable) -> float | None:
        name = str(key)
        record = self._backend.store.get(NAMESPACES, "", name)
        if record is None:
            return None
        if not record.obj["metadata"].get("deletionTimestamp"):
            self._furnish(name)
            return None
        self._empty(name)
        remaining, finalizers = self._content(name)
        record = self._backend.store.get(NAMESPACES, "", name)
        if record is None:
            return None
        self._report(record.obj, remaining, finalizers)
        if not remaining:
            self._finalize(name)
        return None

    def _furnish(self, name: str) -> None:
        """Each namespace has a service account that pods run as when they name none."""
        info = self._backend.registry.any_version(*SERVICE_ACCOUNTS)
        if info is not None and self._backend.store.get(info.key, name, "default") is None:
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
            self._client.create(info, name, account)

    def _empty(self, name: str) -> None:
        """Delete whatever is not yet marked."""
        for info in self._backend.registry.infos():
            if not info.namespaced or "deletecollection" not in info.verbs:
                continue
            records, _ = self._backend.store.current(info.key, name)
            if any(not record.obj["metadata"].get("deletionTimestamp") for record in records):
                self._client.send("DELETE", object_path(info, name), {"propagationPolicy": "Background"})

    def _content(self, name: str) -> tuple[dict[str, int], Counter[str]]:
        """How many objects of each resource, and how many with each finalizer, are left."""
        remaining: dict[str, int] = {}
        finalizers: Counter[str] = Counter()
        for key in self._backend.store.resources():
            records, _ = self._backend.store.current(key, name)
            if key == NAMESPACES or not records:
                continue
            group, plural = key
            remaining[f"{plural}.{group}"] = len(records)
            for record in records:
                finalizers.update(record.obj["metadata"].get("finalizers") or ())
        return remaining, finalizers

    def _report(self, obj: Object, remaining: dict[str, int], finalizers: Counter[str]) -> None:
        """Say in the status what is waited for. Nothing is said when it all goes at once."""
        status = obj.get("status") or {}
        if not remaining and not status.get("conditions"):
            return
        now = self._backend.now()
        conditions: list[Object] = list(status.get("conditions") or ())
        kind = "NamespaceDeletion"
        text = "All resources successfully discovered"
        conditions = put(conditions, f"{kind}DiscoveryFailure", "False", "ResourcesDiscovered", text, now)
        text = "All legacy kube types successfully parsed"
        conditions = put(
            conditions, f"{kind}GroupVersionParsingFailure", "False", "ParsedGroupVersions", text, now
        )
        text = "All content successfully deleted, may be waiting on finalization"
        conditions = put(conditions, f"{kind}ContentFailure", "False", "ContentDeleted", text, now)
        if remaining:
            listed = ", ".join(f"{name} has {n} resource instances" for name, n in sorted(remaining.items()))
            text = f"Some resources are remaining: {listed}"
            conditions = put(
                conditions, "NamespaceContentRemaining", "True", "SomeResourcesRemain", text, now
            )
        else:
            text = "All content successfully removed"
            conditions = put(conditions, "NamespaceContentRemaining", "False", "ContentRemoved", text, now)
        if finalizers:
            listed = ", ".join(f"{name} in {n} resource instances" for name, n in sorted(finalizers.items()))
            text = f"Some content in the namespace has finalizers remaining: {listed}"
            conditions = put(
                conditions, "NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", text, now
            )
        else:
            text = "All content-preserving finalizers finished"
            conditions = put(
                conditions, "NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers", text, now
            )
        if conditions != status.get("conditions"):
            info = self._backend.registry.any_version(*NAMESPACES)
            assert info is not None
            patch = {"status": {"conditions": conditions}}
            self._client.merge(info, "", obj["metadata"]["name"], patch, "status")

    def _finalize(self, name: str) -> None:
        info = self._backend.registry.any_version(*NAMESPACES)
        record = self._backend.store.get(NAMESPACES, "", name)
        assert info is not None
        if record is None:
            return
        left = [f for f in (record.obj.get("spec") or {}).get("finalizers") or () if f != FINALIZER]
        patch = {"spec": {"finalizers": left or None}}
        self._client.merge(info, "", name, patch, "finalize")
