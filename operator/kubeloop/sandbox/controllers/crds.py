"""The CRD controllers: accept names, establish, serve the resource; and empty it before its CRD goes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from kubeloop.sandbox import crd as crds
from kubeloop.sandbox.controllers.base import Controller
from kubeloop.sandbox.controllers.client import SystemClient
from kubeloop.sandbox.controllers.conditions import put
from kubeloop.sandbox.pipeline.backend import CRDS, Backend
from kubeloop.sandbox.registry import Object, ResourceInfo
from kubeloop.sandbox.store import Event

FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


class CrdController(Controller):
    """Keys are names of CRDs."""

    name = "customresourcedefinition-controller"

    def __init__(self, backend: Backend, client: SystemClient) -> None:
        self._backend = backend
        self._client = client
        self._served: dict[str, tuple[tuple[str, str], Object]] = {}

    def observe(self, event: Event) -> Iterable[Hashable]:
        if event.resource == CRDS:
            yield event.record.name
        elif event.type == "DELETED":
            # Perhaps the last instance that the deletion of a CRD waits for.
            group, plural = event.resource
            name = f"{plural}.{group}"
            record = self._backend.store.get(CRDS, "", name) if group else None
            if record is not None and record.obj["metadata"].get("deletionTimestamp"):
                yield name

    def reconcile(self, key: Hashable) -> float | None:
        name = str(key)
        record = self._backend.store.get(CRDS, "", name)
        if record is None:
            self._withdraw(name)
            return None
        obj = record.obj
        if obj["metadata"].get("deletionTimestamp"):
            self._clean_up(obj)
            return None
        status = self._accepted(obj)
        if status != (obj.get("status") or {}):
            obj = self._client.merge(self._info(), "", name, {"status": status}, "status")
        if crds.established(obj):
            self._serve(obj)
        return None

    def _info(self) -> ResourceInfo:
        info = self._backend.registry.any_version(*CRDS)
        assert info is not None
        return info

    # -- names -----------------------------------------------------------------------------------

    def _accepted(self, obj: Object) -> Object:
        """The status that follows from the names and those of all others."""
        name = obj["metadata"]["name"]
        others = [r.obj for r in self._backend.store.current(CRDS)[0] if r.name != name]
        status = crds.name_conditions(obj, others, self._backend.now())
        stored = list(status.get("storedVersions") or ())
        stored += [v["name"] for v in obj["spec"]["versions"] if v.get("storage") and v["name"] not in stored]
        return {**status, "storedVersions": stored}

    # -- serving ---------------------------------------------------------------------------------

    def _serve(self, obj: Object) -> None:
        name, spec = obj["metadata"]["name"], obj["spec"]
        known = self._served.get(name)
        if known is not None and known[1] == spec:
            return
        infos = crds.infos(obj)
        key = (spec["group"], spec["names"]["plural"])
        if known is None:
            self._backend.store.begin(key)
        self._backend.registry.replace(add=infos, remove=[key])
        self._served[name] = (key, spec)

    def _withdraw(self, name: str) -> None:
        known = self._served.pop(name, None)
        if known is None:
            return
        key = known[0]
        self._backend.registry.replace(remove=[key])
        for watcher in self._backend.store.watchers():
            if watcher.key == key:
                watcher.close()  # the resource is no longer served: its watches end

    def _clean_up(self, obj: Object) -> None:
        """Delete the instances, and let the CRD go when none is left."""
        name, spec = obj["metadata"]["name"], obj["spec"]
        if FINALIZER not in (obj["metadata"].get("finalizers") or ()):
            return
        key = (spec["group"], spec["names"]["plural"])
        now = self._backend.now()
        conditions = list((obj.get("status") or {}).get("conditions") or ())
        records, _ = self._backend.store.current(key)
        if records:
            text = "CustomResource deletion is in progress"
            marked = put(conditions, "Terminating", "True", "InstanceDeletionInProgress", text, now)
            if marked != conditions:
                patch = {"status": {"conditions": marked}}
                self._client.merge(self._info(), "", name, patch, "status")
            info = self._backend.registry.any_version(*key)
            for record in records:
                if info is not None and not record.obj["metadata"].get("deletionTimestamp"):
                    self._client.delete(info, record.namespace, record.name)
            if self._backend.store.count(key):
                return
        left = [found for found in obj["metadata"]["finalizers"] if found != FINALIZER]
        self._client.merge(self._info(), "", name, {"metadata": {"finalizers": left or None}})
