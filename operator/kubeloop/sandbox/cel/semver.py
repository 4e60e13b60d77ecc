"""Semantic versions in expressions (the server uses blang/semver)."""

from __future__ import annotations

import re

NAME = "kubernetes.Semver"
_NUMBER = r"(0|[1-9]\d*)"
_IDS = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_IDS}))?(?:\+({_IDS}))?")

Value = dict[str, str]


def is_semver(text: str) -> bool:
    return _VERSION.fullmatch(text) is not None


def semver(text: str) -> Value:
    """Raises ValueError for what is no version."""
    if not is_semver(text):
        wrong = "No Major.Minor.Patch elements found" if text.count(".") < 2 else f'Invalid version "{text}"'
        raise ValueError(wrong)
    return {NAME: text}


def part(value: Value, index: int) -> int:
    """Major, minor or patch."""
    found = _VERSION.fullmatch(value[NAME])
    return int(found[index + 1]) if found else 0


def _rank(value: Value) -> tuple[object, ...]:
    found = _VERSION.fullmatch(value[NAME])
    if found is None:
        return ()
    numbers = tuple(int(found[index]) for index in (1, 2, 3))
    if not found[4]:
        return (*numbers, 1, ())
    ids = tuple((0, int(i), "") if i.isdigit() else (1, 0, i) for i in found[4].split("."))
    return (*numbers, 0, ids)


def compare(value: Value, other: Value) -> int:
    one, two = _rank(value), _rank(other)
    return 0 if one == two else (1 if one > two else -1)
