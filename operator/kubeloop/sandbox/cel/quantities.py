"""Quantities in expressions, kept as exact fractions of the form ``numerator/denominator``."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from kubeloop.sandbox.schema.values import QUANTITY_ERROR, parse_quantity

NAME = "kubernetes.Quantity"
Value = dict[str, str]


def _parsed(text: str) -> Fraction | None:
    number = parse_quantity(text)
    return None if number is None else Fraction(number)


def _value(number: Fraction) -> Value:
    return {NAME: str(number)}


def _number(value: Any) -> Fraction:
    return Fraction(value if isinstance(value, int) else value[NAME])


def quantity(text: str) -> Value:
    """Raises ValueError as the server does for what is no quantity."""
    number = _parsed(text)
    if number is None:
        raise ValueError(QUANTITY_ERROR)
    return _value(number)


def is_quantity(text: str) -> bool:
    return parse_quantity(text) is not None


def is_integer(value: Value) -> bool:
    number = _number(value)
    return number.denominator == 1 and -(2**63) <= number < 2**63


def as_integer(value: Value) -> int:
    """Raises ValueError when it is none."""
    if not is_integer(value):
        raise ValueError("cannot convert value to integer")
    return int(_number(value))


def as_float(value: Value) -> float:
    return float(_number(value))


def sign(value: Value) -> int:
    number = _number(value)
    return (number > 0) - (number < 0)


def add(value: Value, other: Any) -> Value:
    return _value(_number(value) + _number(other))


def sub(value: Value, other: Any) -> Value:
    return _value(_number(value) - _number(other))


def compare(value: Value, other: Value) -> int:
    one, two = _number(value), _number(other)
    return (one > two) - (one < two)
