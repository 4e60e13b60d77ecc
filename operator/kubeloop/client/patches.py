"""The four ways to change part of an object, and how each is written on the wire."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic_core import PydanticSerializationError, to_json


@dataclass(frozen=True, slots=True)
class Patch:
    """A change to one object. `repeatable`: applying it twice has the effect of applying it once."""

    content_type: ClassVar[str]
    repeatable: ClassVar[bool] = True

    def encode(self) -> bytes:
        """The request body. Raises ValueError if it cannot be written as JSON in UTF-8."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class JsonPatch(Patch):
    """RFC 6902: a list of operations, all or nothing. Adding to a list twice adds two elements."""

    content_type: ClassVar[str] = "application/json-patch+json"
    repeatable: ClassVar[bool] = False
    ops: Sequence[Mapping[str, Any]]

    def encode(self) -> bytes:
        return encode_json(list(self.ops))


@dataclass(frozen=True, slots=True)
class MergePatch(Patch):
    """RFC 7386: a partial object; null deletes, lists are replaced whole."""

    content_type: ClassVar[str] = "application/merge-patch+json"
    doc: Mapping[str, Any]

    def encode(self) -> bytes:
        return encode_json(self.doc)


@dataclass(frozen=True, slots=True)
class StrategicPatch(Patch):
    """A partial object whose lists are merged by their keys; built-in kinds only."""

    content_type: ClassVar[str] = "application/strategic-merge-patch+json"
    doc: Mapping[str, Any]

    def encode(self) -> bytes:
        return encode_json(self.doc)


@dataclass(frozen=True, slots=True)
class Apply(Patch):
    """Server-side apply: every field we have an opinion on. Needs a field manager."""

    content_type: ClassVar[str] = "application/apply-patch+yaml"
    doc: Mapping[str, Any]

    def encode(self) -> bytes:
        return _for_yaml(encode_json(self.doc))


def encode_json(value: Any) -> bytes:
    """Compact JSON in UTF-8, nothing escaped that need not be.

    Raises ValueError naming the place if some text holds a lone surrogate (half a character, as bad slicing
    or `surrogateescape` leaves it), a number is not finite, or a value has no JSON form.
    """
    try:
        encoded = to_json(value, inf_nan_mode="strings")
    except (PydanticSerializationError, UnicodeError) as error:
        raise ValueError(f"cannot be sent as JSON: {_culprit(value, '') or error}") from error
    if (b"NaN" in encoded or b"Infinity" in encoded) and (place := _culprit(value, "")):
        raise ValueError(f"cannot be sent as JSON: {place}")
    return encoded


def _culprit(value: Any, path: str) -> str | None:
    """Where the first unsendable text or number stands."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return f"{path or '.'} holds a lone surrogate: {value[:60]!a}"
    elif isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return f"{path or '.'} is {value}"
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if found := _culprit(key, f"{path}.<key>") or _culprit(item, f"{path}.{key!s:.60}"):
                return found
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            if found := _culprit(item, f"{path}[{index}]"):
                return found
    return None


# The server parses apply bodies as YAML. Of what JSON lets stand unescaped, YAML forbids DEL, the C1 controls
# and U+FFFE/FFFF, and takes NEL, U+2028 and U+2029 for line breaks, which it would fold into a space.
_NOT_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufffe\uffff]")
_SUSPECTS = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]|\xef\xbf[\xbe\xbf]")


def _for_yaml(encoded: bytes) -> bytes:
    if not _SUSPECTS.search(encoded):
        return encoded
    return _NOT_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", encoded.decode()).encode()
