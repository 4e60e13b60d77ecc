"""Comparing two objects under a schema, and cutting a field set out of one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kubeloop.sandbox.apply.fieldset import LEAF, SELF, Set
from kubeloop.sandbox.apply.path import PathError, item_element
from kubeloop.sandbox.schema.equality import same
from kubeloop.sandbox.schema.node import DEDUCED, MISSING, Node


@dataclass(slots=True)
class Comparison:
    """Which fields the right-hand object lacks, has otherwise, and has in addition."""

    removed: Set = field(default_factory=dict)
    modified: Set = field(default_factory=dict)
    added: Set = field(default_factory=dict)


_Triple = tuple[Set | None, Set | None, Set | None]
_NOTHING: _Triple = (None, None, None)


def compare(left: dict[str, Any], right: dict[str, Any], node: Node) -> Comparison:
    """How `right` differs from `left`."""
    removed, modified, added = _compare(left, right, node)
    return Comparison(removed or {}, modified or {}, added or {})


def _compare(left: Any, right: Any, node: Node) -> _Triple:
    if left is right:
        return _NOTHING
    lkind, rkind = left.__class__, right.__class__
    if (lkind is dict or rkind is dict) and node.is_map:
        if not node.atomic_map and (left or right) and _mapish(left, lkind) and _mapish(right, rkind):
            return _compare_maps(left or {}, right or {}, node)
    elif (lkind is list or rkind is list) and node.is_list and node.list_type != "atomic":
        lists = (lkind is list or left is None) and (rkind is list or right is None)
        if lists and (left or right):
            return _compare_lists(left or [], right or [], node)
    if same(left, right):
        return _NOTHING
    if lkind is not rkind and not node.atomic_map and node.type == "":
        # A field without a type changed its kind: the field counts as modified, what was below it as gone.
        removed = _whole(left, node) if lkind is dict and left else None
        added = _whole(right, node) if rkind is dict and right else None
        return _children(removed), LEAF, _children(added)
    return None, LEAF, None


def _mapish(value: Any, kind: type) -> bool:
    return kind is dict or value is None


def _children(whole: Set | None) -> Set | None:
    return {key: value for key, value in whole.items() if key != SELF} or None if whole else None


def _compare_maps(left: dict[str, Any], right: dict[str, Any], node: Node) -> _Triple:
    fields, element = node.fields, node.element
    removed: Set | None = None
    modified: Set | None = None
    added: Set | None = None
    for key, old in left.items():
        new = right.get(key, MISSING)
        if new is old:
            continue
        child = fields.get(key) or element or DEDUCED
        if new is MISSING:
            removed = {} if removed is None else removed
            removed["f:" + key] = _whole(old, child)
            continue
        r, m, a = _compare(old, new, child)
        if r is not None:
            removed = {} if removed is None else removed
            removed["f:" + key] = r
        if m is not None:
            modified = {} if modified is None else modified
            modified["f:" + key] = m
        if a is not None:
            added = {} if added is None else added
            added["f:" + key] = a
    for key, new in right.items():
        if key not in left:
            added = {} if added is None else added
            added["f:" + key] = _whole(new, fields.get(key) or element or DEDUCED)
    return removed, modified, added


def _grouped(values: list[Any], node: Node) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for value in values:
        try:
            groups.setdefault(item_element(node, value), []).append(value)
        except PathError:
            continue  # an item that cannot be addressed cannot be owned; validation will speak about it
    return groups


def _compare_lists(left: list[Any], right: list[Any], node: Node) -> _Triple:
    child = node.items or DEDUCED
    old_groups, new_groups = _grouped(left, node), _grouped(right, node)
    removed: Set = {}
    modified: Set = {}
    added: Set = {}
    for element in {**old_groups, **new_groups}:
        old, new = old_groups.get(element, []), new_groups.get(element, [])
        if len(old) <= 1 and len(new) <= 1:
            if not new:
                removed[element] = _whole(old[0], child)
            elif not old:
                added[element] = _whole(new[0], child)
            else:
                r, m, a = _compare(old[0], new[0], child)
                if r is not None:
                    removed[element] = r
                if m is not None:
                    modified[element] = m
                if a is not None:
                    added[element] = a
        elif len(old) >= 2 and len(new) >= 2:  # duplicates on both sides are one atomic thing
            if not same(old, new):
                modified[element] = LEAF
        elif len(old) >= 2:
            if new:
                added[element] = _whole(new[0], child)
            removed[element] = LEAF
        else:
            if old:
                removed[element] = _whole(old[0], child)
            added[element] = LEAF
    return removed or None, modified or None, added or None


def _whole(value: Any, node: Node) -> Set:
    """Every path of a value that came or went as a whole, the ones in between included."""
    kind = value.__class__
    if kind is dict:
        if not value or node.atomic_map or not node.is_map:
            return LEAF
        out: Set = {SELF: LEAF}
        fields, element = node.fields, node.element
        for key, item in value.items():
            out["f:" + key] = _whole(item, fields.get(key) or element or DEDUCED)
        return out
    if kind is list and value and node.list_type != "atomic" and node.is_list:
        out = {SELF: LEAF}
        for element_, items in _grouped(value, node).items():
            out[element_] = _whole(items[0], node.items or DEDUCED) if len(items) == 1 else LEAF
        return out
    return LEAF


def remove_items(value: Any, gone: Set, node: Node) -> Any:
    """`value` without the members of `gone`; what loses all its content becomes null, as in the server."""
    kind = value.__class__
    if kind is dict:
        if node.atomic_map or not value:
            return None
        kept: dict[str, Any] = {}
        for key, item in value.items():
            below = gone.get("f:" + key)
            if below is None:
                kept[key] = item
            elif below and SELF not in below:
                kept[key] = remove_items(item, below, node.child(key) or DEDUCED)
        return kept or None
    if kind is list:
        if node.list_type == "atomic" or not value:
            return None
        left: list[Any] = []
        for item in value:
            below = gone.get(item_element(node, item))
            if below is None:
                left.append(item)
            elif below and SELF not in below:
                left.append(remove_items(item, below, node.items or DEDUCED))
        return left or None
    return value


def named_members(fields: Set, node: Node | None) -> Set:
    """`fields` plus the declared fields on the way to them (``.spec`` for ``.spec.replicas``)."""
    out: Set = {}
    for key, below in fields.items():
        if key == SELF:
            out[key] = below
            continue
        child: Node | None = None
        declared = False
        if node is not None:
            if key.startswith("f:"):
                declared = node.is_map and key[2:] in node.fields
                child = node.child(key[2:]) if node.is_map else None
            elif key.startswith("k:") and node.is_list:
                child = node.items
        if below:
            below = named_members(below, child)
            if declared and SELF not in below:
                below = {SELF: LEAF, **below}
        out[key] = below
    return out
