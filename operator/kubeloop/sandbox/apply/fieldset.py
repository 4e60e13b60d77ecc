"""Sets of field paths, held in the very form the API prints them (`fieldsV1`).

``{"f:spec": {"f:replicas": {}}}`` is the set of the one path ``.spec.replicas``. A node that is a member
and has children carries a ``"."``; a node without children is a member. Working on that form directly
means that nothing is parsed or printed on the way, and that unchanged parts are shared between objects.
Sets are never changed in place once they are returned.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Set = dict[str, Any]
"""A field set; `{}` is empty at the root, and a leaf (one member) below it."""

SELF = "."
LEAF: Set = {}


def union(a: Set, b: Set) -> Set:
    """The paths in either set."""
    if not b or a is b:
        return a
    if not a:
        return b
    result = None
    for key, theirs in b.items():
        mine = a.get(key)
        if mine is None:
            merged = theirs
        elif mine is theirs or mine == theirs:
            continue
        elif not mine:
            merged = theirs if SELF in theirs else {SELF: LEAF, **theirs}
        elif not theirs:
            if SELF in mine:
                continue
            merged = {SELF: LEAF, **mine}
        else:
            merged = union(mine, theirs)
            if merged is mine:
                continue
        if result is None:
            result = dict(a)
        result[key] = merged
    return a if result is None else result


def difference(a: Set, b: Set) -> Set:
    """The paths of `a` that are not members of `b` (children of a member stay)."""
    if not a or not b:
        return a
    result = None
    for key, mine in a.items():
        theirs = b.get(key)
        if theirs is None or key == SELF:
            continue
        if result is None:
            result = dict(a)
        left = _child_difference(mine, theirs)
        if left is None:
            del result[key]
        else:
            result[key] = left
    if SELF in a and SELF in b:
        result = dict(a) if result is None else result
        del result[SELF]
    return a if result is None else result


def _child_difference(mine: Set, theirs: Set) -> Set | None:
    member = not mine or SELF in mine
    if not mine:
        return None if not theirs or SELF in theirs else mine
    if not theirs:  # a plain member: only our own membership goes
        if not member:
            return mine
        rest = {key: value for key, value in mine.items() if key != SELF}
        return rest or None
    rest = difference(mine, theirs)
    if rest:
        return LEAF if len(rest) == 1 and SELF in rest else rest
    return None


def recursive_difference(a: Set, b: Set) -> Set:
    """The paths of `a` that are neither members of `b` nor below one."""
    if not a or not b:
        return a
    result = None
    for key, mine in a.items():
        theirs = b.get(key)
        if theirs is None:
            continue
        if not theirs or SELF in theirs:
            left: Set | None = None
        elif not mine:
            continue
        else:
            left = recursive_difference(mine, theirs) or None
            if left is mine:
                continue
        if result is None:
            result = dict(a)
        if left is None:
            del result[key]
        else:
            result[key] = LEAF if len(left) == 1 and SELF in left else left
    return a if result is None else result


def intersection(a: Set, b: Set) -> Set:
    """The paths in both sets."""
    result: Set = {}
    for key, mine in a.items():
        theirs = b.get(key)
        if theirs is None:
            continue
        if key == SELF:
            result[key] = LEAF
            continue
        mine_member, their_member = not mine or SELF in mine, not theirs or SELF in theirs
        below = intersection(mine, theirs) if mine and theirs else LEAF
        if mine_member and their_member:
            below = {SELF: LEAF, **below} if below and SELF not in below else below
            result[key] = LEAF if len(below) == 1 and SELF in below else below
        elif below:
            result[key] = below
    return result


def contains(a: Set, b: Set) -> bool:
    """Whether every path of `b` is in `a`."""
    for key, theirs in b.items():
        mine = a.get(key)
        if mine is None:
            return False
        if mine is theirs or key == SELF:
            continue
        if not theirs:
            if mine and SELF not in mine:
                return False
        elif not mine:
            if len(theirs) > 1 or SELF not in theirs:
                return False
        elif not contains(mine, theirs):
            return False
    return True


def from_path(*elements: str) -> Set:
    """The set of one path, given as field names."""
    node: Set = LEAF
    for name in reversed(elements):
        node = {"f:" + name: node}
    return node


def has_path(a: Set, *elements: str) -> bool:
    """Whether the path (of field names) is a member."""
    for name in elements:
        child = a.get("f:" + name)
        if child is None:
            return False
        a = child
    return not a or SELF in a


def ordered(a: Set) -> Iterator[tuple[str, ...]]:
    """All member paths in the server's order: at each level members first, then what is below."""
    keys = sorted((key for key in a if key != SELF), key=_rank)
    for key in keys:
        if not a[key] or SELF in a[key]:
            yield (key,)
    for key in keys:
        for rest in ordered(a[key]):
            yield (key, *rest)


_KINDS = {"f": 0, "k": 1, "v": 2, "i": 3}


def _rank(key: str) -> tuple[int, str]:
    return (_KINDS.get(key[0], 4), key)
