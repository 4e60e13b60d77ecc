"""Quantities."""

from __future__ import annotations

import json
import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kubeloop.model import Model, Quantity
from kubeloop.model.quantity import PATTERN


class Holder(Model):
    amount: Quantity


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", "0"),
        ("1", "1"),
        ("500m", "0.5"),
        ("1.5", "1.5"),
        (".5", "0.5"),
        ("5.", "5"),
        ("+2k", "2000"),
        ("-1Ki", "-1024"),
        ("2Gi", "2147483648"),
        ("1E", "1000000000000000000"),
        ("1Ei", "1152921504606846976"),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("1e-3", "0.001"),
        ("100n", "0.0000001"),
        ("3u", "0.000003"),
    ],
)
def test_a_quantity_has_an_exact_amount(text: str, amount: str) -> None:
    assert Quantity(text).amount == Decimal(amount)


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "1K", "1gi", "1e", "--1", "1e1.5", "1\n", "1e99999"])
def test_what_is_no_quantity_has_no_amount(text: str) -> None:
    with pytest.raises(ValueError, match="quantity"):
        _ = Quantity(text).amount


def test_numbers_are_taken_as_their_text_and_the_spelling_is_kept() -> None:
    assert Holder.model_validate_json('{"amount": 2}').amount == "2"
    assert Holder.model_validate_json('{"amount": "0.50"}').to_wire() == {"amount": "0.50"}


@pytest.mark.parametrize("wire", ["true", "1.5", "null", '"1 Gi"', "[]", '""'])
def test_anything_else_is_refused(wire: str) -> None:
    with pytest.raises(ValidationError):
        Holder.model_validate_json(f'{{"amount": {wire}}}')


@given(st.from_regex(re.compile(PATTERN[:-1] + r"\Z", re.ASCII)) | st.text(max_size=6))
def test_the_model_accepts_what_the_pattern_of_the_crd_accepts(text: str) -> None:
    matches = re.fullmatch(PATTERN[1:-1], text, re.ASCII) is not None
    try:
        Holder.model_validate_json(json.dumps({"amount": text}))
    except ValidationError:
        assert not matches
    else:
        assert matches
