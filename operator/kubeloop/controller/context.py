"""What a reconcile function is given beside the object: caches to read, and writes that cost nothing
when nothing changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

from kubeloop.client import Client, MergePatch, MissingKeyError
from kubeloop.controller.children import ChildApplier
from kubeloop.controller.owners import Waiters
from kubeloop.controller.result import Blocked
from kubeloop.controller.status import merge_patch, says_the_same
from kubeloop.controller.statusmemory import StatusMemory, status_of
from kubeloop.controller.writer import CacheOfKind, Change, Writer
from kubeloop.model import KubeObject, Model, PartialObjectMetadata
from kubeloop.observe import FieldLogger

C = TypeVar("C", bound=KubeObject)


class EventSink(Protocol):
    """Where Events go. Must not block or raise."""

    def emit(self, regarding: KubeObject, reason: str, note: str, *, warning: bool, action: str) -> None: ...


class Shared:
    """What all contexts of a controller share."""

    def __init__(
        self,
        writer: Writer,
        main: CacheOfKind[Any],
        children: Mapping[str, tuple[type[KubeObject], CacheOfKind[Any], ChildApplier[Any]]],
        waiters: Waiters,
        statuses: StatusMemory,
        events: EventSink | None,
    ) -> None:
        self.writer = writer
        self.main = main
        self.children = children
        self.waiters = waiters
        self.statuses = statuses
        self.events = events


class Context(Generic[C]):
    """One reconcile of one object. Use it only on the thread and for the call it was made for."""

    def __init__(self, shared: Shared, app: C, log: FieldLogger) -> None:
        self._shared = shared
        self.object = app
        """The object as this reconcile knows it, its own writes included."""
        self.log = log
        """A logger that adds the object's namespace and name, and the reconcile id, to each line."""
        self.changes: list[Change] = []
        """The writes made so far."""
        self.spared = 0
        """How many applies and status writes were asked for and needed no request."""
        self.overtaken = False
        """Whether the answer to a status write showed a change by somebody else that this reconcile did not
        see. Writing the answer into the cache also swallows the event of that change, so the object must be
        looked at again."""

    @property
    def client(self) -> Client:
        """For what the helpers here do not cover. Reads with it cost a request; writes bypass the caches."""
        return self._shared.writer.client

    @property
    def dry_run(self) -> bool:
        """Whether writes are only checked by the server."""
        return self._shared.writer.dry_run

    def get(self, kind: type[KubeObject], name: str) -> Any:
        """The object of an owned kind in this object's namespace, from the cache; None if there is none."""
        _, store, _ = self._child(kind.resource.kind)
        return store.get(self._child_key(name))

    def apply(self, manifest: Mapping[str, Any]) -> Any:
        """Make a child be as `manifest` says, with this object as its controller; returns it.

        The manifest says only what is wanted (server-side apply); its namespace is this object's. Costs no
        request when nothing drifted. Raises `NotOurs` if somebody else has an object of that name,
        `GoingAway` while it is being deleted, `ApiError` if the server refuses, `MissingKeyError` if the
        manifest lacks its kind or name, `LookupError` if the controller does not own that kind, `TypeError`
        if it owns just the metadata: whether the rest has drifted cannot be seen there.
        """
        kind = manifest.get("kind")
        if not kind:
            raise MissingKeyError(".kind")
        wanted = self._as_child(manifest)
        owned, _, applier = self._child(kind)
        if issubclass(owned, PartialObjectMetadata):
            raise TypeError(
                f"of {kind} only the metadata is cached, so that nothing can be compared with it: own the "
                "whole kind, or write through ctx.client"
            )
        key = self._child_key(wanted["metadata"]["name"])
        writes = len(self.changes)
        try:
            child = applier.apply(self.object, wanted, self.changes)
            self.spared += len(self.changes) == writes
            return child
        except Blocked:
            self._shared.waiters.wait(self.object.key, kind, key)
            raise

    def delete(self, kind: type[KubeObject], name: str) -> None:
        """Delete a child of this object if there is one; costs no request if there is none."""
        _, _, applier = self._child(kind.resource.kind)
        applier.remove(self.object, self._child_key(name), self.changes)

    def set_status(self, status: Model | Mapping[str, Any]) -> None:
        """Write the object's status if it says anything new.

        Conditions need no lastTransitionTime: it is kept while their status stays the same. Fields of the
        declared status that `status` leaves out are removed; others are not touched.
        """
        app = self.object
        if isinstance(status, Model) and says_the_same(status, getattr(app, "status", None)):
            self.spared += 1
            return
        wanted = status.to_wire() if isinstance(status, Model) else dict(status)
        full = self._shared.statuses.plan(app, wanted)
        if full is None:
            self.spared += 1
            return
        self.object = self._shared.writer.patch(
            app,
            MergePatch(merge_patch(full, status_of(app))),
            subresource="status",
            field_validation="Ignore",  # what the server drops is seen in its answer, and said once
            store=self._shared.main,
            changes=self.changes,
        )
        if not self.dry_run:
            self.overtaken |= self.object.uid != app.uid or (
                not _same_wish(app, self.object) and self._moved_on(app)
            )
            self._shared.statuses.remember(app, full, status_of(self.object))

    def _moved_on(self, app: KubeObject) -> bool:
        """Whether the cache shows something else than `app` by now. If it did not take the answer to a write
        (a server that was restored from a backup answers with versions that are long past), looking again
        would show the same, and be answered the same, as fast as the server can."""
        known = self._shared.main.get(app.key)
        return known is None or known.metadata.resource_version != app.metadata.resource_version

    def event(self, reason: str, note: str, *, warning: bool = False, action: str = "Reconcile") -> None:
        """Tell people, by an Event of the object: `reason` in CamelCase, `note` as a sentence.

        Costs nothing here: it is written by another thread, together with its like, at a bounded rate, and
        may be dropped. Nothing may depend on it.
        """
        if self._shared.events is not None and not self.dry_run:
            self._shared.events.emit(self.object, reason, note, warning=warning, action=action)

    def _as_child(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        metadata = dict(manifest.get("metadata") or {})
        if not metadata.get("name"):
            raise MissingKeyError(".metadata.name")
        home = self.object.namespace
        if home is not None and metadata.setdefault("namespace", home) != home:
            raise ValueError(
                f"{manifest.get('kind')} {metadata['name']} is wanted in namespace {metadata['namespace']}, "
                f"but what an object owns must live in its own namespace, {home}"
            )
        if not metadata.get("ownerReferences"):
            metadata["ownerReferences"] = [self.object.owner_reference()]
        return {**manifest, "metadata": metadata}

    def _child(self, kind: str) -> tuple[type[KubeObject], CacheOfKind[Any], ChildApplier[Any]]:
        try:
            return self._shared.children[kind]
        except KeyError:
            known = ", ".join(sorted(self._shared.children)) or "nothing"
            raise LookupError(
                f"this controller owns {known}; to use {kind} say Controller(...).owns({kind})"
            ) from None

    def _child_key(self, name: str) -> str:
        return f"{self.object.namespace}/{name}" if self.object.namespace else name


def _same_wish(one: KubeObject, other: KubeObject) -> bool:
    """Whether two versions of an object differ in no more than its status."""
    if one.generation and one.generation == other.generation:
        mine, theirs = one.metadata, other.metadata
        return (
            mine.labels == theirs.labels
            and mine.annotations == theirs.annotations
            and mine.finalizers == theirs.finalizers
            and mine.owner_references == theirs.owner_references
            and mine.deletion_timestamp == theirs.deletion_timestamp
        )
    return _wish(one) == _wish(other)  # not every kind counts generations


def _wish(app: KubeObject) -> dict[str, Any]:
    """All of the object but its status and what moves with each write."""
    wire = app.to_wire()
    wire.pop("status", None)
    wire["metadata"].pop("resourceVersion", None)
    return wire
