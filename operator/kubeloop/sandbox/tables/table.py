"""Putting a Table together: columns, rows, and what of each object comes along."""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache
from typing import Any

from kubeloop.sandbox.registry import Column, ResourceInfo
from kubeloop.sandbox.schema import read_data
from kubeloop.sandbox.schema.causes import go_float
from kubeloop.sandbox.status import bad_request
from kubeloop.sandbox.tables.duration import human, parse, since
from kubeloop.sandbox.tables.jsonpath import find
from kubeloop.sandbox.tables.rows import ROWS

Object = dict[str, Any]

META_VERSION = "meta.k8s.io/v1"
AGE = Column("Age", "date", ".metadata.creationTimestamp")
"""What a CRD without columns prints besides the name."""


def to_table(
    info: ResourceInfo,
    objects: list[Object],
    *,
    list_meta: Object | None,
    include_object: str,
    now: datetime,
    headers: bool = True,
) -> Object:
    """The Table of `objects`.

    `include_object` is ``Metadata`` (or empty), ``Object`` or ``None``, as in the request. A watch sends
    `headers` only with its first event. Raises ApiFailure 400 for another `include_object`.
    """
    if include_object not in ("", "Metadata", "Object", "None"):
        raise bad_request(
            "Unable to convert to Table as requested: includeObject: Invalid value: "
            f"\"{include_object}\": must be 'Metadata', 'Object', 'None', or empty"
        )
    meta = list_meta
    if meta is None:
        version = objects[0]["metadata"].get("resourceVersion", "") if len(objects) == 1 else ""
        meta = {"resourceVersion": version} if version else {}
    return {
        "kind": "Table",
        "apiVersion": META_VERSION,
        "metadata": meta,
        "columnDefinitions": column_definitions(info) if headers else None,
        "rows": [_row(info, obj, include_object, now) for obj in objects],
    }


@cache
def _columns() -> dict[str, list[Object]]:
    result: dict[str, list[Object]] = read_data("columns.json.gz")
    return result


def column_definitions(info: ResourceInfo) -> list[Object]:
    """The header row."""
    root = f"apis/{info.group}" if info.group else "api"
    known = _columns().get(f"{root}/{info.version}/{info.plural}") if not info.custom else None
    if known is not None:
        return known
    roles = _columns()["apis/coordination.k8s.io/v1/leases"]
    name, age = roles[0], roles[-1]
    definitions = [dict(name)]
    for column in info.columns or (AGE,):
        text = column.description
        if column is AGE:
            text = age["description"]
        elif not text:
            text = f"Custom resource definition column (in JSONPath format): {column.json_path}"
        definitions.append(
            {
                "name": column.name,
                "type": column.type,
                "format": column.format,
                "description": text,
                "priority": column.priority,
            }
        )
    return definitions


def _row(info: ResourceInfo, obj: Object, include_object: str, now: datetime) -> Object:
    function = None if info.custom else ROWS.get(info.key)
    if function is not None:
        cells = function(obj if info.shared is None else info.shared.stored(obj), now)
    else:
        cells = [obj["metadata"].get("name", "")]
        cells += [_cell(obj, column, now) for column in info.columns or (AGE,)]
    row: Object = {"cells": cells}
    phase = (obj.get("status") or {}).get("phase") if info.key == ("", "pods") else None
    if phase in ("Succeeded", "Failed"):
        message = {
            "Succeeded": "The pod has completed successfully.",
            "Failed": "The pod failed.",
        }[phase]
        condition = {"type": "Completed", "status": "True", "reason": phase, "message": message}
        row["conditions"] = [condition]
    if include_object == "Object":
        row["object"] = obj
    elif include_object == "None":
        row["object"] = None
    else:
        partial = {"kind": "PartialObjectMetadata", "apiVersion": META_VERSION}
        row["object"] = {**partial, "metadata": obj["metadata"]}
    return row


def _cell(obj: Object, column: Column, now: datetime) -> Any:
    found = find(obj, column.json_path)
    if not found:
        return None
    value = found[0]
    match column.type:
        case "string":
            return _text(value)
        case "integer":
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return int(value) if number else None
        case "number":
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return float(value) if number else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            if not isinstance(value, str):
                return None
            moment = parse(value)
            return "<invalid>" if moment is None else human((now - moment).total_seconds())
        case _:
            return None


def _text(value: Any) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "<nil>"
    return go_float(value) if isinstance(value, float) else str(value)


__all__ = ["AGE", "column_definitions", "since", "to_table"]
