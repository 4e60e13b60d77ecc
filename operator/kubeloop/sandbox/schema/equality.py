"""Equality of JSON values: as Python's, but a boolean never equals a number."""

from __future__ import annotations

from typing import Any


def same(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal (1 equals 1.0, True does not equal 1)."""
    if a is b:
        return True
    if isinstance(a, dict):
        if not isinstance(b, dict) or len(a) != len(b):
            return False
        for key, value in a.items():
            other = b.get(key, b)
            if other is b or not (value is other or same(value, other)):
                return False
        return True
    if isinstance(a, list):
        if not isinstance(b, list) or len(a) != len(b):
            return False
        return all(x is y or same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, bool) or isinstance(b, bool):
        return isinstance(a, bool) and isinstance(b, bool) and a == b
    return bool(a == b)
