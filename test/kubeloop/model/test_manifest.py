"""YAML that two readers understand alike."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kubeloop.model import freeze, to_yaml

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda children: st.lists(children) | st.dictionaries(st.text(st.characters(codec="utf-8")), children),
    max_leaves=6,
)


@pytest.mark.parametrize(
    "word", ["y", "n", "Y", "N", "yes", "no", "on", "off", "null", "~", "1e3", "1", "0o7", "1:30", "="]
)
def test_words_that_another_reader_takes_for_something_else_are_quoted(word: str) -> None:
    """kubectl reads a plain `y` as true, even as the name of a property."""
    assert to_yaml({word: word}) == f"'{word}': '{word}'\n"


def test_order_and_text_are_kept_and_repeated_parts_written_out() -> None:
    shared = freeze({"ä": [1]})

    assert to_yaml({"z": shared, "a": shared}) == "z:\n  ä:\n  - 1\na:\n  ä:\n  - 1\n"


def test_several_documents_are_separated() -> None:
    assert to_yaml({"a": 1}, {"b": 2}) == "---\na: 1\n---\nb: 2\n"


@settings(max_examples=40)
@given(JSON)
def test_what_is_written_reads_back_equal(value: Any) -> None:
    assert yaml.safe_load(to_yaml(value)) == value
