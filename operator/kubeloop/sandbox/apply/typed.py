"""Objects under a schema: which fields a value sets, and merging, comparing and cutting by field sets.

All walks share what they do not change: `merge` returns the live object itself when nothing changed, and
`compare` does not look into parts that are the same object on both sides.
"""

from __future__ import annotations

import json
from typing import Any

from kubeloop.sandbox.apply.fieldset import LEAF, SELF, Set
from kubeloop.sandbox.apply.path import PathError, display_element, item_element
from kubeloop.sandbox.schema.equality import same
from kubeloop.sandbox.schema.node import DEDUCED, MISSING, Node


class TypedError(ValueError):
    """An apply configuration that does not fit its schema; the text is structured-merge-diff's."""


# ---------------------------------------------------------------------------------- which fields are set


def field_set(value: dict[str, Any], node: Node) -> Set:
    """The fields a configuration sets (TypedError: unknown fields, wrong types, duplicate list items)."""
    try:
        return _members(value, node, False) or {}
    except _Misfit:
        errors = _misfits(value, node)
        if len(errors) == 1:
            raise TypedError(errors[0]) from None
        raise TypedError("\n".join(["errors:", *("  " + error for error in errors)])) from None


def fits(value: dict[str, Any], node: Node) -> bool:
    """Whether an object has the right types (undeclared fields and duplicates aside)."""
    try:
        _members(value, node, True)
    except _Misfit:
        return False
    return True


def live_set(value: dict[str, Any], node: Node) -> Set:
    """As `field_set` for a stored object: duplicates and undeclared fields are tolerated."""
    return _members(value, node, True) or {}


class _Misfit(Exception):
    pass


_TEXT = ("string", "untyped")


def _members(value: Any, node: Node, lenient: bool) -> Set | None:
    """The node of `value` in a field set, None when it owns nothing by itself."""
    kind = value.__class__
    if kind is dict:
        if node.type != "object" and node.type:
            raise _Misfit
        atomic = node.atomic_map
        if atomic and lenient:
            return LEAF
        fields, element = node.fields, node.element
        out: Set = {}
        for key, item in value.items():
            child = fields.get(key)
            if child is None:
                if element is None and not lenient:
                    raise _Misfit
                child = element or DEDUCED
                if item.__class__ is str and child.scalar in _TEXT:
                    below: Set | None = LEAF
                else:
                    below = _members(item, child, lenient)
                    if not below:
                        below = LEAF
                    elif SELF not in below:
                        below = {SELF: LEAF, **below}
            elif item.__class__ is str and child.scalar in _TEXT:
                below = LEAF  # most values are texts: not worth a call
            else:
                below = _members(item, child, lenient)
                if below is None:
                    if item is not None and item != {}:
                        continue
                    below = LEAF
            out["f:" + key] = below
        return LEAF if atomic else out or None
    if kind is list:
        if node.type != "array" and node.type:
            raise _Misfit
        if node.list_type == "atomic":
            if not lenient and node.items is not None:
                for item in value:
                    _members(item, node.items, lenient)
            return LEAF
        return _list_members(value, node, lenient)
    if value is None:
        scalar = node.scalar and node.type
        return LEAF if scalar or (node.is_list and not node.is_map and node.list_type == "atomic") else None
    if not node.scalar or not _fits(kind, node.scalar):
        raise _Misfit
    return LEAF


def _list_members(value: list[Any], node: Node, lenient: bool) -> Set | None:
    out: Set = {}
    duplicates: set[str] = set()
    for item in value:
        try:
            element = item_element(node, item)
        except PathError:
            raise _Misfit from None
        if element in out:
            if not lenient:
                raise _Misfit
            duplicates.add(element)
            continue
        below = _members(item, node.items or DEDUCED, lenient)
        out[element] = {SELF: LEAF, **below} if below else LEAF
    for element in duplicates:
        out[element] = LEAF
    return out or None


def _fits(kind: type, scalar: str) -> bool:
    if scalar == "string":
        return kind is str
    if scalar == "numeric":
        return kind is int or kind is float
    if scalar == "boolean":
        return kind is bool
    return True


def _misfits(value: Any, node: Node) -> list[str]:
    """Every reason why `value` does not fit, each with its path."""
    if isinstance(value, dict):
        if not node.is_map:
            return _wrong_type(value, node)
        errors: list[str] = []
        for key, item in value.items():
            child = node.child(key)
            if child is None:
                errors.append(f".{key}: field not declared in schema")
                break
            errors += [f".{key}{_joined(error)}" for error in _misfits(item, child)]
        return errors
    if isinstance(value, list):
        if not node.is_list:
            return _wrong_type(value, node)
        return _list_misfits(value, node)
    if value is None or (node.scalar and _fits(value.__class__, node.scalar)):
        return []
    return _wrong_type(value, node)


def _joined(error: str) -> str:
    return error if error.startswith((".", "[")) else ": " + error


