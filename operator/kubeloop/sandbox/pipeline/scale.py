"""The scale subresource: an autoscaling/v1 Scale that is a view on a few fields of the object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubeloop.sandbox.apply import apply, track_update
from kubeloop.sandbox.pipeline.backend import Backend, Call
from kubeloop.sandbox.pipeline.body import SyntaxFailure, media_type, parse_object, parse_yaml
from kubeloop.sandbox.pipeline.options import WriteOptions
from kubeloop.sandbox.pipeline.saving import update
from kubeloop.sandbox.pipeline.writes import (
    APPLY_PATCH,
    bad_patch,
    begin_patch,
    check_name,
    patch_function,
    start,
)
from kubeloop.sandbox.registry import Object, ResourceInfo, ScalePaths
from kubeloop.sandbox.status import ApiFailure, Cause, bad_request, conflict, invalid, not_found

SCALE_VERSION = "autoscaling/v1"
Change = Callable[[Object], Object]
_COPIED = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def path_parts(path: str) -> list[str]:
    """``.spec.replicas`` as a list of fields."""
    return [part for part in path.split(".") if part]


def read_path(obj: Object, path: str) -> Any:
    """The value at a dotted path; None when there is none."""
    value: Any = obj
    for part in path_parts(path):
        if not isinstance(value, dict):
            return None
        value = value.get(part)
    return value


def with_path(obj: Object, path: str, value: Any) -> Object:
    """A copy of `obj` with the value at a dotted path replaced."""
    head, *rest = path_parts(path)
    if rest:
        child = obj.get(head)
        value = with_path(child if isinstance(child, dict) else {}, ".".join(rest), value)
    return {**obj, head: value}


def selector_text(selector: Any) -> str:
    """A label selector as text; strings are that already."""
    if not isinstance(selector, dict):
        return str(selector or "")
    terms = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for term in selector.get("matchExpressions") or ():
        operator, key = term["operator"], term["key"]
        values = ",".join(sorted(term.get("values") or ()))
        terms.append(
            {
                "In": f"{key} in ({values})",
                "NotIn": f"{key} notin ({values})",
                "Exists": key,
                "DoesNotExist": f"!{key}",
            }[operator]
        )
    return ",".join(sorted(terms))


def to_scale(info: ResourceInfo, obj: Object, *, writing: bool = False) -> Object:
    """The Scale of an object. Raises a 500 failure when it has none; one being written begins at 0."""
    paths = scale_paths(info)
    wanted = read_path(obj, paths.spec_replicas)
    if wanted is None and not writing:
        why = f'the spec replicas field "{paths.spec_replicas}" does not exist'
        details = {"causes": [{"message": why}]}
        raise ApiFailure(500, "InternalError", f"Internal error occurred: {why}", details=details)
    metadata = obj["metadata"]
    scale: Object = {
        "kind": "Scale",
        "apiVersion": SCALE_VERSION,
        "metadata": {key: metadata[key] for key in _COPIED if key in metadata},
        "spec": {"replicas": wanted} if wanted else {},  # omitempty
        "status": {"replicas": read_path(obj, paths.status_replicas) or 0},
    }
    if paths.label_selector:
        text = selector_text(read_path(obj, paths.label_selector))
        if text:
            scale["status"]["selector"] = text
    return scale


def scale_paths(info: ResourceInfo) -> ScalePaths:
    """Where a resource keeps its numbers; resources without scale are not routed here."""
    if info.scale is None:
        raise not_found(info.group, info.plural, "scale")
    return info.scale


def get_scale(backend: Backend, call: Call) -> Object:
    """GET of ``/scale``."""
    info, target = call.info, call.target
    record = backend.store.get(info.key, target.namespace if info.namespaced else "", target.name)
    if record is None:
        raise not_found(info.group, info.plural, target.name)
    return to_scale(info, record.obj)


def put_scale(backend: Backend, call: Call) -> Object:
    """PUT of ``/scale``."""
    options = start(call, "UpdateOptions")
    value, _ = parse_object(call.request.body, media_type(call.request.headers), "Scale", custom=False)
    found = value.setdefault("apiVersion", SCALE_VERSION)
    if found != SCALE_VERSION:
        kind = f"{found.rpartition('/')[2]}.Scale"
        text = f'no kind is registered for the type {kind} in scheme "pkg/runtime/scheme.go:111"'
        raise bad_request(text)
    value["metadata"] = value.get("metadata") or {}
    check_name(call, value)
    return _write(backend, call, options, lambda _: value)


def patch_scale(backend: Backend, call: Call) -> Object:
    """PATCH of ``/scale``, apply included."""
    kind, options = begin_patch(call)
    if kind == APPLY_PATCH:
        return _apply(backend, call, options)
    return _write(backend, call, options, patch_function(call.info, kind, call.request.body))


def _write(backend: Backend, call: Call, options: WriteOptions, change: Change) -> Object:
    info = call.info
    paths = scale_paths(info)

    def transform(live: Object) -> Object:
        scale = change(to_scale(info, live, writing=True))
        replicas = _replicas(call, scale)
        version = (scale.get("metadata") or {}).get("resourceVersion")
        if version and version != live["metadata"]["resourceVersion"]:
            raise conflict(info.group, info.plural, call.target.name)
        if replicas == read_path(live, paths.spec_replicas):
            return live
        new = with_path(live, paths.spec_replicas, replicas)
        if not _tracked(live, paths):
            return new  # nobody owns the number: nobody starts to (the server skips it, too)
        new = track_update(
            live,
            new,
            manager=call.manager,
            schema=info.schema,
            api_version=info.api_version,
            now=backend.now(),
            subresource="scale",
            reset=info.strategy.reset_fields("scale"),
        )
        # A Scale of 0 is written without the number, so nobody owns it afterwards.
        return _timeless(new) if replicas else _unscaled(new, call.manager)

    result = update(backend, call, options, transform, unconditional=True, tracked=True)
    return to_scale(info, result.obj)


def _tracked(obj: Object, paths: ScalePaths) -> bool:
    """Whether any manager owns the number of replicas."""
    field_path = ".".join(f"f:{part}" for part in path_parts(paths.spec_replicas))
    entries = obj["metadata"].get("managedFields") or ()
    return any(read_path(entry.get("fieldsV1") or {}, field_path) is not None for entry in entries)


def _unscaled(obj: Object, manager: str) -> Object:
    """`obj` without what `manager` holds through ``/scale``."""
    entries = [
        entry
        for entry in obj["metadata"].get("managedFields") or ()
        if (entry.get("subresource"), entry.get("manager"), entry.get("operation"))
        != ("scale", manager, "Update")
    ]
    return {**obj, "metadata": {**obj["metadata"], "managedFields": entries}}


def _timeless(obj: Object) -> Object:
    """Entries of ``/scale`` bear no time."""
    entries = [
        {k: v for k, v in entry.items() if k != "time"} if entry.get("subresource") == "scale" else entry
        for entry in obj["metadata"].get("managedFields") or ()
    ]
    # No time sorts before every time.
    entries.sort(key=lambda entry: (entry.get("operation", ""), "time" in entry))
    return {**obj, "metadata": {**obj["metadata"], "managedFields": entries}}


def _replicas(call: Call, scale: Object) -> int:
    spec = scale.get("spec") or {}
    replicas = spec.get("replicas") or 0
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        kind = "string" if isinstance(replicas, str) else "number"
        why = f"json: cannot unmarshal {kind} into Go struct field ScaleSpec.spec.replicas of type int32"
        if call.request.method == "PATCH":
            raise bad_patch(scale, why)
        raise bad_request(f'Scale in version "v1" cannot be handled as a Scale: {why}')
    if replicas < 0 and not call.info.custom:
        text = f"Invalid value: {replicas}: must be greater than or equal to 0"
        cause = Cause("FieldValueInvalid", text, "spec.replicas")
        raise invalid("Scale", "autoscaling", call.target.name, [cause])
    return replicas


def _apply(backend: Backend, call: Call, options: WriteOptions) -> Object:
    info, target = call.info, call.target
    paths = scale_paths(info)
    try:
        config, _ = parse_yaml(call.request.body)
    except SyntaxFailure as error:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from None
    found = config if isinstance(config, dict) else {}
    if found.get("kind") != "Scale" or found.get("apiVersion") != SCALE_VERSION:
        raise bad_request(
            f"invalid object type: {found.get('apiVersion') or '/'}, Kind={found.get('kind', '')}"
        )
    replicas = _replicas(call, found)
    base: Object = {"apiVersion": info.api_version, "kind": info.kind, "metadata": {"name": target.name}}
    if info.namespaced:
        base["metadata"]["namespace"] = target.namespace
    if "replicas" in (found.get("spec") or {}):
        base = with_path(base, paths.spec_replicas, replicas)

    def transform(live: Object) -> Object:
        if info.custom and not _tracked(live, paths):
            raise _custom_apply(live, found, paths)
        try:
            merged = apply(
                live,
                base,
                manager=options.manager,
                force=options.force,
                schema=info.schema,
                api_version=info.api_version,
                now=backend.now(),
                subresource="scale",
                reset=info.strategy.reset_fields("scale"),
            )
        except ApiFailure as failure:
            raise _in_scale_version(failure, info) from None
        if info.custom:
            raise _custom_apply(live, found, paths)
        return merged if merged is live else _timeless(merged)

    result = update(backend, call, options, transform, unconditional=True, tracked=True)
    return to_scale(info, result.obj)


def _custom_apply(live: Object, config: Object, paths: ScalePaths) -> ApiFailure:
    """The real server (seen on 1.36) cannot apply to the scale of a custom resource."""
    metadata = config.get("metadata") or {}
    name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    what = f"failed to convert new object ({name}; autoscaling/v1, Kind=Scale)"
    if not _tracked(live, paths):
        what = (
            "failed to create manager for existing fields: failed to convert live object "
            "(/; autoscaling/v1, Kind=Scale)"
        )
    tail = f"request to convert CR to an invalid group/version: {SCALE_VERSION}"
    return ApiFailure(500, "", f"{what} to proper version: {tail}")


def _in_scale_version(failure: ApiFailure, info: ResourceInfo) -> ApiFailure:
    """Conflicts on ``/scale`` are told in terms of the Scale's version."""
    path = scale_paths(info).spec_replicas

    def told(text: str) -> str:
        text = text.replace(f"using {info.api_version}", f"using {SCALE_VERSION}")
        return text.replace(path, ".spec.replicas")

    details = failure.details
    if details is not None:
        causes = [
            {**cause, "message": told(cause.get("message", "")), "field": told(cause.get("field", ""))}
            for cause in details.get("causes") or ()
        ]
        details = {**details, "causes": causes}
    return ApiFailure(failure.code, failure.reason, told(failure.message), details=details)
