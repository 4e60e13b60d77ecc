"""All writes that reconciles make go through here: recorded, read back into the caches, or only tried.

The answer of each write goes into the cache at once (write-through), so that the next reconcile reads
what this one wrote (D3) and the echo of the write on the watch wakes nobody.
"""

from __future__ import annotations

import enum
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from cachetools import LRUCache

from kubeloop.client import Answer, Apply, Client, FieldValidation, JsonPatch, MergePatch, NotFound, Patch
from kubeloop.controller.shapes import KnownShapes
from kubeloop.model import KubeObject, Resource

OBJECTS_REMEMBERED = 8_192
WRITES_REMEMBERED = 4
"""Objects, and the last own writes of each, whose echo on the watch is told from others' changes: half a
minute's work. An echo that is not recognised costs one reconcile that does nothing."""

_VERSION = re.compile(rb'"resourceVersion":"(\d+)"')
"""An object's own comes first. Taking another one for it would cost no more than a missed echo."""

C = TypeVar("C", bound=KubeObject)
C_co = TypeVar("C_co", bound=KubeObject, covariant=True)


class Verb(enum.Enum):
    """What a write did."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Change:
    """One write, or in a dry run one that would have been made."""

    verb: Verb
    kind: str
    key: str
    subresource: str = ""
    before: dict[str, Any] | None = None
    """The object before, if known. In a dry run this and `after` make the diff."""
    after: dict[str, Any] | None = None
    repair: bool = False
    """Whether it undid what somebody else had done, rather than did something new."""


class CacheOfKind(Protocol[C_co]):
    """The cache of one kind: read by reconciles, and written through by their writes."""

    def get(self, key: str) -> C_co | None: ...

    def by_index(self, index: str, value: str) -> Sequence[C_co]: ...

    def write_through(self, obj: Mapping[str, Any] | bytes) -> C_co | None: ...

    def forget(self, key: str, resource_version: int) -> None: ...


class Writer:
    """Sends writes as `field_manager`; with `dry_run` the server only checks them and nothing is stored."""

    def __init__(self, client: Client, field_manager: str, *, dry_run: bool = False) -> None:
        self.client = client
        self.field_manager = field_manager
        self.dry_run = dry_run
        self._shapes = KnownShapes()
        self._lock = threading.Lock()  # guards _written: LRUCache reorders on reads
        self._written: LRUCache[tuple[str, str], tuple[int, ...]] = LRUCache(OBJECTS_REMEMBERED)

    def is_echo(self, obj: KubeObject) -> bool:
        """Whether this version of an object is what one of our last writes of it led to.

        The reconcile that wrote it has seen it already; another controller of the process may not have.
        """
        with self._lock:
            return obj.resource_version in self._written.get((obj.kind, obj.key), ())

    def apply(
        self,
        kind: type[C],
        manifest: Mapping[str, Any],
        live: C | None,
        *,
        force: bool,
        repair: bool = False,
        store: CacheOfKind[C],
        changes: list[Change],
    ) -> tuple[C, Answer]:
        """Server-side apply of `manifest`; `live` is the object as known before. Gives the object as it is
        now, and the answer that said so."""
        metadata = manifest["metadata"]
        seen = manifest in self._shapes
        answer = self._patch(
            kind.resource,
            metadata["name"],
            metadata.get("namespace"),
            Apply(manifest),
            force=force,
            field_validation="Ignore" if seen else None,
        )
        if not seen:
            self._shapes.add(manifest)
        applied = self._read(kind, key_of(metadata), answer, store)
        verb = Verb.CREATED if answer.created else Verb.CHANGED
        self._record(changes, verb, kind.resource, live, applied, repair=repair)
        return applied, answer

    def unapply(self, resource: Resource, obj: Mapping[str, Any]) -> None:
        """Give up all fields of `obj` that only we own, by applying nothing."""
        metadata = {
            key: obj["metadata"][key] for key in ("name", "namespace", "uid") if key in obj["metadata"]
        }
        nothing = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}
        self._patch(resource, metadata["name"], metadata.get("namespace"), Apply(nothing), force=False)

    def patch(
        self,
        target: C,
        patch: JsonPatch | MergePatch,
        *,
        subresource: str = "",
        field_validation: FieldValidation | None = None,
        store: CacheOfKind[C],
        changes: list[Change],
    ) -> C:
        """Patch the reconciled object itself; returns it as the server answered."""
        answer = self._patch(
            target.resource,
            target.name,
            target.namespace,
            patch,
            subresource=subresource,
            field_validation=field_validation,
        )
        if target.deleting and not self.dry_run and not answer.object["metadata"].get("finalizers"):
            # That was the last finalizer: with this very write the object has gone.
            patched = type(target).model_validate(answer.object)
            store.forget(target.key, patched.resource_version)
        else:
            patched = self._read(type(target), target.key, answer, store)
            if patched.uid != target.uid:
                # Another object has the name by now, of which this reconcile knows nothing.
                with self._lock:
                    self._written.pop((target.kind, target.key), None)
        self._record(changes, Verb.CHANGED, target.resource, target, patched, subresource)
        return patched

    def delete(self, target: KubeObject, *, store: CacheOfKind[Any], changes: list[Change]) -> None:
        """Delete exactly this object (by uid); one that is already gone is fine."""
        self._record(changes, Verb.DELETED, target.resource, target, None)
        try:
            answer = self.client.delete(
                target.resource,
                target.name,
                target.namespace,
                uid=target.uid,
                propagation="Background",
                dry_run=self.dry_run,
            )
        except NotFound:
            answer = None
        if self.dry_run:
            return
        metadata = (answer or {}).get("metadata") or {}
        if metadata.get("deletionTimestamp") and answer is not None:
            store.write_through(answer)  # finalizers keep it for a while
        else:
            store.forget(target.key, target.resource_version)

    def _read(self, kind: type[C], key: str, answer: Answer, store: CacheOfKind[C]) -> C:
        """The object of an answer, decoded once: in the cache too, unless this is a dry run."""
        if not self.dry_run:
            if (version := _VERSION.search(answer.raw)) is not None:
                # Before the cache hears of it: the watch may tell of this version at any moment.
                which = kind.resource.kind, key
                with self._lock:
                    last = self._written.get(which, ())
                    self._written[which] = (*last, int(version[1]))[-WRITES_REMEMBERED:]
            known = store.write_through(answer.raw)
            if known is not None:
                return known
        return kind.model_validate(answer.object)  # says what is wrong with it

    def _patch(
        self,
        resource: Resource,
        name: str,
        namespace: str | None,
        patch: Patch,
        *,
        subresource: str = "",
        force: bool | None = None,
        field_validation: FieldValidation | None = None,
    ) -> Answer:
        return self.client.patch(
            resource,
            name,
            namespace,
            patch,
            subresource=subresource or None,
            field_manager=self.field_manager,
            force=force,
            field_validation=field_validation,
            dry_run=self.dry_run,
        )

    def _record(
        self,
        changes: list[Change],
        verb: Verb,
        resource: Resource,
        before: KubeObject | None,
        after: KubeObject | None,
        subresource: str = "",
        *,
        repair: bool = False,
    ) -> None:
        """Note a write, unless it turned out to change nothing."""
        subject = before or after
        if subject is None:
            raise AssertionError("a write is about something")
        key = subject.key
        if not self.dry_run:
            # An apply or patch without effect answers with the resourceVersion that was there.
            if before is None or after is None or after.resource_version != before.resource_version:
                changes.append(Change(verb, resource.kind, key, subresource, repair=repair))
            return
        # A dry run moves no resourceVersion: compare what the object's class knows of it.
        old = before.to_wire() if before is not None else None
        new = after.to_wire() if after is not None else None
        if old is None or new is None or _content(old) != _content(new):
            changes.append(Change(verb, resource.kind, key, subresource, old, new, repair))


def _content(wire: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {k: v for k, v in wire["metadata"].items() if k not in ("resourceVersion", "generation")}
    return {**wire, "metadata": metadata}


def key_of(metadata: Mapping[str, Any]) -> str:
    """``namespace/name``, or ``name`` of a cluster-scoped object, from its metadata as it is on the wire."""
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
