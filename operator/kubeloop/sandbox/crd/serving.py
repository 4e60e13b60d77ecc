"""From an accepted CRD to the resources it serves, one per served version."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kubeloop.sandbox.discovery.groups import version_rank
from kubeloop.sandbox.registry import Column, Object, ResourceInfo, ScalePaths, Strategy
from kubeloop.sandbox.schema import CustomSchema, causes
from kubeloop.sandbox.status import Cause

_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""In the order in which discovery lists them for custom resources."""


def infos(crd: Object) -> list[ResourceInfo]:
    """The served resources of a valid CRD, by its accepted names."""
    spec = crd["spec"]
    names = (crd.get("status") or {}).get("acceptedNames") or {}
    if not names.get("plural") or not names.get("kind"):
        names = spec["names"]
    storage = next(version["name"] for version in spec["versions"] if version.get("storage"))
    schemas = {version["name"]: _schema(spec, names, version) for version in spec["versions"]}
    return [
        _info(spec, names, version, storage, schemas) for version in spec["versions"] if version.get("served")
    ]


def _schema(spec: Object, names: Object, version: Object) -> CustomSchema:
    openapi = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return CustomSchema(names["kind"], f"{spec['group']}/{version['name']}", openapi)


def _info(
    spec: Object, names: Object, version: Object, storage: str, schemas: Mapping[str, CustomSchema]
) -> ResourceInfo:
    openapi = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    schema = schemas[version["name"]]
    subresources = version.get("subresources") or {}
    scale = _scale(subresources.get("scale"))
    status = subresources.get("status") is not None
    served = frozenset(name for name, on in (("status", status), ("scale", scale is not None)) if on)
    fields = [field["jsonPath"].removeprefix(".") for field in version.get("selectableFields") or ()]
    return ResourceInfo(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        list_kind=names.get("listKind") or names["kind"] + "List",
        schema=schema,
        strategy=CustomStrategy(schema, status=status, scale=scale),
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        verbs=_VERBS,
        subresources=served,
        columns=tuple(_column(column) for column in version.get("additionalPrinterColumns") or ()),
        scale=scale,
        selectable_fields=tuple(fields),
        custom=True,
        storage_version=storage,
        storage_schema=schemas[storage],
        openapi=openapi,
        warning=_warning(spec, names, version),
    )


def _warning(spec: Object, names: Object, version: Object) -> str:
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning"):
        return str(version["deprecationWarning"])
    group, kind = spec["group"], names["kind"]
    own = version_rank(version["name"])
    better = [
        other["name"]
        for other in spec["versions"]
        if other.get("served") and not other.get("deprecated") and version_rank(other["name"]) < own
    ]
    text = f"{group}/{version['name']} {kind} is deprecated"
    return f"{text}; use {group}/{min(better, key=version_rank)} {kind}" if better else text


def _scale(scale: Object | None) -> ScalePaths | None:
    if scale is None:
        return None
    return ScalePaths(
        scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath") or None
    )


def _column(column: Object) -> Column:
    return Column(
        name=column["name"],
        type=column["type"],
        json_path=column["jsonPath"],
        description=column.get("description", ""),
        format=column.get("format", ""),
        priority=column.get("priority", 0),
    )


class CustomStrategy(Strategy):
    """The rules of a custom resource beyond its schema: numbers that /scale will read must be numbers."""

    def __init__(self, schema: CustomSchema, *, status: bool, scale: ScalePaths | None) -> None:
        super().__init__(status_subresource=status)
        self._schema = schema
        self._scale = scale
        self._labels = _steps(scale.label_selector) if scale and scale.label_selector else None
        self._replicas = _steps(scale.spec_replicas) if scale else ()
        self._observed = _steps(scale.status_replicas) if scale else ()

    def validate_create(self, obj: Object) -> list[Cause]:
        return self._scale_causes(obj, (True, True))

    def validate_update(self, obj: Object, old: Object) -> list[Cause]:
        del old
        return self._scale_causes(obj, (True, True))

    def validate_status_update(self, obj: Object, old: Object) -> list[Cause]:
        del old
        return self._scale_causes(obj, (False, True))

    def _scale_causes(self, obj: Object, parts: tuple[bool, bool]) -> list[Cause]:
        if self._scale is None:
            return []
        found: list[Cause] = []
        if parts[0]:
            found += _count(obj, self._replicas, self._scale.spec_replicas)
        if parts[1]:
            found += _count(obj, self._observed, self._scale.status_replicas)
        if self._labels is not None:
            value, error = _nested(obj, self._labels, str, "string")
            if error:
                found.append(causes.invalid(self._scale.label_selector or "", value, error))
        return found


def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.removeprefix(".").split("."))


def _nested(obj: Any, steps: tuple[str, ...], kind: type, name: str) -> tuple[Any, str]:
    """The value at a path, or a zero value and why there is none of that type."""
    value = obj
    for step in steps:
        if value.__class__ is not dict:
            return kind(), _accessor_error(steps, value, "map[string]interface{}")
        if step not in value:
            return kind(), ""
        value = value[step]
    if not isinstance(value, kind) or isinstance(value, bool):
        return kind(), _accessor_error(steps, value, name)
    return value, ""


def _accessor_error(steps: tuple[str, ...], value: Any, expected: str) -> str:
    where = ".".join(steps)
    shown = go_value(value)
    return f".{where} accessor error: {shown} is of the type {_go(value)}, expected {expected}"


def go_value(value: Any) -> str:
    """A decoded JSON value as Go's %v prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return causes.go_float(value)
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_value(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(go_value(item) for item in value)}]"
    return "<nil>" if value is None else str(value)


def _go(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    names = {str: "string", int: "int64", float: "float64", list: "[]interface {}"}
    return names.get(type(value), "map[string]interface {}" if isinstance(value, dict) else "<nil>")


def _count(obj: Object, steps: tuple[str, ...], path: str) -> list[Cause]:
    value, error = _nested(obj, steps, int, "int64")
    if error:
        return [causes.invalid(path, value, error)]
    if value < 0:
        return [causes.invalid(path, value, "should be a non-negative integer")]
    if value >= 2**31:
        return [causes.invalid(path, value, f"should be less than or equal to {int(math.pow(2, 31)) - 1}")]
    return []
