"""Scalars with a canonical form: quantities and times, as Go prints them after reading them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import ROUND_UP, Decimal
from typing import Any

_QUANTITY = re.compile(r"^([+-]?)(\d+\.?\d*|\.\d+)(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?\d+|)$")
_BINARY = {suffix: 1024 ** (i + 1) for i, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))}
_DECIMAL = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BY_EXPONENT = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_MAX = Decimal(2**63 - 1)
_RFC3339 = re.compile(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)$")

QUANTITY_ERROR = (
    "quantities must match the regular expression "
    r"'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


def parse_quantity(text: str) -> Decimal | None:
    """The number a quantity stands for, None when it is not one (more than nine decimals are rounded up)."""
    match = _QUANTITY.match(text)
    if match is None:
        return None
    sign, digits, suffix = match.groups()
    number = Decimal(sign + digits)
    if suffix in _BINARY:
        number *= _BINARY[suffix]
    elif suffix in _DECIMAL:
        number = number.scaleb(_DECIMAL[suffix])
    else:
        number = number.scaleb(int(suffix[1:]))
    number = number.quantize(Decimal("1e-9"), rounding=ROUND_UP)
    return max(min(number, _MAX), -_MAX)


def canonical_quantity(value: Any) -> str | None:
    """A quantity as Go prints it (``0.5`` is ``500m``, ``1024Mi`` is ``1Gi``); None when it is not one."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value).strip()  # as Quantity.UnmarshalJSON does; CEL's quantity() does not
    number = parse_quantity(text)
    if number is None:
        return None
    match = _QUANTITY.match(text)
    suffix = match.group(3) if match else ""
    if suffix in _BINARY and (number == number.to_integral_value() or abs(number) >= 1024):
        return _binary(number)
    if suffix[:1] in ("e", "E") and suffix not in ("E",):
        return _decimal(number, exponent_form=True)
    return _decimal(number, exponent_form=False)


def _binary(number: Decimal) -> str:
    count = int(number.to_integral_value(rounding=ROUND_UP))
    best = ""
    if count:
        for suffix, factor in _BINARY.items():
            if count % factor == 0:
                best = suffix
    return f"{count // _BINARY[best] if best else count}{best}"


def _decimal(number: Decimal, *, exponent_form: bool) -> str:
    if number == 0:
        return "0"
    exponent = -9
    scaled = int(number.scaleb(9))
    while scaled % 1000 == 0 and exponent < 18:
        scaled //= 1000
        exponent += 3
    if exponent_form:
        return f"{scaled}e{exponent}" if exponent else str(scaled)
    return f"{scaled}{_BY_EXPONENT[exponent]}"


def canonical_time(text: str, *, micro: bool) -> str | None:
    """An RFC 3339 time in UTC at the precision Go's Time or MicroTime prints; None when it is not one."""
    match = _RFC3339.match(text)
    if match is None:
        return None
    day, clock, fraction, zone = match.groups()
    digits = ((fraction or ".0")[1:] + "000000")[:6]
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}.{digits}{'+00:00' if zone == 'Z' else zone}")
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    form = "%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ"
    text = moment.strftime(form)
    return text.rjust(len("2006-01-02T15:04:05Z") + (7 if micro else 0), "0")
