"""Merge patch: the examples of RFC 7396 (appendix A) whose documents are objects, and its laws."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubeloop.sandbox.patch import merge_patch
from kubeloop.sandbox.status import ApiFailure


@pytest.mark.parametrize(
    ("doc", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_rfc_examples(doc: Any, patch: Any, expected: Any) -> None:
    assert merge_patch(doc, patch) == expected


@pytest.mark.parametrize(
    ("patch", "text"),
    [
        (None, "Invalid JSON Patch"),
        (
            [],
            "error decoding patch: json: cannot unmarshal array into Go value of type "
            "map[string]interface {}",
        ),
        (
            5,
            "error decoding patch: json: cannot unmarshal number into Go value of type "
            "map[string]interface {}",
        ),
    ],
)
def test_what_is_no_object_is_a_400(patch: Any, text: str) -> None:
    with pytest.raises(ApiFailure) as failure:
        merge_patch({}, patch)
    assert (failure.value.code, failure.value.message) == (400, text)


keys = st.sampled_from(["a", "b", "c"])
values = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=2),
    lambda inner: st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)
documents = st.dictionaries(keys, values, max_size=3)
patches = st.dictionaries(keys, values | st.none(), max_size=3)


@settings(max_examples=60, deadline=None)
@given(documents, patches)
def test_a_patch_applied_twice_is_a_patch_applied_once(doc: Any, patch: Any) -> None:
    once = merge_patch(doc, patch)
    assert merge_patch(once, patch) == once


@settings(max_examples=60, deadline=None)
@given(documents)
def test_the_empty_patch_changes_nothing(doc: Any) -> None:
    assert merge_patch(doc, {}) == doc


@settings(max_examples=60, deadline=None)
@given(documents, patches)
def test_arguments_are_left_alone(doc: Any, patch: Any) -> None:
    before = repr((doc, patch))
    merge_patch(doc, patch)
    assert repr((doc, patch)) == before
