"""delete and deletecollection: preconditions, propagation, finalizers, grace."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from kubeloop.sandbox.pipeline.admission import admit_delete
from kubeloop.sandbox.pipeline.backend import CRDS, NAMESPACES, Backend, Call, in_version
from kubeloop.sandbox.pipeline.body import (
    PROTOBUF,
    YAML,
    SyntaxFailure,
    check_media_type,
    media_type,
    parse_json,
    parse_protobuf,
    parse_yaml,
)
from kubeloop.sandbox.pipeline.options import DeleteOptions, delete_options, list_options
from kubeloop.sandbox.pipeline.reads import select
from kubeloop.sandbox.registry import Object, ResourceInfo
from kubeloop.sandbox.status import ApiFailure, bad_request, conflict, not_found
from kubeloop.sandbox.store import Changed, Record

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
CRD_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
RETURNED = frozenset({("", "pods"), ("", "services"), ("", "serviceaccounts")})
"""Resources whose deletion answers with the object instead of a Status (registry: ReturnDeletedObject)."""
DEFAULT_GRACE = 30
"""Seconds a pod gets to stop when it does not say otherwise."""


def parse_options(call: Call) -> DeleteOptions:
    """From the body, else from the query. Raises 400, 415 and 422 failures."""
    request = call.request
    if not request.body:
        return delete_options(request.query, None)
    kind = media_type(request.headers)
    check_media_type(kind)
    value: Any
    try:
        if kind == PROTOBUF:
            value = parse_protobuf(request.body)
        else:
            value, _ = parse_yaml(request.body) if kind == YAML else parse_json(request.body)
    except SyntaxFailure as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(value, dict):
        raise bad_request("couldn't get version/kind; json parse error: the body is no object")
    found = value.get("kind") or "DeleteOptions"
    if found != "DeleteOptions":
        version = value.get("apiVersion") or "meta.k8s.io/v1"
        raise bad_request(
            f'no kind "{found}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        )
    return delete_options(request.query, value)


def delete_object(backend: Backend, call: Call) -> Object:
    """DELETE of one object: what to answer, its last state or a Status."""
    options = parse_options(call)
    admit_delete(call, call.target.name)
    gone, obj = _delete(backend, call, options, call.target.namespace, call.target.name)
    return success(call.info, obj) if gone and call.info.key not in RETURNED else obj


def success(info: ResourceInfo, obj: Object) -> Object:
    """The Status that answers the delete of an object that is gone."""
    details = {
        "name": obj["metadata"]["name"],
        "group": info.group,
        "kind": info.plural,
        "uid": obj["metadata"]["uid"],
    }
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }


def delete_collection(backend: Backend, call: Call) -> tuple[list[Record], dict[str, Any]]:
    """DELETE of a collection: the objects it was about, as a list."""
    options = parse_options(call)
    records, meta = select(backend, call, list_options(call.request.query))
    for record in records:
        try:
            admit_delete(call, record.name)
            _delete(backend, call, options, record.namespace, record.name)
        except ApiFailure as failure:
            # Somebody else deleted it in the meantime: that is what was wanted.
            if failure.code != 404:
                raise
    return records, meta


def _delete(
    backend: Backend, call: Call, options: DeleteOptions, namespace: str, name: str
) -> tuple[bool, Object]:
    """Delete or mark one object: whether it is gone, and its last state."""
    info, store = call.info, backend.store
    namespace = namespace if info.namespaced else ""
    while True:
        current = store.get(info.key, namespace, name)
        if current is None:
            raise not_found(info.group, info.plural, name)
        obj = in_version(current, info)
        _check_preconditions(info, obj, options)
        marked = _mark(backend, info, obj, options)
        if marked is None:
            if options.dry_run:
                return True, obj
            try:
                if info.strategy.graceful:
                    # Watchers see the end of the grace period first, also when there was none.
                    current = store.update(info.key, current, info.to_storage(_at_once(backend, obj)))
                gone = store.delete(info.key, current)
            except Changed:
                continue
            call.wrote = True
            return True, in_version(gone, info)
        if marked == obj or options.dry_run:
            return False, marked
        stored = info.to_storage(marked)
        try:
            record = store.update(info.key, current, stored)
        except Changed:
            continue
        call.wrote = True
        return False, in_version(record, info)


def _check_preconditions(info: ResourceInfo, obj: Object, options: DeleteOptions) -> None:
    metadata = obj["metadata"]
    # The real server names the kind here where it names the resource everywhere else.
    if options.uid is not None and options.uid != metadata["uid"]:
        raise conflict(
            info.group,
            info.kind,
            metadata["name"],
            f"the UID in the precondition ({options.uid}) does not match the UID in record "
            f"({metadata['uid']}). The object might have been deleted and then recreated",
        )
    version = options.resource_version
    if version is not None and version != metadata["resourceVersion"]:
        raise conflict(
            info.group,
            info.kind,
            metadata["name"],
            f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in "
            f"record ({metadata['resourceVersion']}). The object might have been modified",
        )


def _mark(backend: Backend, info: ResourceInfo, obj: Object, options: DeleteOptions) -> Object | None:
    """`obj` as it stays, marked as deleted; None when nothing keeps it."""
    metadata = obj["metadata"]
    finalizers = _finalizers(list(metadata.get("finalizers") or ()), options, info)
    grace = _grace(info, obj, options)
    if info.key == CRDS and not metadata.get("deletionTimestamp"):
        return _mark_crd(backend, obj, finalizers)
    retained = info.key == NAMESPACES and bool((obj.get("spec") or {}).get("finalizers"))
    if not finalizers and not grace and not retained:
        return None
    changed = {key: value for key, value in metadata.items() if key != "finalizers"}
    if finalizers:
        changed["finalizers"] = finalizers
    if not metadata.get("deletionTimestamp"):
        when = backend.clock.now() + timedelta(seconds=grace)
        changed["deletionTimestamp"] = when.strftime("%Y-%m-%dT%H:%M:%SZ")
        if info.key != NAMESPACES:
            changed["deletionGracePeriodSeconds"] = grace
            if metadata.get("generation"):
                changed["generation"] = metadata["generation"] + 1
    elif info.key != NAMESPACES:
        changed["deletionGracePeriodSeconds"] = min(grace, metadata.get("deletionGracePeriodSeconds") or 0)
    marked = {**obj, "metadata": changed}
    if info.key == NAMESPACES:
        marked["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    return marked


def _at_once(backend: Backend, obj: Object) -> Object:
    """`obj` with no grace left."""
    metadata = obj["metadata"]
    changed = {**metadata, "deletionTimestamp": backend.now(), "deletionGracePeriodSeconds": 0}
    if not metadata.get("deletionTimestamp") and metadata.get("generation"):
        changed["generation"] = metadata["generation"] + 1
    return {**obj, "metadata": changed}


def _mark_crd(backend: Backend, obj: Object, finalizers: list[str]) -> Object:
    """A CRD stays until its instances are gone; its own finalizer and condition say so."""
    now = backend.now()
    wanted = [*finalizers, CRD_FINALIZER] if CRD_FINALIZER not in finalizers else finalizers
    condition = {
        "type": "Terminating",
        "status": "True",
        "lastTransitionTime": now,
        "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    }
    status = obj.get("status") or {}
    metadata = {**obj["metadata"], "finalizers": wanted, "deletionTimestamp": now}
    conditions = [*(status.get("conditions") or ()), condition]
    return {
        **obj,
        "metadata": {**metadata, "deletionGracePeriodSeconds": 0},
        "status": {**status, "conditions": conditions},
    }


def _finalizers(found: list[str], options: DeleteOptions, info: ResourceInfo) -> list[str]:
    """The finalizers that stand for the wanted propagation (deletionFinalizersForGarbageCollection)."""
    propagation = options.propagation
    if not propagation:
        if ORPHAN in found or FOREGROUND in found:
            return found
        propagation = info.strategy.default_propagation
    wanted = {"Orphan": ORPHAN, "Foreground": FOREGROUND}.get(propagation)
    result = [name for name in found if name not in (ORPHAN, FOREGROUND) or name == wanted]
    if wanted and wanted not in result:
        result.append(wanted)
    return result


def _grace(info: ResourceInfo, obj: Object, options: DeleteOptions) -> int:
    """Seconds the object is given; 0 for kinds without graceful deletion, and for pods that run nowhere."""
    if not info.strategy.graceful:
        return 0
    spec = obj.get("spec") or {}
    if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return 0
    if options.grace_seconds is not None:
        return max(0, options.grace_seconds)
    return int(spec.get("terminationGracePeriodSeconds") or DEFAULT_GRACE)
