"""The scale subresource: an autoscaling/v1 Scale that is a view on a few fields of the object."""

from __future__ import annotations

from typing import Any

from kubeloop.sandbox.apply import apply
from kubeloop.sandbox.pipeline.backend import Backend, Call
from kubeloop.sandbox.pipeline.body import SyntaxFailure, media_type, parse_object, parse_yaml
from kubeloop.sandbox.pipeline.options import check_patch_options
from kubeloop.sandbox.pipeline.saving import update
from kubeloop.sandbox.pipeline.writes import (
    APPLY_PATCH,
    check_name,
    check_patch_type,
    patch_function,
    start,
)
from kubeloop.sandbox.registry import Object, ResourceInfo, ScalePaths
from kubeloop.sandbox.status import ApiFailure, Cause, bad_request, conflict, invalid, not_found

SCALE_VERSION = "autoscaling/v1"
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


def to_scale(info: ResourceInfo, obj: Object) -> Object:
    """The Scale of an object. Raises a 500 failure when it has none."""
    paths = scale_paths(info)
    wanted = read_path(obj, paths.spec_replicas)
    if wanted is None:
        where = paths.spec_replicas
        raise ApiFailure(
            500, "InternalError", f'Internal error occurred: the spec replicas field "{where}" does not exist'
        )
    metadata = obj["metadata"]
    scale: Object = {
        "kind": "Scale",
        "apiVersion": SCALE_VERSION,
        "metadata": {key: metadata[key] for key in _COPIED if key in metadata},
        "spec": {"replicas": wanted},
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
        raise bad_request(
            f"the API version in the data ({found}) does not match the expected API version ({SCALE_VERSION})"
        )
    value["metadata"] = value.get("metadata") or {}
    check_name(call, value)
    return _write(backend, call, options, lambda _: value)


def patch_scale(backend: Backend, call: Call) -> Object:
    """PATCH of ``/scale``, apply included."""
    kind = media_type(call.request.headers)
    check_patch_type(call.info, kind)
    options = start(call, "PatchOptions")
    check_patch_options(call.request.query, apply=kind == APPLY_PATCH)
    if kind == APPLY_PATCH:
        return _apply(backend, call, options)
    return _write(backend, call, options, patch_function(call.info, kind, call.request.body))


def _write(backend: Backend, call: Call, options: Any, change: Any) -> Object:
    info = call.info
    paths = scale_paths(info)

    def transform(live: Object) -> Object:
        scale = change(to_scale(info, live))
        replicas = _replicas(call, scale)
        version = (scale.get("metadata") or {}).get("resourceVersion")
        if version and version != live["metadata"]["resourceVersion"]:
            raise conflict(info.group, info.plural, call.target.name)
        if replicas == read_path(live, paths.spec_replicas):
            return live
        return with_path(live, paths.spec_replicas, replicas)

    uid = ""
    result = update(backend, call, options, transform, uid=uid, unconditional=True)
    return to_scale(info, result.obj)


def _replicas(call: Call, scale: Object) -> int:
    spec = scale.get("spec") or {}
    replicas = spec.get("replicas") or 0
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        raise bad_request(
            'Scale in version "v1" cannot be handled as a Scale: json: cannot unmarshal '
            f"{'string' if isinstance(replicas, str) else 'number'} into Go struct field "
            "ScaleSpec.spec.replicas of type int32"
        )
    if replicas < 0:
        text = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise invalid(
            "Scale", "autoscaling", call.target.name, [Cause("FieldValueInvalid", text, "spec.replicas")]
        )
    return replicas


def _apply(backend: Backend, call: Call, options: Any) -> Object:
    info, target = call.info, call.target
    paths = scale_paths(info)
    try:
        config, _ = parse_yaml(call.request.body)
    except SyntaxFailure as error:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from None
    if not isinstance(config, dict) or config.get("kind") != "Scale":
        found = config if isinstance(config, dict) else {}
        shown = f"{found.get('apiVersion', '') or '/'}, Kind={found.get('kind', '')}"
        raise bad_request(f"invalid object type: {shown}")
    replicas = _replicas(call, config)
    base: Object = {"apiVersion": info.api_version, "kind": info.kind}
    if "replicas" in (config.get("spec") or {}):
        base = with_path(base, paths.spec_replicas, replicas)
    base["metadata"] = {"name": target.name}
    if info.namespaced:
        base["metadata"]["namespace"] = target.namespace

    def transform(live: Object) -> Object:
        return apply(
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

    result = update(backend, call, options, transform, unconditional=True, tracked=True)
    return to_scale(info, result.obj)
