"""OpenAPI v2 in its protobuf form, which kubectl and client-go ask for: gnostic's openapi.v2.Document.

Only what the simulated documents hold has a number here: definitions, not paths. The numbers are those of
OpenAPIv2.proto in github.com/google/gnostic-models.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

CONTENT_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""What the answer is called; clients ask for it with ``@v1.0``, which is no media type."""

_VARINT, _DOUBLE, _BYTES = 0, 1, 2


def encode(document: Mapping[str, Any]) -> bytes:
    """`document`, the JSON form of OpenAPI v2, as protobuf."""
    info = document["info"]
    return (
        _text(1, document["swagger"])
        + _bytes(2, _text(1, info["title"]) + _text(2, info["version"]))
        + _bytes(8, b"")
        + _bytes(9, _named(document["definitions"], _schema))
    )


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(int(value))


def _double(number: int, value: float) -> bytes:
    return _varint(number << 3 | _DOUBLE) + struct.pack("<d", value)


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode())


def _texts(number: int, values: str | Iterable[str]) -> bytes:
    return b"".join(_text(number, value) for value in ([values] if isinstance(values, str) else values))


def _any(number: int, value: Any) -> bytes:
    """Any value: YAML, and JSON is YAML."""
    return _bytes(number, _text(2, json.dumps(value, ensure_ascii=False) + "\n"))


def _named(items: Mapping[str, Any], encoded: Callable[[Any], bytes]) -> bytes:
    return b"".join(_bytes(1, _text(1, name) + _bytes(2, encoded(item))) for name, item in items.items())


def _additional(number: int, value: Any) -> bytes:
    inner = _integer(2, value) if isinstance(value, bool) else _bytes(1, _schema(value))
    return _bytes(number, inner)


_FIELDS: Mapping[str, tuple[int, Callable[[int, Any], bytes]]] = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "default": (5, _any),
    "multipleOf": (6, _double),
    "maximum": (7, _double),
    "exclusiveMaximum": (8, _integer),
    "minimum": (9, _double),
    "exclusiveMinimum": (10, _integer),
    "maxLength": (11, _integer),
    "minLength": (12, _integer),
    "pattern": (13, _text),
    "maxItems": (14, _integer),
    "minItems": (15, _integer),
    "uniqueItems": (16, _integer),
    "maxProperties": (17, _integer),
    "minProperties": (18, _integer),
    "required": (19, _texts),
    "enum": (20, lambda number, values: b"".join(_any(number, value) for value in values)),
    "additionalProperties": (21, _additional),
    "type": (22, lambda number, value: _bytes(number, _texts(1, value))),
    "items": (23, lambda number, value: _bytes(number, _bytes(1, _schema(value)))),
    "allOf": (24, lambda number, values: b"".join(_bytes(number, _schema(value)) for value in values)),
    "properties": (25, lambda number, value: _bytes(number, _named(value, _schema))),
    "example": (30, _any),
}


def _schema(schema: Mapping[str, Any]) -> bytes:
    out = b""
    for key, value in schema.items():
        if key in _FIELDS:
            number, encoded = _FIELDS[key]
            out += encoded(number, value)
        elif key.startswith("x-"):
            # A NamedAny: its value is an Any.
            out += _bytes(31, _text(1, key) + _any(2, value))
    return out
