"""List orders of the strategic merge: the patch's order wins, the server's fills the gaps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _position(order: list[Any], key: Any) -> int:
    return order.index(key) if key in order else -1


def in_order(order: list[Any], key: Callable[[Any], Any]) -> Callable[[Any, Any], int]:
    """A comparison by position in `order`; unlisted items keep their place."""

    def compare(left: Any, right: Any) -> int:
        i, j = _position(order, key(left)), _position(order, key(right))
        return i - j if i >= 0 and j >= 0 else 0

    return compare


def interleave(
    left: list[Any], right: list[Any], server_order: list[Any], key: Callable[[Any], Any]
) -> list[Any]:
    """Both lists in one: a left item goes before the first right item that the server has behind it."""
    out: list[Any] = []
    i = j = 0
    while i < len(left) and j < len(right):
        a, b = _position(server_order, key(left[i])), _position(server_order, key(right[j]))
        if 0 <= a < b:
            out.append(left[i])
            i += 1
        else:
            out.append(right[j])
            j += 1
    return out + left[i:] + right[j:]


def distinct(values: list[Any]) -> list[Any]:
    """Scalars without repetition, in order of first appearance."""
    out: list[Any] = []
    for value in values:
        if value not in out:
            out.append(value)
    return out