def _list_misfits(value: list[Any], node: Node) -> list[str]:
    errors: list[str] = []
    seen: set[str] = set()
    for index, item in enumerate(value):
        element = f"i:{index}"
        if node.list_type != "atomic":
            try:
                element = item_element(node, item)
            except PathError as error:
                return [*errors, f"element {index}: {error}"]
            if element in seen:
                errors.append(f"duplicate entries for key {display_element(element)}")
            seen.add(element)
        prefix = display_element(element)
        errors += [prefix + _joined(error) for error in _misfits(item, node.items or DEDUCED)]
    return errors


def _wrong_type(value: Any, node: Node) -> list[str]:
    if node.is_map and not node.scalar:
        return [f"expected map, got {_go(value)}"]
    if node.scalar == "numeric":
        return [f"expected numeric (int or float), got {_go_type(value)}"]
    if node.scalar == "string":
        return [f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"]
    if node.scalar == "boolean":
        return [f"expected boolean, got {_go(value)}"]
    if node.scalar:
        return [f"expected any scalar, got {_go(value)}"]
    return [f"expected list, got {_go(value)}"]


def _go(value: Any) -> str:
    """A value as Go's `%v` of a structured-merge-diff value shows it."""
    if isinstance(value, bool):
        return f"&{{{str(value).lower()}}}"
    if isinstance(value, dict):
        return "&{map[" + " ".join(f"{k}:{_plain(value[k])}" for k in sorted(value)) + "]}"
    return f"&{{{_plain(value)}}}"


def _go_syntax(value: Any) -> str:
    """A value as Go's `%#v` shows it."""
    if isinstance(value, dict):
        inner = ", ".join(f"{_go_syntax(key)}:{_go_syntax(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_syntax, value))}}}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return "interface {}(nil)" if value is None else _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "<nil>"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{k}:{_plain(value[k])}" for k in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(_plain, value)) + "]"
    return str(value)


def _go_type(value: Any) -> str:
    names = {str: "string", bool: "bool", dict: "map[string]interface {}", list: "[]interface {}"}
    return names.get(type(value), "int64")


# ---------------------------------------------------------------------------------------------- merging


def merge(live: Any, config: Any, node: Node) -> Any:
    """`config` laid over `live`; the very `live` when that changes nothing."""
    kind = config.__class__
    if kind is dict:
        if node.atomic_map or live.__class__ is not dict or not live:
            return live if same(live, config) else config
        fields, element = node.fields, node.element
        out: dict[str, Any] | None = None
        for key, value in config.items():
            old = live.get(key, MISSING)
            if old is value:
                continue
            if old is MISSING:
                merged = value
            elif value.__class__ is str:
                if old == value:
                    continue
                merged = value
            else:
                merged = merge(old, value, fields.get(key) or element or DEDUCED)
                if merged is old:
                    continue
            if out is None:
                out = dict(live)
            out[key] = merged
        return live if out is None else out
    if kind is list:
        if node.list_type == "atomic" or live.__class__ is not list or not live:
            return live if same(live, config) else config
        return _merge_list(live, config, node) if config else live
    if config is None:
        if live and (
            (live.__class__ is dict and not node.atomic_map)
            or (live.__class__ is list and node.list_type != "atomic")
        ):
            return live
        return None
    return live if same(live, config) else config


def _merge_list(live: list[Any], config: list[Any], node: Node) -> list[Any]:
    items = node.items or DEDUCED
    left = [item_element(node, item) for item in live]
    right = [item_element(node, item) for item in config]
    if left == right and len(set(left)) == len(left):
        merged = [merge(old, new, items) for old, new in zip(live, config, strict=True)]
        return live if all(new is old for new, old in zip(merged, live, strict=True)) else merged
    old_items: dict[str, Any] = {}
    for element, item in zip(left, live, strict=True):
        # duplicates are not merged with the new value
        old_items[element] = MISSING if element in old_items else item
    new_items = dict(zip(right, config, strict=True))

    def merged_item(element: str) -> Any:
        old = old_items.get(element, MISSING)
        return new_items[element] if old is MISSING else merge(old, new_items[element], items)

    # The applied order wins among the shared items; live-only items keep their place between them.
    shared = [element for element in right if element in old_items]
    position = 0
    out: list[Any] = []
    done: set[str] = set()
    i = j = 0
    while i < len(left) or j < len(right):
        next_shared = shared[position] if position < len(shared) else None
        if i < len(left) and j < len(right):
            element = left[i]
            if element == right[j]:
                done.add(element)
                out.append(merged_item(element))
                i, j, position = i + 1, j + 1, position + 1
                continue
            if element in new_items and next_shared is not None and next_shared != element:
                i += 1
                continue
        if i < len(left):
            element = left[i]
            if element not in new_items:
                out.append(live[i])
                i += 1
                continue
            if element in done:
                i += 1
        if j < len(right):
            element = right[j]
            done.add(element)
            out.append(merged_item(element))
            j += 1
            if next_shared == element:
                position += 1
    return live if same(live, out) else out
