"""Uniqueness in lists of type set and map, and the metadata of embedded resources."""

from __future__ import annotations

from typing import Any

from kubeloop.sandbox.schema import causes
from kubeloop.sandbox.schema.node import Node
from kubeloop.sandbox.status import Cause


def duplicates(value: Any, node: Node, path: str = "") -> list[Cause]:
    """Each second appearance of an item in a set, or of a key in a map list."""
    if not node.keyed:
        return []
    out: list[Cause] = []
    if isinstance(value, dict):
        for key, item in value.items():
            child = node.fields.get(key)
            if child is not None:
                out += duplicates(item, child, f"{path}.{key}" if path else key)
            elif isinstance(node.raw.get("additionalProperties"), dict) and node.element is not None:
                out += duplicates(item, node.element, f"{path}[{key}]")
    elif isinstance(value, list) and node.items is not None:
        if node.list_type == "set" and node.raw.get("x-kubernetes-list-type"):
            out += [causes.duplicate(f"{path}[{i}]", value[i]) for i in _repeated(value)]
        elif node.list_type == "map":
            out += _map_duplicates(value, node, path)
        for index, item in enumerate(value):
            out += duplicates(item, node.items, f"{path}[{index}]")
    return out


def _map_duplicates(value: list[Any], node: Node, path: str) -> list[Cause]:
    for index, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            return [
                causes.invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")
            ]
    keys = [{key: item[key] for key in node.keys if item and key in item} for item in value]
    return [causes.duplicate(f"{path}[{i}]", keys[i]) for i in _repeated(keys)]


def _repeated(values: list[Any]) -> list[int]:
    seen: dict[str, int] = {}
    out = []
    for index, value in enumerate(values):
        text = causes.shown(value)
        seen[text] = seen.get(text, 0) + 1
        if seen[text] == 2:
            out.append(index)
    return out
