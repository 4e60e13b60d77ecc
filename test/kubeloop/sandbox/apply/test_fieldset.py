"""Set algebra on fieldsV1, checked against sets of paths."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubeloop.sandbox.apply import fieldset as fs

Path = tuple[str, ...]
paths = st.lists(st.sampled_from(["f:a", "f:b", 'k:{"n":"x"}', 'v:"y"']), min_size=1, max_size=3).map(tuple)
path_sets = st.sets(paths, max_size=6)


def build(members: set[Path]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for path in members:
        node: dict[str, Any] = {}
        for element in reversed(path):
            node = {element: node}
        result = fs.union(result, node)
    return result


def members(tree: dict[str, Any]) -> set[Path]:
    return set(fs.ordered(tree))


@settings(max_examples=60, deadline=None)
@given(path_sets)
def test_a_set_holds_exactly_the_paths_put_into_it(a: set[Path]) -> None:
    assert members(build(a)) == a


@settings(max_examples=60, deadline=None)
@given(path_sets, path_sets)
def test_union_difference_and_intersection_are_those_of_sets(a: set[Path], b: set[Path]) -> None:
    left, right = build(a), build(b)
    assert members(fs.union(left, right)) == a | b
    assert members(fs.difference(left, right)) == a - b
    assert members(fs.intersection(left, right)) == a & b
    assert fs.contains(left, right) == (b <= a)


@settings(max_examples=60, deadline=None)
@given(path_sets, path_sets)
def test_recursive_difference_also_drops_what_is_below(a: set[Path], b: set[Path]) -> None:
    below = {path for path in a if any(path[: len(cut)] == cut for cut in b)}
    assert members(fs.recursive_difference(build(a), build(b))) == a - below


@settings(max_examples=60, deadline=None)
@given(path_sets, path_sets)
def test_operations_leave_their_arguments_alone(a: set[Path], b: set[Path]) -> None:
    left, right = build(a), build(b)
    fs.union(left, right)
    fs.difference(left, right)
    fs.recursive_difference(left, right)
    assert (left, right) == (build(a), build(b))
