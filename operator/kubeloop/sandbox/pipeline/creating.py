"""create: from POST, from an apply to what is not there, and from the few PUTs that may create."""

from __future__ import annotations

from kubeloop.sandbox.apply import track_update
from kubeloop.sandbox.pipeline import metadata as meta
from kubeloop.sandbox.pipeline.admission import PODS, admit_create, admit_pod
from kubeloop.sandbox.pipeline.backend import Backend, Call, in_version, note_written
from kubeloop.sandbox.pipeline.numbers import as_stored
from kubeloop.sandbox.pipeline.options import WriteOptions
from kubeloop.sandbox.pipeline.permissions import check_write
from kubeloop.sandbox.pipeline.saving import Result
from kubeloop.sandbox.registry import Object
from kubeloop.sandbox.status import (
    ApiFailure,
    already_exists,
    bad_request,
    generate_name_conflict,
    invalid,
)
from kubeloop.sandbox.store import Exists

NAME_TRIES = 8
"""How many generated names are tried (registry: maxNameGenerationCreateAttempts)."""
MAX_GENERATED_PREFIX = 58
"""A generateName is cut to this length before the five random letters are added."""


def place(call: Call, obj: Object) -> Object:
    """Fill in the request's namespace, or refuse another one. Raises a 400 failure.

    What lives in no namespace simply loses the one it came with.
    """
    metadata = obj["metadata"]
    asked = call.target.namespace if call.info.namespaced else ""
    found = metadata.get("namespace", "")
    if found == asked:
        return obj
    if not call.info.namespaced:
        return {**obj, "metadata": {key: value for key, value in metadata.items() if key != "namespace"}}
    if found:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return {**obj, "metadata": {**metadata, "namespace": asked}}


def create(
    backend: Backend, call: Call, options: WriteOptions, obj: Object, *, tracked: bool = False
) -> Result:
    """Store a new object, decoded and defaulted. `tracked` as in `saving.update`.

    Raises 400, 403, 404, 409 and 422 failures, and the real server's 500 for a resourceVersion.
    """
    info = call.info
    obj, complaints = meta.without_repeated_owners(place(call, obj))
    for text in complaints:
        call.warn(text)
    wanted = obj["metadata"].get("name", "")
    check_write(backend, call, obj, None)
    admit_create(backend, call, wanted)
    if info.key == PODS:
        obj = admit_pod(backend, call, obj)
    for attempt in range(NAME_TRIES):
        new = _before_create(backend, call, obj, tracked=tracked)
        metadata = new["metadata"]
        name = metadata["name"]
        version = metadata.get("resourceVersion", "")
        if version.isdigit() and int(version):
            # What is no number counts as none.
            raise ApiFailure(500, "", "resourceVersion should not be set on objects to be created")
        namespace = call.target.namespace if info.namespaced else ""
        if options.dry_run:
            if backend.store.get(info.key, namespace, name) is not None:
                raise _taken(backend, call, namespace, name)
            return Result(new, None, created=True)
        stored = as_stored(call, info.to_storage(new))
        try:
            record = backend.store.create(info.key, namespace, name, stored)
        except Exists:
            if wanted:
                raise _taken(backend, call, namespace, name) from None
            if attempt == NAME_TRIES - 1:
                raise generate_name_conflict(info.group, info.plural, name) from None
            continue
        note_written(call, record)
        call.wrote = True
        return Result(in_version(record, info), record, created=True)
    raise AssertionError("unreachable")


def _taken(backend: Backend, call: Call, namespace: str, name: str) -> ApiFailure:
    """409; says so when the object in the way is being deleted."""
    info = call.info
    failure = already_exists(info.group, info.plural, name)
    record = backend.store.get(info.key, namespace, name)
    if record is not None and record.obj["metadata"].get("deletionTimestamp"):
        failure.message = f"object is being deleted: {failure.message}"
    return failure


def _before_create(backend: Backend, call: Call, obj: Object, *, tracked: bool) -> Object:
    """rest.BeforeCreate: system fields, generated name, managers, validation."""
    info, strategy = call.info, call.info.strategy
    new = {**obj, "metadata": _system_fields(backend, call, obj["metadata"])}
    if not tracked:
        # Before the strategy has its say, as in the real server: what it adds is nobody's.
        new = track_update(
            None,
            new,
            manager=call.manager,
            schema=info.schema,
            api_version=info.api_version,
            now=backend.now(),
            subresource="",
            reset=strategy.reset_fields(""),
        )
    new = strategy.prepare_create(new, backend.clock.now())
    causes = meta.validate_create(new["metadata"], strategy.name_rule, namespaced=info.namespaced)
    if not info.custom:
        causes += meta.builtin_finalizers(new["metadata"])
    causes += info.schema.validate(new)
    causes += strategy.validate_create(new)
    if causes:
        raise invalid(info.kind, info.key[0], new["metadata"].get("name", ""), causes)
    for text in (*meta.finalizer_warnings(new, None), *strategy.warnings(new, None)):
        call.warn(text)
    return new


def _system_fields(backend: Backend, call: Call, given: Object) -> Object:
    """Metadata with what only the server sets: uid, creation time, generation, a generated name."""
    metadata = {
        key: value
        for key, value in given.items()
        if key not in ("deletionTimestamp", "deletionGracePeriodSeconds")
    }
    metadata["uid"] = backend.new_uid()
    metadata["creationTimestamp"] = backend.now()
    if call.info.strategy.has_generation():
        metadata["generation"] = 1
    prefix = metadata.get("generateName")
    if prefix and not metadata.get("name"):
        metadata["name"] = prefix[:MAX_GENERATED_PREFIX] + backend.suffix()
    return metadata
