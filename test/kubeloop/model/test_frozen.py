"""Immutable containers."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from kubeloop.model import EMPTY, FrozenDict, Items, JsonObject, JsonValue, Map, Model, RawJson, freeze, thaw

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=6,
)


class Holder(Model):
    words: Map[str] = EMPTY
    items: Items[int] = ()
    free: JsonObject = EMPTY
    value: JsonValue = None


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.__setitem__("a", 2),
        lambda d: d.__delitem__("a"),
        lambda d: d.update(b=1),
        lambda d: d.pop("a"),
        lambda d: d.popitem(),
        lambda d: d.clear(),
        lambda d: d.setdefault("b", 1),
        lambda d: d.__ior__({"b": 1}),
    ],
)
def test_a_frozen_map_refuses_every_change(change: Any) -> None:
    frozen = FrozenDict({"a": 1})

    with pytest.raises(TypeError, match="shared"):
        change(frozen)

    assert frozen == {"a": 1}


def test_a_frozen_map_copies_pickles_hashes_and_serialises() -> None:
    frozen = freeze({"a": [1, {"b": None}]})

    assert copy.deepcopy(frozen) is frozen
    assert copy.copy(frozen) is frozen
    assert pickle.loads(pickle.dumps(frozen)) == frozen
    assert hash(frozen) == hash(freeze({"a": [1, {"b": None}]}))
    assert json.loads(json.dumps(frozen)) == {"a": [1, {"b": None}]}
    assert {**frozen, "c": 1} == {"a": (1, {"b": None}), "c": 1}


@settings(max_examples=40)
@given(JSON)
def test_thawing_gives_back_what_was_frozen(value: Any) -> None:
    assert thaw(freeze(value)) == value


@settings(max_examples=40)
@given(st.dictionaries(st.text(), JSON, max_size=3))
def test_raw_json_gives_back_its_object_anew_each_time(value: dict[str, Any]) -> None:
    raw = RawJson.of(value)

    assert raw.value() == value
    assert raw.value() is not raw.value()


def test_null_reads_as_the_empty_container() -> None:
    """A server may send `labels: null`."""
    held = Holder.model_validate_json('{"words": null, "items": null}')

    assert held.words is EMPTY
    assert held.items == ()


def test_free_json_is_frozen_to_the_bottom() -> None:
    held = Holder.model_validate({"free": {"a": [{"b": 1}]}, "value": [1, {"c": []}]})

    with pytest.raises(TypeError):
        held.free["a"][0]["b"] = 2
    assert held.value == (1, {"c": ()})
    assert held.to_wire() == {"free": {"a": [{"b": 1}]}, "value": [1, {"c": []}]}


def test_an_error_names_the_key_of_the_map() -> None:
    with pytest.raises(ValidationError) as caught:
        Holder.model_validate_json('{"words": {"a": 1}}')

    assert caught.value.errors()[0]["loc"] == ("words", "a")
