"""The guarded update: compute a new state from the current one, check it, store it; again if it changed.

This is the real server's registry.Store.Update with rest.BeforeUpdate. All updates (PUT, every patch, apply,
status, scale, finalizers, the marks of a deletion) end here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kubeloop.sandbox.apply import keep_times, track_update
from kubeloop.sandbox.pipeline import metadata as meta
from kubeloop.sandbox.pipeline.backend import NAMESPACES, Backend, Call, as_read, in_version, note_written
from kubeloop.sandbox.pipeline.numbers import as_stored
from kubeloop.sandbox.pipeline.options import WriteOptions
from kubeloop.sandbox.pipeline.permissions import check_write
from kubeloop.sandbox.registry import Object
from kubeloop.sandbox.status import ApiFailure, Cause, conflict, invalid, not_found
from kubeloop.sandbox.store import Changed, Record

MAX_RETRIES = 5
"""How often a patch is tried again on a changed object (handlers: MaxRetryWhenPatchConflicts)."""

Transform = Callable[[Object], Object]
"""From the live object (in the request's version) to the wanted one, decoded and defaulted.

May be called again with a newer live object."""


@dataclass(slots=True)
class Result:
    """What a write led to; `record` is None for dry runs and for objects that the write removed."""

    obj: Object
    record: Record | None
    created: bool = False


def update(
    backend: Backend,
    call: Call,
    options: WriteOptions,
    transform: Transform,
    *,
    uid: str = "",
    unconditional: bool,
    tracked: bool = False,
) -> Result:
    """Update the object the call names through `transform`.

    `uid` is a precondition (empty: none). `unconditional` allows an object without a resourceVersion;
    `tracked` says that `transform` has already done the managed fields (apply). Raises 404, 409, 422 and
    what `transform` raises.
    """
    info, target, store = call.info, call.target, backend.store
    namespace = target.namespace if info.namespaced else ""
    tries = 0
    while True:
        current = store.get(info.key, namespace, target.name)
        if current is None:
            raise not_found(info.group, info.plural, target.name)
        old = in_version(current, info)
        _check_uid(call, uid, old)
        new = transform(old)
        if new is old:
            return Result(old, current)
        _check_revision(call, new, current, unconditional=unconditional)
        check_write(backend, call, new, old)
        new = _before_update(backend, call, old, new, tracked=tracked)
        # What a changed schema makes of the stored state is written down by any write, even an empty one.
        if new == old and not call.hollow and as_read(current, info) is current:
            return Result(old, current)
        if options.dry_run:
            return Result(new, None)
        try:
            return _store(backend, call, current, new)
        except Changed:
            tries += 1
            if tries > MAX_RETRIES:
                raise conflict(info.group, info.plural, target.name) from None


def _check_uid(call: Call, uid: str, old: Object) -> None:
    found = old["metadata"]["uid"]
    if uid and uid != found:
        raise wrong_uid(call, uid, found)


def wrong_uid(call: Call, uid: str, found: str) -> ApiFailure:
    """409 of an update for another object than the one there is (`found`; empty: none)."""
    info, target = call.info, call.target
    # Built-in kinds lie under their bare plural, the others under their group.
    plural = "services/specs" if info.key == ("", "services") else info.plural
    parts = (info.group if info.custom else "", plural, target.namespace, target.name)
    key = "/".join(part for part in parts if part)
    return conflict(
        info.group,
        info.plural,
        target.name,
        f"StorageError: invalid object, Code: 4, Key: /registry/{key}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, "
        f"UID in object meta: {found}",
    )


def _check_revision(call: Call, new: Object, current: Record, *, unconditional: bool) -> None:
    info, name = call.info, call.target.name
    version = new["metadata"].get("resourceVersion") or ""
    if not version or version == "0":
        if unconditional:
            return
        cause = meta.invalid_value(0, "must be specified for an update", "metadata.resourceVersion")
        raise invalid(info.plural, info.group, name, [cause])
    if not (version.isascii() and version.isdigit()):
        raise ApiFailure(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')
    if int(version) != current.revision:
        raise conflict(info.group, info.plural, name)


def _before_update(backend: Backend, call: Call, old: Object, new: Object, *, tracked: bool) -> Object:
    """rest.BeforeUpdate: put back what may not change, count generations, track managers, validate."""
    info = call.info
    strategy, subresource = info.strategy, call.target.subresource
    before = old["metadata"]
    metadata = dict(new["metadata"])
    metadata["resourceVersion"] = before["resourceVersion"]
    metadata.setdefault("uid", before["uid"])
    metadata["creationTimestamp"] = before["creationTimestamp"]
    for key in ("generation", "deletionTimestamp"):
        if key in before:
            metadata[key] = before[key]
        elif key == "generation":
            metadata.pop(key, None)
    if "deletionGracePeriodSeconds" in before:
        metadata.setdefault("deletionGracePeriodSeconds", before["deletionGracePeriodSeconds"])
    new = {**new, "metadata": metadata}
    if not tracked:
        # Before the strategy has its say, as in the real server: what it puts back or adds is nobody's.
        new = track_update(
            old,
            new,
            manager=call.manager,
            schema=info.schema,
            api_version=info.api_version,
            now=backend.now(),
            subresource=subresource,
            reset=strategy.reset_fields(subresource),
        )
    if subresource == "finalize":
        # Only namespaces have it: their own finalizers live in spec.
        new = {**old, "spec": new.get("spec") or {}}
    elif subresource == "status":
        entries = new["metadata"].get("managedFields")
        new = strategy.prepare_status_update(new, old)
        new = {**new, "metadata": with_entries(new["metadata"], entries)}
    else:
        new = strategy.prepare_update(new, old)
        if "generation" in before and strategy.has_generation() and strategy.generation_moves(new, old):
            new = {**new, "metadata": {**new["metadata"], "generation": before["generation"] + 1}}
    new = keep_times(old, new)
    if new is not old:
        validate_update(call, new, old)
    return new


def with_entries(metadata: Object, entries: list[Object] | None) -> Object:
    """`metadata` with these managedFields (None: without any)."""
    result = {key: value for key, value in metadata.items() if key != "managedFields"}
    if entries:
        result["managedFields"] = entries
    return result


def validate_update(call: Call, new: Object, old: Object) -> None:
    """All that is wrong with replacing `old` by `new`. Raises a 422 failure."""
    info, strategy = call.info, call.info.strategy
    causes: list[Cause] = []
    if not _same_metadata(new["metadata"], old["metadata"]):
        # The server checks the common part in rest.BeforeUpdate and again in each strategy.
        causes += meta.validate_update(new["metadata"], old["metadata"]) * 2
        if info.custom:
            causes += meta.validate_create(new["metadata"], strategy.name_rule, namespaced=info.namespaced)
    if call.target.subresource == "status":
        causes += info.schema.validate_status(new, old, call.warn)
        causes += strategy.validate_status_update(new, old)
    else:
        causes += info.schema.validate(new, old, call.warn)
        causes += strategy.validate_update(new, old)
    if causes:
        raise invalid(info.kind, info.key[0], call.target.name, causes)
    for text in (*meta.finalizer_warnings(new, old), *strategy.warnings(new, old)):
        call.warn(text)


_COUNTED = ("resourceVersion", "generation", "managedFields")


def _same_metadata(new: Object, old: Object) -> bool:
    """Whether nothing moved but what the server counts itself: what was valid then needs no second look."""
    if any(
        value is not old.get(key) and value != old.get(key)
        for key, value in new.items()
        if key not in _COUNTED
    ):
        return False
    return all(key in new for key in old if key not in _COUNTED)


def _store(backend: Backend, call: Call, current: Record, new: Object) -> Result:
    info = call.info
    stored = info.to_storage(new)
    metadata = new["metadata"]
    was = current.obj["metadata"]
    if (
        was.get("deletionTimestamp")
        and not metadata.get("finalizers")
        and not was.get("deletionGracePeriodSeconds")
        and not (info.key == NAMESPACES and (new.get("spec") or {}).get("finalizers"))
    ):
        # The last finalizer is gone: the object goes instead of being updated; the client gets what it sent.
        backend.store.delete(info.key, current)
        call.wrote = True
        return Result(new, None)
    record = backend.store.update(info.key, current, as_stored(call, stored))
    note_written(call, record)
    call.wrote = True
    return Result(in_version(record, info), record)
