"""Values as expressions see them: declared fields by their escaped names, times and durations as such."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf import duration_pb2, timestamp_pb2

from kubeloop.sandbox.cel.names import spellings
from kubeloop.sandbox.cel.types import scalar, with_identity

Object = dict[str, Any]
Convert = Callable[[Any], Any]

_UNITS = {
    "h": 3600.0,
    "m": 60.0,
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "µs": 1e-6,
    "ns": 1e-9,
    "d": 86400.0,
    "w": 604800.0,
}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ms|us|µs|ns|[hmsdw])")


def parse_duration(text: str) -> timedelta | None:
    """A Go duration (``1h30m``, also with days and weeks); None when it is none."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return timedelta()
    seconds, end = 0.0, 0
    for part in _PART.finditer(rest):
        if part.start() != end:
            return None
        seconds += float(part[1]) * _UNITS[part[2]]
        end = part.end()
    return timedelta(seconds=sign * seconds) if rest and end == len(rest) else None


def wire(value: Any) -> Any:
    """A value that the library takes: it gives out datetimes and timedeltas, but takes only messages."""
    if isinstance(value, timedelta):
        duration = duration_pb2.Duration()
        duration.FromTimedelta(value)
        return duration
    if isinstance(value, datetime):
        time = timestamp_pb2.Timestamp()
        time.FromDatetime(value)
        return time
    return [wire(item) for item in value] if isinstance(value, list) else value


def _duration(value: Any) -> Any:
    parsed = parse_duration(value) if isinstance(value, str) else None
    return value if parsed is None else wire(parsed)


def _time(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return value
    return wire(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC))


def _bytes(value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else value
    except binascii.Error:
        return value


def _double(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _unchanged(value: Any) -> Any:
    return value


_SCALARS: dict[str, Convert] = {
    "duration": _duration,
    "timestamp": _time,
    "bytes": _bytes,
    "double": _double,
}


def converter(schema: Object, *, ordered: bool, root: bool = False) -> Convert | None:
    """From values of a schema to what its expressions see; None when they see nothing of it.

    `ordered` False puts sets and map lists into one order, so that they compare as Kubernetes has it:
    transition rules want that.
    """
    plain = scalar(schema)
    if plain:
        found: Convert = _SCALARS.get(plain, _unchanged)
        return found
    if schema.get("type") == "array":
        items = schema.get("items")
        inner = converter(items, ordered=ordered) if items else None
        return None if inner is None else _list(inner, schema, ordered)
    if schema.get("type") != "object":
        return None
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        inner = converter(additional, ordered=ordered)
        return None if inner is None else _map(inner)
    if root or schema.get("x-kubernetes-embedded-resource"):
        schema = with_identity(schema)
    fields: list[tuple[str, str, Convert]] = []
    for key, child in (schema.get("properties") or {}).items():
        convert = converter(child, ordered=ordered)
        if convert is not None:
            fields += [(key, name, convert) for name in spellings(key)]
    return _struct(fields)


def _list(inner: Convert, schema: Object, ordered: bool) -> Convert:
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    if ordered or schema.get("x-kubernetes-list-type") not in ("set", "map"):
        return lambda value: [inner(item) for item in value] if isinstance(value, list) else value

    def rank(item: Any) -> str:
        told = [item.get(key) for key in keys] if keys and isinstance(item, dict) else item
        return json.dumps(told, sort_keys=True)

    return lambda value: (
        [inner(item) for item in sorted(value, key=rank)] if isinstance(value, list) else value
    )


def _map(inner: Convert) -> Convert:
    return lambda value: {k: inner(item) for k, item in value.items()} if isinstance(value, dict) else value


def _struct(fields: list[tuple[str, str, Convert]]) -> Convert:
    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: inner(value[key]) for key, name, inner in fields if key in value}

    return convert
