"""Reading Kubernetes' protobuf, which kubectl sends for built-in kinds; answers are always JSON.

The field numbers are data (`data/protobuf.json.gz`, made by ``hack/protobuf/record.py`` from the
generated.proto files of Kubernetes' own modules). Only messages of the simulated kinds are known.
"""

from __future__ import annotations

import base64
import gzip
import json
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any

MAGIC = b"k8s\x00"
_META = "k8s.io.apimachinery.pkg.apis.meta.v1"
_INLINE = frozenset({"volumeSource", "localObjectReference", "handler", "ephemeralContainerCommon"})
"""Fields whose members stand in the parent's JSON (embedded structs in Go)."""


class ProtobufError(ValueError):
    """The bytes are no message of the kind they say."""


class UnknownKindError(ProtobufError):
    """The kind is not among the known ones."""


@cache
def _tables() -> tuple[dict[str, str], dict[str, dict[str, list[str]]]]:
    packed = resources.files(__package__).joinpath("data", "protobuf.json.gz").read_bytes()
    document = json.loads(gzip.decompress(packed))
    return document["kinds"], document["messages"]


def decode(data: bytes) -> dict[str, Any]:
    """The object in an enveloped body, as its JSON would be. Raises `ProtobufError`."""
    if not data.startswith(MAGIC):
        raise ProtobufError(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    try:
        envelope = dict(_fields(data[len(MAGIC) :]))
        about = dict(_fields(envelope.get(1, b"")))
        version, kind = bytes(about.get(1, b"")).decode(), bytes(about.get(2, b"")).decode()
        kinds, _ = _tables()
        message = kinds.get(f"{version}/{kind}") or (
            kinds["meta.k8s.io/v1/DeleteOptions"] if kind == "DeleteOptions" else None
        )
        if message is None:
            raise UnknownKindError(f"{kind} of {version}")
        body = _message(bytes(envelope.get(2, b"")), message)
    except (IndexError, UnicodeDecodeError, struct.error, TypeError) as error:
        raise ProtobufError(f"broken protobuf message: {error}") from error
    return {"apiVersion": version, "kind": kind, **body}


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return result, at
        shift += 7


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message: number and raw value (int for varints, bytes for everything else)."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        value: Any
        if wire == 0:
            value, at = _varint(data, at)
        elif wire == 2:
            length, at = _varint(data, at)
            value = data[at : at + length]
            if len(value) != length:
                raise ProtobufError("unexpected EOF")
            at += length
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value = data[at : at + size]
            at += size
        else:
            raise ProtobufError(f"illegal wire type {wire}")
        yield number, value


def _message(data: bytes, name: str) -> dict[str, Any]:
    _, messages = _tables()
    layout = messages[name]
    result: dict[str, Any] = {}
    for number, raw in _fields(data):
        field = layout.get(str(number))
        if field is None:
            continue
        key, shape, kind = field
        if shape == "map":
            entry = dict(_fields(raw))
            result.setdefault(key, {})[bytes(entry.get(1, b"")).decode()] = _value(entry.get(2, b""), kind)
            continue
        value = _value(raw, kind)
        if shape == "many":
            result.setdefault(key, []).append(value)
        elif key in _INLINE:
            result.update(value)
        elif value is not None:
            result[key] = value
    return result


def _value(raw: Any, kind: str) -> Any:
    """One value as JSON has it."""
    match kind:
        case "string":
            return bytes(raw).decode()
        case "bytes":
            return base64.b64encode(raw).decode()
        case "bool":
            return bool(raw)
        case "int32" | "int64":
            # Negative numbers come as 64-bit two's complement.
            return raw - (1 << 64) if raw >= 1 << 63 else raw
    special = kind.rpartition(".")[2]
    if kind == f"{_META}.Time" or kind == f"{_META}.MicroTime":
        return _time(raw, micro=special == "MicroTime")
    if special == "Quantity":
        return bytes(dict(_fields(raw)).get(1, b"")).decode()
    if special == "IntOrString":
        parts = dict(_fields(raw))
        return bytes(parts.get(3, b"")).decode() if parts.get(1) else _value(parts.get(2, 0), "int32")
    if kind == f"{_META}.FieldsV1":
        return json.loads(dict(_fields(raw)).get(1, b"") or b"{}")
    return _message(bytes(raw), kind)


def _time(raw: bytes, *, micro: bool) -> str | None:
    """A timestamp; the zero time is null."""
    parts = dict(_fields(raw))
    seconds = _value(parts.get(1, 0), "int64")
    if not parts or (not seconds and not parts.get(2)):
        return None
    when = datetime.fromtimestamp(seconds, UTC)
    text = when.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{parts.get(2, 0) // 1000:06d}Z" if micro else f"{text}Z"
