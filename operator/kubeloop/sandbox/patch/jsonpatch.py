"""JSON patch (RFC 6902), as the server's library applies it.

Where that library is laxer than the RFC so is this: replacing or copying what is not there sets it (to null
when copied), testing a missing member against null succeeds, and a pointer's first segment is not looked at.
"""

from __future__ import annotations

import re
from typing import Any

from kubeloop.sandbox.patch.merge import json_kind
from kubeloop.sandbox.schema.equality import same
from kubeloop.sandbox.status import ApiFailure, bad_request

MAX_OPERATIONS = 10_000
"""Operations in one patch (apiserver: maxJSONPatchOperations)."""

_INDEX = re.compile(r"[+-]?\d+")


class _NotApplicable(Exception):
    pass


def json_patch(doc: dict[str, Any], ops: Any) -> Any:
    """`doc` after all operations. Raises ApiFailure: 400 malformed, 413 too many, 422 not applicable."""
    if ops is None:
        return doc
    if not isinstance(ops, list):
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {json_kind(ops)} into Go value of type "
            "[]handlers.jsonPatchOp"
        )
    if len(ops) > MAX_OPERATIONS:
        raise ApiFailure(
            413,
            "RequestEntityTooLarge",
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(ops)}",
        )
    for op in ops:
        if not isinstance(op, dict):
            raise bad_request(
                f"error decoding patch: json: cannot unmarshal {json_kind(op)} into Go value of type "
                "handlers.jsonPatchOp"
            )
    work = _Document(doc)
    try:
        for op in ops:
            _apply(work, op)
    except _NotApplicable as error:
        raise ApiFailure(
            422, "Invalid", "the server rejected our request due to an error in our request", details={}
        ) from error
    return work.root


class _Document:
    """A document that copies a container before it changes it for the first time."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._own: dict[int, Any] = {}
        self.root: Any = self._copy(root)

    def _copy(self, container: Any) -> Any:
        fresh = dict(container) if isinstance(container, dict) else list(container)
        self._own[id(fresh)] = fresh  # keeps it alive, so that its id stays its own
        return fresh

    def owner(self, pointer: Any) -> tuple[Any, str]:
        """The container that holds what `pointer` names, free to be changed, and the last segment."""
        if not isinstance(pointer, str):
            raise _NotApplicable
        parts = pointer.split("/")
        if len(parts) < 2:
            raise _NotApplicable
        node = self.root
        for part in parts[1:-1]:
            key: Any = _unescape(part)
            if isinstance(node, list):
                key = _index(key, len(node))
                child = node[key]
            else:
                child = node.get(key)
            if not isinstance(child, dict | list):
                raise _NotApplicable
            if id(child) not in self._own:
                child = self._copy(child)
                node[key] = child
            node = child
        return node, _unescape(parts[-1])


def _unescape(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def _index(text: str, size: int) -> int:
    if not _INDEX.fullmatch(text):
        raise _NotApplicable
    index = int(text)
    if index < 0:
        index += size
    if not 0 <= index < size:
        raise _NotApplicable
    return index


def _get(container: Any, key: str) -> Any:
    if isinstance(container, dict):
        return container.get(key)
    return container[_index(key, len(container))]


def _add(container: Any, key: str, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        container.insert(_index(key, len(container) + 1), value)


def _remove(container: Any, key: str) -> None:
    if isinstance(container, list):
        del container[_index(key, len(container))]
    elif key in container:
        del container[key]
    else:
        raise _NotApplicable


def _apply(work: _Document, op: dict[str, Any]) -> None:
    name = op.get("op")
    if name not in ("add", "remove", "replace", "move", "copy", "test"):
        raise _NotApplicable
    value = op.get("value")
    if name in ("move", "copy"):
        source, source_key = work.owner(op.get("from"))
        value = _get(source, source_key)
        if name == "move":
            _remove(source, source_key)
        container, key = work.owner(op.get("path"))
        _add(container, key, value)
        return
    container, key = work.owner(op.get("path"))
    if name == "add":
        _add(container, key, value)
    elif name == "remove":
        _remove(container, key)
    elif name == "replace":
        if isinstance(container, list):
            container[_index(key, len(container))] = value
        else:
            container[key] = value
    elif not same(_get(container, key), value):
        raise _NotApplicable
