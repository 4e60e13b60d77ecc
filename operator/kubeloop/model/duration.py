"""Durations in Go's notation, as the Kubernetes API writes them: `300ms`, `1h30m`, `-1.5h`."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

PATTERN = r"^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
_WHOLE = re.compile(PATTERN)
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
# In microseconds, the resolution of timedelta. Both spellings of the micro sign are legal in Go.
_UNITS = {
    "ns": Decimal("0.001"), "us": Decimal(1), "µs": Decimal(1), "μs": Decimal(1), "ms": Decimal(10**3),
    "s": Decimal(10**6), "m": Decimal(60 * 10**6), "h": Decimal(3600 * 10**6),
}  # fmt: skip


def parse_duration(text: str) -> timedelta:
    """The timedelta of a Go duration; what is below a microsecond is rounded.

    Raises ValueError for text that is no duration and for one that no timedelta can hold.
    """
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration: write for example 300ms, 1h30m or 10s")
    total = sum((Decimal(number) * _UNITS[unit] for number, unit in _PART.findall(text)), Decimal(0))
    micros = int(total.to_integral_value(ROUND_HALF_EVEN))
    try:
        return timedelta(microseconds=-micros if text.startswith("-") else micros)
    except OverflowError:
        raise ValueError(f"duration {text!r} is out of range") from None


def format_duration(value: timedelta) -> str:
    """The duration as Go's `Duration.String()` prints it: `1h30m0s`, `1.5s`, `300ms`, `0s`."""
    micros = (value.days * 86400 + value.seconds) * 10**6 + value.microseconds
    sign, micros = ("-", -micros) if micros < 0 else ("", micros)
    if micros == 0:
        return "0s"
    if micros < 1000:
        return f"{sign}{micros}µs"
    if micros < 10**6:
        return f"{sign}{_decimal(micros, 1000)}ms"
    minutes, rest = divmod(micros, 60 * 10**6)
    hours, minutes = divmod(minutes, 60)
    text = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{text}{_decimal(rest, 10**6)}s"


def _decimal(value: int, unit: int) -> str:
    whole, fraction = divmod(value, unit)
    return f"{whole}.{str(fraction).zfill(len(str(unit)) - 1).rstrip('0')}" if fraction else str(whole)


def _read(value: Any) -> Any:
    return parse_duration(value) if isinstance(value, str) else value


Duration = Annotated[
    timedelta, BeforeValidator(_read), WithJsonSchema({"type": "string", "pattern": PATTERN})
]
"""A `timedelta` here, Go's duration text on the wire."""
