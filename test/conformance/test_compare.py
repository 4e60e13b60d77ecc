"""Differences are found where they are, in types too."""

from typing import Any

import pytest
from conformance.compare import compare
from conformance.corpus import Known


def paths(real: Any, ours: Any) -> list[str]:
    one = [{"step": "get x", "body": real}]
    other = [{"step": "get x", "body": ours}]
    return [difference.path for difference in compare(one, other)]


@pytest.mark.parametrize(
    ("real", "ours", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 1.0}, ["body.a"]),
        ({"a": 1}, {"a": True}, ["body.a"]),
        ({"a": None}, {}, ["body.a"]),
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 3}]}, ["body.a[1].b"]),
        ({"a": [1]}, {"a": [1, 2]}, ["body.a"]),
        ("text", {"a": 1}, ["body"]),
    ],
)
def test_every_difference_is_named_by_its_path(real: Any, ours: Any, expected: list[str]) -> None:
    assert paths(real, ours) == expected


def test_a_missing_answer_is_a_difference() -> None:
    assert [d.step for d in compare([{"step": "a"}, {"step": "b"}], [{"step": "a"}])] == [2]


def test_a_known_difference_covers_its_path_and_what_is_in_it_and_nothing_else() -> None:
    known = Known("area/name", "a reason of some words", step=1, path="body.spec")
    found = {
        d.path: d for d in compare([{"step": "x", "body": {"spec": {"a": 1}, "specs": 1}}], [{"step": "x"}])
    }
    assert not known.covers("area/name", found["body"])
    inner = compare([{"step": "x", "body": {"spec": {"a": 1}}}], [{"step": "x", "body": {"spec": {"a": 2}}}])
    assert known.covers("area/name", inner[0])
    assert not known.covers("area/other", inner[0])
    outside = compare([{"step": "x", "body": {"specs": 1}}], [{"step": "x", "body": {"specs": 2}}])
    assert not known.covers("area/name", outside[0])
