"""Helpers of the defaulting code: fill in what is missing, share what is not changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Object = dict[str, Any]


def fill(obj: Object, defaults: Mapping[str, Any]) -> Object:
    """`obj` with each default whose key is missing; `obj` itself when none is."""
    for key in defaults:
        if key not in obj:
            return {**defaults, **obj}
    return obj


def with_field(obj: Object, key: str, value: Any) -> Object:
    """A copy of `obj` with one field replaced, `obj` itself when it already is that value."""
    return obj if obj.get(key) is value else {**obj, key: value}


def each(obj: Object, key: str, function: Callable[[Object], Object]) -> Object:
    """`obj` with `function` applied to every item of the list at `key`."""
    items = obj.get(key)
    if not items:
        return obj
    changed = False
    out = []
    for item in items:
        new = function(item)
        changed = changed or new is not item
        out.append(new)
    return {**obj, key: out} if changed else obj


def inside(obj: Object, key: str, function: Callable[[Object], Object]) -> Object:
    """`obj` with `function` applied to the object at `key`, if there is one."""
    child = obj.get(key)
    if child is None:
        return obj
    new = function(child)
    return obj if new is child else {**obj, key: new}
