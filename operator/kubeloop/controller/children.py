"""Carries out the apply protocol for one wanted child: the requests behind `protocol.decide`.

Races are resolved by looking: where the server's answer contradicts the cache, the object is read once
and the decision is taken again, at most `MAX_TRIES` times; what is then still contradictory is an error
and retried with backoff like any other.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from kubeloop.client import AlreadyExists, ApiError, Client, Conflict, Forbidden, Invalid, NotFound
from kubeloop.clock import Clock
from kubeloop.controller.drift import APPLIED, content_hash, fingerprint, read_stamp, stamp
from kubeloop.controller.pace import RepairPace
from kubeloop.controller.protocol import Applied, AppliedMemory, Step, decide
from kubeloop.controller.result import Contended, GoingAway, KeptChanging, NotOurs
from kubeloop.controller.writer import CacheOfKind, Change, Writer, key_of
from kubeloop.model import KubeObject

C = TypeVar("C", bound=KubeObject)

MAX_TRIES = 3


class ChildApplier(Generic[C]):
    """Brings children of one kind in line with what their owners want."""

    def __init__(
        self, kind: type[C], store: CacheOfKind[C], writer: Writer, memory: AppliedMemory, clock: Clock
    ) -> None:
        self._kind = kind
        self._resource = kind.resource
        self._store = store
        self._writer = writer
        self._memory = memory
        self._clock = clock
        self._lock = threading.Lock()  # guards _pace and _creating
        self._pace = RepairPace()
        self._creating: set[str] = set()

    @property
    def _client(self) -> Client:
        return self._writer.client

    def apply(self, owner: KubeObject, wanted: Mapping[str, Any], changes: list[Change]) -> C:
        """Make the child be as `wanted` and return it; costs no request when nothing drifted.

        Raises `NotOurs` if the name is taken, `GoingAway` while the child or its namespace is being
        deleted, `Contended` if it was repaired too often lately, and `ApiError` for what the server refuses.
        """
        key = key_of(wanted["metadata"])
        mark = fingerprint(wanted)
        applied = self._memory.get(self._resource.kind, key)
        digest = applied.digest if applied and applied.fingerprint == mark else content_hash(wanted)
        live = self._store.get(key)
        for _ in range(MAX_TRIES):
            step = decide(wanted, digest, live, owner.uid, applied)
            if step is Step.KEEP and live is not None:
                self._memory.put(self._resource.kind, key, Applied(live.uid, digest, live.generation, mark))
                return live
            if step is Step.WAIT:
                raise GoingAway(f"{self._resource.kind} {key}")
            if step is Step.FOREIGN and live is not None:
                raise _foreign(self._resource.kind, owner, live)
            if self._is_repair(key, digest, live):
                self._keep_pace(key)
            try:
                if live is not None:
                    child = self._write(owner, wanted, digest, live, changes)
                else:
                    with self._claimed(key):
                        live = self._store.get(key)  # another reconcile may have made it meanwhile
                        if live is not None:
                            continue
                        child = self._write(owner, wanted, digest, None, changes)
                if not self._writer.dry_run:
                    self._memory.put(
                        self._resource.kind, key, Applied(child.uid, digest, child.generation, mark)
                    )
                return child
            except (Conflict, AlreadyExists, Invalid) as error:
                seen = self._look(key, wanted)
                if _same_incarnation(seen, live):
                    self._refused(owner, wanted, seen, error, changes)
                live = seen
            applied = self._memory.get(self._resource.kind, key)
        raise KeptChanging(f"{self._resource.kind} {key} kept changing while it was applied")

    def remove(self, owner: KubeObject, key: str, changes: list[Change]) -> None:
        """Delete the child `key` if it is there and `owner`'s; costs no request otherwise."""
        live = self._store.get(key)
        if live is None or live.deleting:
            return
        reference = live.controller_owner()
        if reference is None or reference.uid != owner.uid:
            return
        self._memory.drop(self._resource.kind, key)
        self._writer.delete(live, store=self._store, changes=changes)

    def _write(
        self, owner: KubeObject, wanted: Mapping[str, Any], digest: str, live: C | None, changes: list[Change]
    ) -> C:
        foretold = live.generation + 1 if live is not None else 1
        manifest = _stamped(wanted, digest, foretold, uid=live.uid if live is not None else None)
        try:
            child, answer = self._writer.apply(
                self._kind,
                manifest,
                live,
                force=live is not None,
                repair=self._is_repair(key_of(wanted["metadata"]), digest, live),
                store=self._store,
                changes=changes,
            )
        except Forbidden as error:
            if any(cause.get("reason") == "NamespaceTerminating" for cause in error.causes):
                raise GoingAway(f"Namespace {owner.namespace}") from error
            raise
        except NotFound as error:
            # Without a live object an apply creates; only the namespace (or the kind) can be missing.
            raise GoingAway(f"Namespace {owner.namespace}", "does not exist") from error
        if (
            live is None
            and not answer.created
            and _shared_with_others(answer.object, self._writer.field_manager)
        ):
            # A foreign object with the very same values: no conflict, but not ours. Give it back.
            self._writer.unapply(self._resource, answer.object)
            changes.pop()
            raise NotOurs(f"{self._resource.kind} {key_of(wanted['metadata'])}", "was made by somebody else")
        return child

    @contextmanager
    def _claimed(self, key: str) -> Iterator[None]:
        """While one reconcile makes the child `key`, none for another owner may.

        To the server both are the same field manager, so the second apply would not conflict, but take the
        child over (cert-manager/cert-manager#2941).

        Raises `KeptChanging`, which is soon tried again, if it is taken.
        """
        with self._lock:
            if key in self._creating:
                raise KeptChanging(f"{self._resource.kind} {key} is being made for another owner")
            self._creating.add(key)
        try:
            yield
        finally:
            with self._lock:
                self._creating.discard(key)

    def _keep_pace(self, key: str) -> None:
        with self._lock:
            wait = self._pace.take(self._resource.kind, key, self._clock.monotonic())
        if wait > 0:
            raise Contended(f"{self._resource.kind} {key}", wait)

    def _is_repair(self, key: str, digest: str, live: C | None) -> bool:
        """Whether this very content was applied before: then it is the object that has changed, or gone."""
        applied = self._memory.get(self._resource.kind, key)
        if applied is not None and applied.digest == digest:
            return True
        stamped = read_stamp(live.annotations.get(APPLIED)) if live is not None else None
        return stamped is not None and stamped[0] == digest

    def _look(self, key: str, wanted: Mapping[str, Any]) -> C | None:
        """The object as it is now, read from the server and put into the cache."""
        metadata = wanted["metadata"]
        try:
            found = self._client.get(self._resource, metadata["name"], metadata.get("namespace"))
        except NotFound:
            known = self._store.get(key)
            if known is not None:
                self._store.forget(key, known.resource_version)
            return None
        self._store.write_through(found)
        return self._kind.model_validate(found)

    def _refused(
        self,
        owner: KubeObject,
        wanted: Mapping[str, Any],
        live: C | None,
        error: ApiError,
        changes: list[Change],
    ) -> None:
        """The server refused an apply to exactly the object that we know: is there a way out?"""
        if not isinstance(error, Invalid) or live is None or not _is_immutable(error):
            raise error
        reference = live.controller_owner()
        if reference is None or reference.uid != owner.uid:
            raise error
        # Ours, but made with another value of a field that can't change (a selector of an older
        # version, prometheus-operator#4519). Delete this one object, once, and make it anew when it is
        # gone; if a finalizer keeps it, `decide` says WAIT and nothing is deleted again.
        self._writer.delete(live, store=self._store, changes=changes)
        raise GoingAway(
            f"{self._resource.kind} {key_of(wanted['metadata'])}",
            "is being replaced: a field that cannot change differs",
        ) from error


