"""A watch's lines: which event, and its object's JSON."""

from __future__ import annotations

import re
from typing import Any

from pydantic_core import from_json, to_json

from kubeloop.client import ApiError
from kubeloop.client.errors import status_error

END_OF_LIST = "k8s.io/initial-events-end"
"""Annotation of the bookmark that ends a streaming list."""

KINDS = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"})

# How API servers write events; anything else takes the slow path.
_EVENT = re.compile(rb'\{"type":"(ADDED|MODIFIED|DELETED|BOOKMARK|ERROR)","object":(?=\{)')


class NotAnEvent(Exception):
    """A line of a watch that is no event."""


def split_event(line: bytes) -> tuple[str, bytes]:
    """The event's type and its object, as JSON still. Raises `NotAnEvent`."""
    match = _EVENT.match(line)
    if match is not None and line.endswith(b"}"):
        return match[1].decode(), line[match.end() : -1]
    event = _parse(line)
    kind, content = event.get("type"), event.get("object")
    if kind not in KINDS or not isinstance(content, dict):
        raise NotAnEvent(f"a watch sent something that is no event: {line[:60]!r}")
    return str(kind), to_json(content)


def read_bookmark(raw: bytes) -> tuple[str, bool]:
    """A bookmark's resourceVersion, and whether it ends a streaming list. Raises `NotAnEvent`."""
    metadata = _parse(raw).get("metadata")
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(version, str) or not version.isdecimal():
        raise NotAnEvent("a bookmark without resourceVersion")
    annotations = metadata.get("annotations")
    return version, isinstance(annotations, dict) and annotations.get(END_OF_LIST) == "true"


def read_error(raw: bytes, resource: str) -> ApiError:
    """The error of an ERROR event; one that leaves out its code counts as 500. Raises `NotAnEvent`."""
    status = _parse(raw)
    code = status.get("code")
    return status_error("watch", resource, code if isinstance(code, int) else 500, status)


def _parse(raw: bytes) -> dict[str, Any]:
    try:
        parsed = from_json(raw)
    except ValueError as error:
        raise NotAnEvent(f"a watch sent something that is not JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise NotAnEvent("a watch sent JSON that is no object")
    return parsed
