"""create, update and patch: the handlers in front of `creating` and `saving`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from kubeloop.sandbox.apply import apply
from kubeloop.sandbox.patch import json_patch, merge_patch, strategic_merge_patch
from kubeloop.sandbox.pipeline import metadata as meta
from kubeloop.sandbox.pipeline.backend import Backend, Call
from kubeloop.sandbox.pipeline.body import SyntaxFailure, go_type, media_type, parse_json, parse_yaml
from kubeloop.sandbox.pipeline.creating import create, place
from kubeloop.sandbox.pipeline.decoding import StrictError, check_kind, decode_body, decode_object, report
from kubeloop.sandbox.pipeline.options import (
    WriteOptions,
    check_patch_options,
    default_manager,
    write_options,
)
from kubeloop.sandbox.pipeline.saving import Result, update, wrong_uid
from kubeloop.sandbox.registry import Object, ResourceInfo
from kubeloop.sandbox.schema import Undecodable
from kubeloop.sandbox.status import (
    ApiFailure,
    Cause,
    bad_request,
    conflict,
    invalid,
    not_found,
    unsupported_media_type,
)
from kubeloop.sandbox.store import Exists

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


def start(call: Call, kind: str) -> WriteOptions:
    """The options of a write; also settles who the field manager is. Raises a 422 failure."""
    options = write_options(call.request.query, kind)
    call.manager = options.manager or default_manager(call.request.headers.get("user-agent", ""))
    return options


def create_object(backend: Backend, call: Call) -> Result:
    """POST to a collection."""
    options = start(call, "CreateOptions")
    obj = decode_body(call, media_type(call.request.headers), options)
    return create(backend, call, options, obj)


def update_object(backend: Backend, call: Call) -> Result:
    """PUT of an object or of its status."""
    strategy = call.info.strategy
    options = start(call, "UpdateOptions")
    obj = place(call, decode_body(call, media_type(call.request.headers), options))
    check_name(call, obj)
    uid = obj["metadata"].get("uid", "")
    try:
        return update(
            backend,
            call,
            options,
            lambda _: obj,
            uid=uid,
            unconditional=strategy.allow_unconditional_update,
        )
    except ApiFailure as failure:
        missing = failure.code == 404 and not call.target.subresource
        if not (missing and strategy.allow_create_on_update):
            raise
    if uid:
        raise wrong_uid(call, uid, "")
    return create(backend, call, options, obj)


def check_name(call: Call, obj: Object) -> None:
    """The object must bear the name in the URL. Raises a 400 failure."""
    wanted = call.target.name
    found = obj["metadata"].get("name", "")
    if not found:
        raise bad_request(
            f"the name of the object ({wanted} based on URL) was undeterminable: name must be provided"
        )
    if found != wanted:
        raise bad_request(f"the name of the object ({found}) does not match the name on the URL ({wanted})")


def _uid_mismatch(uid: str) -> str:
    return f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"


def patch_types(info: ResourceInfo) -> tuple[str, ...]:
    """The patches a resource takes: custom resources know no strategic merge."""
    if info.custom:
        return (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
    return (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)


def check_patch_type(info: ResourceInfo, kind: str) -> None:
    """Raises a 415 failure for other media types."""
    accepted = patch_types(info)
    if kind not in accepted:
        if not info.custom:
            raise ApiFailure(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})
        raise unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: "
            + ", ".join(accepted)
        )


def begin_patch(call: Call) -> tuple[str, WriteOptions]:
    """The media type and the options of a PATCH, checked in the real server's order."""
    kind = media_type(call.request.headers)
    check_patch_type(call.info, kind)
    options = start(call, "PatchOptions")
    check_patch_options(call.request.query, apply=kind == APPLY_PATCH)
    return kind, options


def patch_object(backend: Backend, call: Call) -> Result:
    """PATCH of an object or of its status, in all four ways."""
    kind, options = begin_patch(call)
    if kind == APPLY_PATCH:
        return _apply(backend, call, options)
    change = patch_function(call.info, kind, call.request.body)

    def transform(live: Object) -> Object:
        patched = change(live)
        if patched is live:
            return live
        return _decode_patched(call, patched, options)

    allowed = call.info.strategy.allow_unconditional_update
    return update(backend, call, options, transform, unconditional=allowed)


def patch_function(info: ResourceInfo, kind: str, body: bytes) -> Callable[[Object], Object]:
    """What a JSON, merge or strategic patch does to an object. Raises a 400 failure for a broken patch."""
    # Strategic merge patches are read by another function of the server, which adds no words of its own.
    prefix = "" if kind == STRATEGIC_PATCH else "error decoding patch: "
    try:
        patch, _ = parse_json(body)
    except SyntaxFailure as error:
        raise bad_request(f"{prefix}{error}") from None
    if kind == JSON_PATCH:
        if not isinstance(patch, list):
            raise _wrong_patch(patch, "[]handlers.jsonPatchOp", prefix)
        return lambda live: json_patch(live, patch)
    if patch is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise _wrong_patch(patch, "map[string]interface {}", prefix)
    if kind == MERGE_PATCH:
        return lambda live: merge_patch(live, patch)
    return lambda live: strategic_merge_patch(live, patch, info.schema)


