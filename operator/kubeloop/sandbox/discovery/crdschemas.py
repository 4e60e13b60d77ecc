"""What a CRD contributes to the OpenAPI documents: its kind, its list."""

from __future__ import annotations

from typing import Any

from kubeloop.sandbox.registry import ResourceInfo
from kubeloop.sandbox.schema import OBJECT_META

Object = dict[str, Any]

_PREFIX = "#/components/schemas/"
_LIST_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
_CONVENTIONS = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_API_VERSION = {
    "description": (
        "APIVersion defines the versioned schema of this representation of an object. Servers should "
        "convert recognized schemas to the latest internal value, and may reject unrecognized values. "
        "More info: "
        f"{_CONVENTIONS}#resources"
    ),
    "type": "string",
}
_KIND = {
    "description": (
        "Kind is a string value representing the REST resource this object represents. Servers may infer "
        "this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: "
        f"{_CONVENTIONS}#types-kinds"
    ),
    "type": "string",
}


def definition_name(info: ResourceInfo) -> str:
    """``com.example.v1.WebApp``: the group backwards, version, kind."""
    return ".".join([*reversed(info.group.split(".")), info.version, info.kind])


def _reference(name: str, description: str) -> Object:
    return {"description": description, "allOf": [{"$ref": _PREFIX + name}]}


def crd_schemas(info: ResourceInfo) -> Object:
    """The definitions of a custom resource and of its list."""
    name = definition_name(info)
    metadata = _reference(OBJECT_META, f"Standard object's metadata. More info: {_CONVENTIONS}#metadata")
    schema = _embedded(dict(info.openapi))
    properties = {**(schema.get("properties") or {}), "apiVersion": _API_VERSION, "kind": _KIND}
    schema["properties"] = {**properties, "metadata": metadata}
    schema["type"] = "object"
    schema["x-kubernetes-group-version-kind"] = [_gvk(info, info.kind)]
    if info.selectable_fields:
        fields = [{"fieldPath": path} for path in info.selectable_fields]
        schema["x-kubernetes-selectable-fields"] = fields
    items = {
        "description": f"List of {info.plural}. More info: {_CONVENTIONS}",
        "type": "array",
        "items": {"$ref": _PREFIX + name},
    }
    list_metadata = _reference(_LIST_META, f"Standard list metadata. More info: {_CONVENTIONS}#types-kinds")
    listed = {
        "description": f"{info.list_name} is a list of {info.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": _API_VERSION,
            "items": items,
            "kind": _KIND,
            "metadata": list_metadata,
        },
        "x-kubernetes-group-version-kind": [_gvk(info, info.list_name)],
    }
    return {name: schema, f"{name.rpartition('.')[0]}.{info.list_name}": listed}


def _gvk(info: ResourceInfo, kind: str) -> Object:
    return {"group": info.group, "kind": kind, "version": info.version}


def _embedded(schema: Object) -> Object:
    """A schema as published: what is implied by its extensions is spelled out."""
    out = dict(schema)
    if isinstance(out.get("properties"), dict):
        out["properties"] = {key: _embedded(child) for key, child in out["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(out.get(key), dict):
            out[key] = _embedded(out[key])
    if out.get("x-kubernetes-int-or-string") and "anyOf" not in out:
        out["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if out.get("x-kubernetes-embedded-resource"):
        implied = {
            "apiVersion": _API_VERSION,
            "kind": _KIND,
            "metadata": _reference(OBJECT_META, "Standard object's metadata."),
        }
        out["properties"] = {**(out.get("properties") or {}), **implied}
    return out
