"""How changes are written."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kubeloop.client import Apply, JsonPatch, MergePatch, StrategicPatch
from kubeloop.client.patches import encode_json

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(TEXT, VALUE, max_size=4))
@settings(max_examples=40, deadline=None)
def test_an_apply_body_means_the_same_as_json_and_as_yaml(document: dict[str, object]) -> None:
    """The server reads it as YAML."""
    body = Apply(document).encode().decode()
    assert json.loads(body) == document
    # PyYAML, unlike the server's parser, knows no characters above U+FFFF escaped or in C1; those are checked
    # below.
    if all(character.isprintable() and ord(character) < 0xFFFF for character in body):
        assert yaml.safe_load(body) == document


def test_characters_that_yaml_forbids_or_folds_are_escaped() -> None:
    body = Apply({"a": "\x7f\x85\x9b\u2028\u2029\ufffe 鲸🐋é"}).encode().decode()
    assert body == '{"a":"\\u007f\\u0085\\u009b\\u2028\\u2029\\ufffe 鲸🐋é"}'


def test_other_bodies_are_plain_utf_8() -> None:
    for patch in (MergePatch({"a": "鲸"}), StrategicPatch({"a": "鲸"})):
        assert patch.encode() == '{"a":"鲸"}'.encode()
    assert JsonPatch([{"op": "test", "path": "/a", "value": None}]).encode() == (
        b'[{"op":"test","path":"/a","value":null}]'
    )


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"metadata": {"annotations": {"x": "bad \ud83d"}}}, r"\.metadata\.annotations\.x .*lone surrogate"),
        ({"a": [{"b": "ok"}, "\udc80"]}, r"\.a\[1\] .*lone surrogate"),
        ({"a": {"\ud83d": 1}}, r"\.a\.<key> .*lone surrogate"),
        ({"spec": {"x": float("nan")}}, r"\.spec\.x is nan"),
        ({"spec": {"x": float("inf")}}, r"\.spec\.x is inf"),
    ],
)
def test_what_cannot_be_sent_is_named(document: dict[str, object], place: str) -> None:
    with pytest.raises(ValueError, match=place):
        encode_json(document)


def test_a_text_that_looks_like_a_number_is_fine() -> None:
    assert encode_json({"a": "NaN", "b": "-Infinity"}) == b'{"a":"NaN","b":"-Infinity"}'


def test_what_has_no_json_form_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be sent as JSON"):
        encode_json({"a": object()})


def test_only_json_patches_are_not_repeatable() -> None:
    assert not JsonPatch([]).repeatable
    assert all(patch.repeatable for patch in (MergePatch({}), StrategicPatch({}), Apply({})))
