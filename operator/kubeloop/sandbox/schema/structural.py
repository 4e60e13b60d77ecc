"""Structural schemas at work on custom resources: pruning, nulls, defaulting.

The order in a request is the server's: prune, drop nulls that may not be, default. Each step returns the
object it got when there was nothing to do.
"""

from __future__ import annotations

import copy
from typing import Any

from kubeloop.sandbox.schema.node import MISSING, Node

_META = frozenset(("apiVersion", "kind", "metadata"))


def prune(value: Any, node: Node, path: str, unknown: list[str], *, root: bool = False) -> Any:
    """`value` without undeclared fields; their paths are appended to `unknown`."""
    kind = value.__class__
    if kind is dict:
        return _prune_map(value, node, path, unknown, root)
    if kind is list and node.items is not None:
        items = node.items
        if node.preserve and items.raw == {}:
            return value
        out = [prune(item, items, f"{path}[{i}]", unknown) for i, item in enumerate(value)]
        return value if all(new is old for new, old in zip(out, value, strict=True)) else out
    return value


def _prune_map(
    value: dict[str, Any], node: Node, path: str, unknown: list[str], root: bool
) -> dict[str, Any]:
    fields = node.fields
    declared = node.raw.get("additionalProperties")
    element = node.element if isinstance(declared, dict) else None
    skip_meta = root or node.embedded
    out: dict[str, Any] | None = None
    for key, item in value.items():
        if skip_meta and key in _META:
            continue
        child = fields.get(key) or element
        if child is not None:
            where = f"{path}.{key}" if path else key
            new = prune(item, child, where, unknown)
            if new is not item:
                out = dict(value) if out is None else out
                out[key] = new
        elif declared is not None:
            # additionalProperties: true admits a key but declares nothing of what is below it
            new = _strip(item, f"{path}.{key}" if path else key, unknown)
            if new is not item:
                out = dict(value) if out is None else out
                out[key] = new
        elif not node.preserve:
            unknown.append(f"{path}.{key}" if path else key)
            out = dict(value) if out is None else out
            del out[key]
    return value if out is None else out


def _strip(value: Any, path: str, unknown: list[str]) -> Any:
    if isinstance(value, dict) and value:
        unknown += [f"{path}.{key}" for key in value]
        return {}
    if isinstance(value, list):
        return [_strip(item, f"{path}[{i}]", unknown) for i, item in enumerate(value)]
    return value


def _bad_null(value: Any, node: Node | None) -> bool:
    return value is None and node is not None and not node.nullable


def drop_nulls(value: Any, node: Node | None) -> Any:
    """`value` without nulls where the schema neither allows null nor has a default to put there."""
    kind = value.__class__
    if kind is dict:
        out: dict[str, Any] | None = None
        for key, item in value.items():
            child = _declared(node, key)
            if _bad_null(item, child) and child is not None and child.default is MISSING:
                out = dict(value) if out is None else out
                del out[key]
            elif item.__class__ in (dict, list):
                new = drop_nulls(item, child)
                if new is not item:
                    out = dict(value) if out is None else out
                    out[key] = new
        return value if out is None else out
    if kind is list:
        items = node.items if node is not None else None
        new_items = [drop_nulls(item, items) for item in value]
        return value if all(a is b for a, b in zip(new_items, value, strict=True)) else new_items
    return value


def _declared(node: Node | None, key: str) -> Node | None:
    if node is None:
        return None
    child = node.fields.get(key)
    if child is not None:
        return child
    return node.element if isinstance(node.raw.get("additionalProperties"), dict) else None


def default(value: Any, node: Node | None) -> Any:
    """`value` with the schema's defaults."""
    if node is None or not node.deep_defaults:
        return value
    kind = value.__class__
    if kind is dict:
        out: dict[str, Any] | None = None
        for key, child in node.own_defaults:
            if key not in value or _bad_null(value[key], child):
                out = dict(value) if out is None else out
                out[key] = copy.deepcopy(child.default)
        source = value if out is None else out
        for key, item in list(source.items()):
            known = _declared(node, key)
            if known is None:
                continue
            if _bad_null(item, known) and known.default is not MISSING:
                new = copy.deepcopy(known.default)
            elif item.__class__ in (dict, list):
                new = default(item, known)
            else:
                continue
            if new is not item:
                out = dict(value) if out is None else out
                out[key] = new
        return value if out is None else out
    if kind is list and node.items is not None:
        items = node.items
        made = [
            copy.deepcopy(items.default)
            if _bad_null(item, items) and items.default is not MISSING
            else default(item, items)
            for item in value
        ]
        return value if all(a is b for a, b in zip(made, value, strict=True)) else made
    return value
