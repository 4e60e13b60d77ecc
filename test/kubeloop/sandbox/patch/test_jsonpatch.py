"""JSON patch: the examples of RFC 6902 (appendix A), and where the real server is laxer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubeloop.sandbox.patch import json_patch
from kubeloop.sandbox.status import ApiFailure

REFUSED = "the server rejected our request due to an error in our request"


def op(name: str, path: str, **more: Any) -> dict[str, Any]:
    return {"op": name, "path": path, **more}


@pytest.mark.parametrize(
    ("doc", "ops", "expected"),
    [
        ({"foo": "bar"}, [op("add", "/baz", value="qux")], {"baz": "qux", "foo": "bar"}),
        ({"foo": ["bar", "baz"]}, [op("add", "/foo/1", value="qux")], {"foo": ["bar", "qux", "baz"]}),
        ({"baz": "qux", "foo": "bar"}, [op("remove", "/baz")], {"foo": "bar"}),
        ({"foo": ["bar", "qux", "baz"]}, [op("remove", "/foo/1")], {"foo": ["bar", "baz"]}),
        ({"baz": "qux", "foo": "bar"}, [op("replace", "/baz", value="boo")], {"baz": "boo", "foo": "bar"}),
        (
            {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
            [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
            {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
        ),
        (
            {"foo": ["all", "grass", "cows", "eat"]},
            [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
            {"foo": ["all", "cows", "eat", "grass"]},
        ),
        (
            {"baz": "qux", "foo": ["a", 2, "c"]},
            [op("test", "/baz", value="qux"), op("test", "/foo/1", value=2)],
            {"baz": "qux", "foo": ["a", 2, "c"]},
        ),
        ({"foo": "bar"}, [op("add", "/child", value={"g": {}})], {"foo": "bar", "child": {"g": {}}}),
        ({"foo": "bar"}, [op("add", "/baz", value="qux", xyz=123)], {"foo": "bar", "baz": "qux"}),
        ({"/": 9, "~1": 10}, [op("test", "/~01", value=10)], {"/": 9, "~1": 10}),
        ({"foo": ["bar"]}, [op("add", "/foo/-", value=["abc"])], {"foo": ["bar", ["abc"]]}),
    ],
)
def test_the_rfc_examples(doc: Any, ops: Any, expected: Any) -> None:
    assert json_patch(doc, ops) == expected


@pytest.mark.parametrize(
    "ops",
    [
        [op("test", "/a", value="x")],
        [op("test", "/a", value=None)],
        [op("test", "/nowhere/a", value=None)],
        [op("remove", "/missing")],
        [op("add", "/nowhere/a", value=1)],
        [op("add", "/l/5", value=1)],
        [op("remove", "/l/x")],
        [{"op": "move", "from": "/missing", "path": "/a"}],
        [op("bogus", "/a")],
        [op("add", "", value={})],
        [{"op": "add"}],
    ],
)
def test_what_does_not_apply_is_a_422_that_says_nothing_more(ops: Any) -> None:
    with pytest.raises(ApiFailure) as failure:
        json_patch({"a": "b", "l": [1]}, ops)
    assert (failure.value.code, failure.value.message) == (422, REFUSED)


def test_a_missing_member_equals_null_when_tested() -> None:
    doc = {"metadata": {"name": "a"}}
    assert json_patch(doc, [op("test", "/metadata/finalizers", value=None)]) == doc


def test_replacing_or_copying_what_is_missing_sets_it() -> None:
    doc = {"a": {}}
    assert json_patch(doc, [op("replace", "/a/b", value=1)]) == {"a": {"b": 1}}
    assert json_patch(doc, [{"op": "copy", "from": "/a/x", "path": "/a/b"}]) == {"a": {"b": None}}
    assert json_patch({"l": [1, 2]}, [op("remove", "/l/-1")]) == {"l": [1]}


def test_true_is_not_one() -> None:
    with pytest.raises(ApiFailure):
        json_patch({"a": True}, [op("test", "/a", value=1)])


@pytest.mark.parametrize(
    ("ops", "text"),
    [
        (
            {"a": 1},
            "error decoding patch: json: cannot unmarshal object into Go value of type "
            "[]handlers.jsonPatchOp",
        ),
        (
            [1],
            "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp",
        ),
    ],
)
def test_what_is_no_patch_is_a_400(ops: Any, text: str) -> None:
    with pytest.raises(ApiFailure) as failure:
        json_patch({}, ops)
    assert (failure.value.code, failure.value.message) == (400, text)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(doc=st.dictionaries(st.text(max_size=2), values, max_size=3), value=values, key=st.text(max_size=3))
def test_adding_and_removing_again_is_nothing(doc: dict[str, Any], value: Any, key: str) -> None:
    before = repr(doc)
    path = "/" + key.replace("~", "~0").replace("/", "~1")
    without = {k: v for k, v in doc.items() if k != key}
    assert json_patch(doc, [op("add", path, value=value), op("remove", path)]) == without
    assert repr(doc) == before