def _stamped(wanted: Mapping[str, Any], digest: str, generation: int, uid: str | None) -> dict[str, Any]:
    metadata = dict(wanted["metadata"])
    metadata["annotations"] = {**metadata.get("annotations", {}), APPLIED: stamp(digest, generation)}
    if uid is not None:
        metadata["uid"] = uid  # the server refuses if it is no longer that object
    return {**wanted, "metadata": metadata}


def _is_immutable(error: ApiError) -> bool:
    return any("field is immutable" in str(cause.get("message")) for cause in error.causes)


def _same_incarnation(seen: KubeObject | None, known: KubeObject | None) -> bool:
    return (seen.uid if seen is not None else None) == (known.uid if known is not None else None)


def _foreign(kind: str, owner: KubeObject, live: KubeObject) -> NotOurs | GoingAway:
    what = f"{kind} {live.key}"
    reference = live.controller_owner()
    if reference is None:
        return NotOurs(what, "has no controller")
    if (reference.kind, reference.name) == (
        owner.kind,
        owner.name,
    ) and reference.group == owner.resource.group:
        # The child of an earlier object of our name: the garbage collector is about to take it.
        return GoingAway(what, f"still belongs to an earlier {owner.kind} of this name")
    return NotOurs(what, f"is controlled by {reference.kind} {reference.name}")


def _shared_with_others(obj: Mapping[str, Any], manager: str) -> bool:
    """Whether anybody but `manager` owns content (not only metadata or status) of `obj`."""
    for entry in obj["metadata"].get("managedFields") or ():
        if entry.get("manager") == manager or entry.get("subresource"):
            continue
        fields = entry.get("fieldsV1") or {}
        if any(name not in ("f:metadata", "f:status") for name in fields):
            return True
    return False
