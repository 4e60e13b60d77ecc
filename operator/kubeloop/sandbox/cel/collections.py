"""Functions over lists and sets of values."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from kubeloop.sandbox.schema.equality import same


def is_sorted(items: list[Any]) -> bool:
    return all(a <= b for a, b in itertools.pairwise(items))


def least(items: list[Any]) -> Any:
    """Raises ValueError for an empty list."""
    if not items:
        raise ValueError("min called on empty list")
    return min(items)


def most(items: list[Any]) -> Any:
    """Raises ValueError for an empty list."""
    if not items:
        raise ValueError("max called on empty list")
    return max(items)


def sum_durations(items: list[timedelta]) -> timedelta:
    return sum(items, timedelta())


def index_of(items: list[Any], wanted: Any) -> int:
    return next((index for index, item in enumerate(items) if same(item, wanted)), -1)


def last_index_of(items: list[Any], wanted: Any) -> int:
    return max((index for index, item in enumerate(items) if same(item, wanted)), default=-1)


def cut(items: list[Any], start: int, end: int) -> list[Any]:
    """Raises ValueError for bounds outside of the list."""
    if start < 0 or end < 0:
        raise ValueError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise ValueError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise ValueError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def backwards(items: list[Any]) -> list[Any]:
    return items[::-1]


def distinct(items: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for item in items:
        if index_of(kept, item) < 0:
            kept.append(item)
    return kept


def _contains(items: list[Any], others: list[Any]) -> bool:
    return all(index_of(items, other) >= 0 for other in others)


SET_TESTS: dict[str, Callable[[list[Any], list[Any]], bool]] = {
    "sets.contains": _contains,
    "sets.equivalent": lambda a, b: _contains(a, b) and _contains(b, a),
    "sets.intersects": lambda a, b: any(index_of(a, item) >= 0 for item in b),
}
