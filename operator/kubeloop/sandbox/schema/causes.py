"""Field errors as the server words them (apimachinery: util/validation/field)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from kubeloop.sandbox.status import Cause

BLOCKING = frozenset(
    (
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    )
)
"""Reasons that keep CEL rules from being looked at (customresource: hasBlockingErr)."""


def go_float(number: float) -> str:
    """A float64 as Go's %v prints it."""
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    if number == 0:
        return "0"
    mantissa, _, exponent = f"{number:.17e}".partition("e")
    for digits in range(17):
        text = f"{number:.{digits}e}"
        if float(text) == number:
            mantissa, _, exponent = text.partition("e")
            break
    power = int(exponent)
    if -4 <= power < 21:
        plain = f"{number:.{max(0, len(mantissa.replace('.', '').lstrip('-')) - 1 - power)}f}"
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}e{power:+03d}"


def quote(text: str) -> str:
    """Go's %q for the texts that occur in objects."""
    return json.dumps(text, ensure_ascii=False)


def shown(value: Any) -> str:
    """A bad value as messages show it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return go_float(value)
    if isinstance(value, str):
        return quote(value)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _with(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text


def required(field: str, detail: str = "") -> Cause:
    return Cause("FieldValueRequired", _with("Required value", detail), field)


def invalid(field: str, value: Any, detail: str) -> Cause:
    return Cause("FieldValueInvalid", _with(f"Invalid value: {shown(value)}", detail), field)


def type_invalid(field: str, value: Any, detail: str) -> Cause:
    return Cause("FieldValueTypeInvalid", _with(f"Invalid value: {shown(value)}", detail), field)


def not_supported(field: str, value: Any, supported: Iterable[Any]) -> Cause:
    names = ", ".join(quote(str(item)) for item in supported)
    detail = f"supported values: {names}" if names else ""
    return Cause("FieldValueNotSupported", _with(f"Unsupported value: {shown(value)}", detail), field)


def duplicate(field: str, value: Any) -> Cause:
    return Cause("FieldValueDuplicate", f"Duplicate value: {shown(value)}", field)


def not_found(field: str, value: Any) -> Cause:
    return Cause("FieldValueNotFound", f"Not found: {shown(value)}", field)


def forbidden(field: str, detail: str) -> Cause:
    return Cause("FieldValueForbidden", _with("Forbidden", detail), field)


def too_long(field: str, limit: int) -> Cause:
    """`limit` is in bytes; negative when it is not known."""
    detail = f"may not be more than {limit} byte{'' if limit == 1 else 's'}" if limit >= 0 else ""
    return Cause("FieldValueTooLong", _with("Too long", detail or "value is too long"), field)


def too_many(field: str, actual: int, limit: int) -> Cause:
    if limit < 0:
        return Cause("FieldValueTooMany", _with(f"Too many: {actual}", "has too many items"), field)
    return Cause(
        "FieldValueTooMany",
        f"Too many: {actual}: must have at most {limit} item{'' if limit == 1 else 's'}",
        field,
    )
