"""The CRD controllers: accept names, establish, serve the resource; and empty it before its CRD goes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from kubeloop.sandbox import crd as crds
from kubeloop.sandbox.controllers.base import Controller
from kubeloop.sandbox.controllers.client import SystemClient
from kubeloop.sandbox.controllers.conditions import find, put
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
        if self._established(obj):
            self._serve(obj)
        return None

    def _info(self) -> ResourceInfo:
        info = self._backend.registry.any_version(*CRDS)
        assert info is not None
        return info

    @staticmethod
    def _established(obj: Object) -> bool:
        condition = find((obj.get("status") or {}).get("conditions") or (), "Established")
        return condition is not None and condition["status"] == "True"

    # -- names -----------------------------------------------------------------------------------

    def _accepted(self, obj: Object) -> Object:
        """The status that follows from the names and those of all others (namingController)."""
        spec = obj["spec"]
        status: Object = dict(obj.get("status") or {})
        conditions: list[Object] = list(status.get("conditions") or ())
        now = self._backend.now()
        taken = self._taken(obj["metadata"]["name"], spec["group"])
        conflict = self._conflict(spec["names"], taken)
        if conflict is None:
            status["acceptedNames"] = spec["names"]
            conditions = put(conditions, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now)
            text = "the initial names have been accepted"
            if not self._established({"status": {"conditions": conditions}}):
                conditions = put(conditions, "Established", "True", "InitialNamesAccepted", text, now)
        else:
            reason, text = conflict
            status.setdefault("acceptedNames", {"plural": "", "kind": ""})
            conditions = put(conditions, "NamesAccepted", "False", reason, text, now)
            if find(conditions, "Established") is None:
                text = "not all names are accepted"
                conditions = put(conditions, "Established", "False", "NotAccepted", text, now)
        status["conditions"] = conditions
        stored = list(status.get("storedVersions") or ())
        for version in spec["versions"]:
            if version.get("storage") and version["name"] not in stored:
                stored.append(version["name"])
        status["storedVersions"] = stored
        return status

    def _taken(self, own: str, group: str) -> dict[str, set[str]]:
        """The names that other CRDs of the group were accepted with."""
        taken: dict[str, set[str]] = {"resources": set(), "kinds": set()}
        for record in self._backend.store.current(CRDS)[0]:
            if record.name == own or record.obj["spec"]["group"] != group:
                continue
            names = (record.obj.get("status") or {}).get("acceptedNames") or {}
            resources = (names.get("plural"), names.get("singular"), *(names.get("shortNames") or ()))
            taken["resources"].update(name for name in resources if name)
            taken["kinds"].update(name for name in (names.get("kind"), names.get("listKind")) if name)
        return taken

    @staticmethod
    def _conflict(names: Object, taken: dict[str, set[str]]) -> tuple[str, str] | None:
        checks = [
            ("PluralConflict", "resources", names.get("plural")),
            ("SingularConflict", "resources", names.get("singular")),
            *(("ShortNamesConflict", "resources", short) for short in names.get("shortNames") or ()),
            ("KindConflict", "kinds", names.get("kind")),
            ("ListKindConflict", "kinds", names.get("listKind")),
        ]
        for reason, where, name in checks:
            if name and name in taken[where]:
                return reason, f'"{name}" is already in use'
        return None

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
