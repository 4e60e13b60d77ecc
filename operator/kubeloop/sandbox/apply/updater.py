"""The core of field management: what an update or an apply does to the object and to everybody's sets.

Pure: no clock, no names of operations, no wire form. The algorithm is structured-merge-diff's, decided
once per request over field sets; parts that cannot have changed are skipped by identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubeloop.sandbox.apply.compare import Comparison, compare, named_members, remove_items
from kubeloop.sandbox.apply.fieldset import (
    Set,
    contains,
    difference,
    intersection,
    recursive_difference,
    union,
)
from kubeloop.sandbox.apply.managers import Entry, Identity, Managers
from kubeloop.sandbox.apply.typed import live_set, merge
from kubeloop.sandbox.schema.node import Node

Object = dict[str, Any]


class Conflicts(Exception):
    """Fields that others manage with another value: `sets` by manager."""

    def __init__(self, sets: Mapping[Identity, Set]) -> None:
        super().__init__("apply conflicts")
        self.sets = dict(sets)


def take(
    live: Object, new: Object, node: Node, managers: Managers, me: Identity | None, *, force: bool, reset: Set
) -> tuple[Managers, Comparison]:
    """Take what `me` changes from the others (Conflicts unless `force`), drop what is gone from all sets."""
    comparison = compare(live, new, node)
    if reset:
        comparison.removed = recursive_difference(comparison.removed, reset)
        comparison.modified = recursive_difference(comparison.modified, reset)
        comparison.added = recursive_difference(comparison.added, reset)
    changed = union(comparison.modified, comparison.added)
    removed = comparison.removed
    if not changed and not removed:
        return managers, comparison
    conflicts: dict[Identity, Set] = {}
    if changed:
        for who, entry in managers.items():
            if who != me:
                common = intersection(entry.fields, changed)
                if common:
                    conflicts[who] = common
    if conflicts and not force:
        raise Conflicts(conflicts)
    result: Managers = {}
    for who, entry in managers.items():
        fields = entry.fields
        if who != me:
            if who in conflicts:
                fields = difference(fields, conflicts[who])
            if removed:
                fields = difference(fields, removed)
        if fields:
            result[who] = entry.with_fields(fields)
    return result, comparison


def update(live: Object, new: Object, node: Node, managers: Managers, reset: Set) -> tuple[Managers, Set]:
    """The others' sets after `live` became `new`, and the set that this operation now owns."""
    managers, comparison = take(live, new, node, managers, None, force=True, reset=reset)
    mine = union(comparison.modified, comparison.added)
    return managers, recursive_difference(mine, reset) if reset else mine


def apply(
    live: Object,
    config: Object,
    fields: Set,
    node: Node,
    managers: Managers,
    me: Identity,
    api_version: str,
    *,
    force: bool,
    reset: Set,
    stripped: Set,
) -> tuple[Object, Managers]:
    """`live` with `config` applied by `me`, whose configuration sets `fields`; and the new sets.

    `me` will not own what is in `reset` or `stripped`; the latter still counts as applied when it is
    decided what goes. Raises Conflicts. The object returned is `live` itself when nothing in it changed.
    """
    merged: Object = merge(live, config, node)
    last = managers.get(me)
    if reset:
        fields = recursive_difference(fields, reset)
    owned = difference(fields, stripped)
    mine = last
    same_fields = last is not None and last.fields == owned
    if last is None or last.api_version != api_version or not same_fields:
        mine = Entry(owned, api_version, last.time if last else None)
    assert mine is not None
    managers = {**managers, me: mine}
    if last is not None and last.fields and not same_fields and not contains(owned, last.fields):
        merged = _prune(merged, managers, fields, last.fields, node)
    managers, _ = take(live, merged, node, managers, me, force=force, reset=reset)
    if not mine.fields:
        managers = {who: entry for who, entry in managers.items() if who != me}
    return merged, managers


def _prune(merged: Object, managers: Managers, applied: Set, last: Set, node: Node) -> Object:
    """Remove what `last` (my previous set) had and neither `applied` (my new one) nor anybody else has."""
    mine_before = named_members(last, node)
    pruned = remove_items(merged, mine_before, node) or {}
    managed = applied
    for entry in managers.values():
        managed = union(managed, entry.fields)
    everything = named_members(live_set(merged, node), node)
    kept = union(named_members(live_set(pruned, node), node), named_members(managed, node))
    pruned = remove_items(merged, difference(everything, kept), node) or {}
    lost = difference(everything, named_members(live_set(pruned, node), node))
    gone = intersection(lost, mine_before)
    result = remove_items(merged, gone, node) if gone else merged
    return result or {}