def _wrong_patch(patch: Any, wanted: str, prefix: str) -> ApiFailure:
    name = go_type(patch)
    return bad_request(f"{prefix}json: cannot unmarshal {name} into Go value of type {wanted}")


def _decode_patched(call: Call, patched: Object, options: WriteOptions) -> Object:
    """A patched object, read as if it had been sent. Raises 400 and 422 failures."""
    info = call.info
    if info.custom and patched.get("apiVersion") != info.api_version:
        shown = meta.invalid_value(patched.get("apiVersion", ""), f"must be {info.api_version}", "apiVersion")
        raise invalid(info.kind, info.group, call.target.name, [shown])
    found = patched.get("kind")
    if not info.custom and found != info.kind:
        version = str(patched.get("apiVersion", "")).rpartition("/")[2]
        package = info.group.partition(".")[0] or "core"
        why = f"converting ({version}.{found}) to ({package}.{info.kind}): unknown conversion"
        raise bad_patch(patched, why)
    check_kind(patched, info)
    try:
        obj = decode_object(call, patched, options, [])
    except (meta.MetadataShapeError, StrictError) as error:
        raise bad_patch(patched, str(error)) from None
    except Undecodable as error:
        raise bad_patch(patched, error.why) from None
    check_name(call, obj)
    return place(call, obj)


def bad_patch(patched: Object, why: str) -> ApiFailure:
    """422 of a patch that leads to what cannot be read; the server quotes the whole object."""
    text = json.dumps(patched, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return invalid("", "", "", [Cause("FieldValueInvalid", f'Invalid value: "{quoted}": {why}', "patch")])


def _apply(backend: Backend, call: Call, options: WriteOptions) -> Result:
    info, target, store = call.info, call.target, backend.store
    config = _parse_config(call, options)

    def merged(live: Object | None) -> Object:
        try:
            result = apply(
                live,
                config,
                manager=options.manager,
                force=options.force,
                schema=info.schema,
                api_version=info.api_version,
                now=backend.now(),
                subresource=target.subresource,
                reset=info.strategy.reset_fields(target.subresource),
            )
        except Undecodable as error:
            raise _inconvertible(info, config, error.why) from None
        call.hollow = info.custom and any(
            config["metadata"].get(key) in ({}, []) and not result["metadata"].get(key) for key in _MAPS
        )
        if call.hollow:
            # Seen on 1.36: it is written anew with every apply.
            result = dict(result)
        if result is live:
            return result
        result = info.strategy.defaults(info.schema.default(result))
        if live is not None:
            check_name(call, result)
            return place(call, result)
        return result

    namespace = target.namespace if info.namespaced else ""
    while True:
        if store.get(info.key, namespace, target.name) is not None:
            return update(backend, call, options, merged, unconditional=True, tracked=True)
        if target.subresource:
            raise not_found(info.group, info.plural, target.name)
        new = merged(None)
        new["metadata"].pop("resourceVersion", None)  # there is none yet; the server does not look
        uid = new["metadata"].get("uid")
        if uid:
            raise conflict(info.group, info.plural, target.name, _uid_mismatch(uid))
        check_name(call, new)
        try:
            return create(backend, call, options, _ordered(new), tracked=True)
        except ApiFailure as failure:
            # Somebody was faster: the apply becomes an update.
            if failure.reason != "AlreadyExists" or not isinstance(failure.__context__, Exists):
                raise


_MAPS = ("labels", "annotations", "finalizers", "ownerReferences")


def _inconvertible(info: ResourceInfo, config: Object, why: str) -> ApiFailure:
    """500 of a merged object that fits the types of its fields but not their formats (times)."""
    kind = f"{info.api_version}, Kind={info.kind}"
    name = f"{config['metadata'].get('namespace', '')}/{config['metadata'].get('name', '')}"
    text = f"failed to convert new object ({name}; {kind}) to proper version: unable to convert unstructured "
    return ApiFailure(500, "", f"{text}object to {kind}: {why}")


def _ordered(obj: Object) -> Object:
    """`obj` with apiVersion and kind first, as encoders rely on."""
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], **obj}


def _parse_config(call: Call, options: WriteOptions) -> Object:
    try:
        config, repeated = parse_yaml(call.request.body)
    except SyntaxFailure as error:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from None
    if config is None:
        config = {}
    if not isinstance(config, dict):
        name = go_type(config)
        raise bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
            f"{name} into Go value of type map[string]interface {{}}"
        )
    if repeated and options.validation == "Strict":
        lines = "\n".join(f"  {line}" for line in repeated)
        raise bad_request(
            f"error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n{lines}"
        )
    report(call, options, repeated, [])
    metadata = config.get("metadata")
    if metadata is None:
        return {**config, "metadata": {}}
    if not isinstance(metadata, dict):
        raise bad_request(f"error decoding YAML: metadata is no object but {go_type(metadata)}")
    return config
