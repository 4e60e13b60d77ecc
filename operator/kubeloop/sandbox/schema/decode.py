"""Reading a built-in kind as the server's Go types do: unknown fields, nulls, empty values, wrong types."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any

from kubeloop.sandbox.schema.node import Node
from kubeloop.sandbox.schema.values import QUANTITY_ERROR, canonical_quantity, canonical_time

_TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.Time"
_MICRO_TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"
_MICRO = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{6}(?!\d))?(.*)")
_INT_RANGES = {"int32": 2**31, "int64": 2**63}


class DecodeError(ValueError):
    """A value of the wrong type; the text is what the server's JSON decoder says."""


def decode(obj: dict[str, Any], node: Node) -> tuple[dict[str, Any], list[str]]:
    """`obj` as it looks after a round trip through the Go type, and the paths of unknown fields.

    Nulls and empty optional values go, what is always printed comes, quantities and times become
    canonical. Raises DecodeError.
    """
    unknown: list[str] = []
    return _struct(obj, node, "", unknown, node), unknown


def decode_over(obj: dict[str, Any], base: dict[str, Any], node: Node) -> dict[str, Any]:
    """As `decode` for an object that shares parts with the decoded `base`: those are taken as they are."""
    result: dict[str, Any] = _over(obj, base, node, "", node)
    return result


def _over(value: Any, base: Any, node: Node, path: str, owner: Node) -> Any:
    if value is base:
        return value
    if value.__class__ is dict and base.__class__ is dict and node.fields:
        fields, drop = node.fields, node.drop
        out: dict[str, Any] = {}
        changed = False
        for key, item in value.items():
            known = base.get(key, node)
            if item is known:
                out[key] = item
                continue
            child = fields.get(key)
            if child is None or item is None:
                return _value(value, node, path, [], owner)
            new = _over(item, known, child, f"{path}.{key}" if path else key, node)
            if not new and key in drop:
                changed = True
                continue
            changed = changed or new is not item
            out[key] = new
        for key, item in node.zero.items():
            if key not in out:
                out[key] = item
                changed = True
        return out if changed else value
    if value.__class__ is list and base.__class__ is list and node.items is not None and node.items.fields:
        known_items = {id(item) for item in base}
        made = [
            item if id(item) in known_items else _item(item, base, i, node, path, owner)
            for i, item in enumerate(value)
        ]
        return value if all(new is old for new, old in zip(made, value, strict=True)) else made
    return _value(value, node, path, [], owner)


def _item(item: Any, base: list[Any], index: int, node: Node, path: str, owner: Node) -> Any:
    items = node.items
    assert items is not None
    known = base[index] if index < len(base) else None
    return _over(item, known, items, f"{path}[{index}]", owner) if item is not None else items.zero


def _short(node: Node) -> str:
    return node.name.rpartition(".")[2]


def _value(value: Any, node: Node, path: str, unknown: list[str], owner: Node) -> Any:
    kind = value.__class__
    if kind is dict:
        if node.fields:
            return _struct(value, node, path, unknown, owner)
        if node.alternative is not None:
            return _struct(value, node.alternative, path, unknown, owner)
        if node.preserve:
            return value
        if node.type == "object" and node.element is not None:
            return _map(value, node, path, unknown, owner)
        raise _mismatch("object", path, owner)
    if kind is list:
        if node.alternative is not None and all(item.__class__ is dict for item in value):
            return _list(value, node.alternative, path, unknown, owner)
        if node.preserve:
            return value
        if node.type != "array" or node.items is None:
            raise _mismatch("array", path, owner)
        return _list(value, node.items, path, unknown, owner)
    return _scalar(value, kind, node, path, owner)


def _struct(value: Any, node: Node, path: str, unknown: list[str], owner: Node) -> dict[str, Any]:
    if value.__class__ is not dict:
        raise _mismatch(_json_kind(value), path, owner)
    fields, drop = node.fields, node.drop
    out: dict[str, Any] = {}
    changed = False
    for key, item in value.items():
        child = fields.get(key)
        where = f"{path}.{key}" if path else key
        if child is None:
            unknown.append(where)
            changed = True
            continue
        if item.__class__ is str and child.type == "string" and not child.format:
            if item or key not in drop:
                out[key] = item
            else:
                changed = True
            continue
        if item is None:
            if key in node.zero:
                out[key] = node.zero[key]
                changed = changed or out[key] is not None
            else:
                changed = True
            continue
        new = _value(item, child, where, unknown, node)
        if not new and key in drop:
            changed = True
            continue
        if new is not item:
            changed = True
        out[key] = new
    for key, item in node.zero.items():
        if key not in out:
            out[key] = item
            changed = True
    return out if changed else value


def _map(value: dict[str, Any], node: Node, path: str, unknown: list[str], owner: Node) -> dict[str, Any]:
    element = node.element
    assert element is not None
    if element.scalar == "string" and element.format == "":  # labels, annotations, data: the common case
        for item in value.values():
            if item.__class__ is not str:
                break
        else:
            return value
    out: dict[str, Any] = {}
    changed = False
    for key, item in value.items():
        if item is None:
            out[key] = "" if element.scalar == "string" else element.zero
            changed = True
            continue
        out[key] = _value(item, element, f"{path}.{key}", unknown, owner)
        changed = changed or out[key] is not item
    return out if changed else value


def _list(value: list[Any], items: Node, path: str, unknown: list[str], owner: Node) -> list[Any]:
    out: list[Any] = []
    changed = False
    for index, item in enumerate(value):
        if item is None:
            out.append("" if items.scalar == "string" else items.zero)
            changed = True
            continue
        new = _value(item, items, f"{path}[{index}]", unknown, owner)
        changed = changed or new is not item
        out.append(new)
    return out if changed else value


def _scalar(value: Any, kind: type, node: Node, path: str, owner: Node) -> Any:
    if node.type == "string":
        if kind is not str:
            raise _mismatch(_json_kind(value), path, owner)
        if node.format == "date-time":
            return _time(value, node)
        return _bytes(value) if node.format == "byte" else value
    if node.type == "integer":
        limit = _INT_RANGES.get(node.format, 2**63)
        if kind is not int or not -limit <= value < limit:
            raise _mismatch(_json_kind(value, shown=True), path, owner)
        return value
    if node.type == "boolean":
        if kind is not bool:
            raise _mismatch(_json_kind(value), path, owner)
        return value
    if node.type == "number":
        if kind is not int and kind is not float:
            raise _mismatch(_json_kind(value), path, owner)
        return value
    if node.format == "quantity":
        text = canonical_quantity(value)
        if text is None:
            raise DecodeError(QUANTITY_ERROR)
        return value if text == value else text
    if node.int_or_string:
        if kind is str or kind is int:
            return value
        raise _mismatch(_json_kind(value), path, owner)
    if node.scalar or node.preserve:
        return value
    raise _mismatch(_json_kind(value), path, owner)


def _time(value: str, node: Node) -> str:
    micro = node.name == _MICRO_TIME
    layout = "2006-01-02T15:04:05.000000Z07:00" if micro else "2006-01-02T15:04:05Z07:00"
    exact = _MICRO.fullmatch(value) if micro else None
    rest, wanted = value, "2006"
    text = None
    if exact is not None and exact.group(2) is None:
        rest, wanted = exact.group(3), ".000000"
    else:
        text = canonical_time(value, micro=micro)
    if text is None:
        why = f'cannot parse {json.dumps(rest)} as "{wanted}"'
        raise DecodeError(f'parsing time {json.dumps(value)} as "{layout}": {why}')
    return value if text == value else text


def _bytes(value: str) -> str:
    try:
        base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise DecodeError(f"illegal base64 data at input byte {_bad_byte(value)}") from error
    return value


_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def _bad_byte(text: str) -> int:
    body = text.rstrip("=")
    for index, char in enumerate(body):
        if char not in _ALPHABET:
            return index
    return len(text) - len(text) % 4 if len(text) % 4 else len(body)


def _json_kind(value: Any, *, shown: bool = False) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return f"number {json.dumps(value)}" if shown else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


_MAP = "map[string]"


def _mismatch(found: str, path: str, owner: Node) -> DecodeError:
    """The decoder names the innermost struct, the fields on the way (without indices), and the Go type."""
    steps = [step.partition("[")[0] for step in path.split(".") if step]
    go_type = owner.go_types.get(steps[-1], "") if steps else ""
    if not go_type and len(steps) > 1:
        # A value of a map: the decoder names the map, and the type of its values.
        outer = owner.go_types.get(steps[-2], "")
        if outer.startswith(_MAP):
            go_type, steps = outer.removeprefix(_MAP), steps[:-1]
    if not go_type:
        return DecodeError(f"json: cannot unmarshal {found} into Go value of type {_short(owner)}")
    if "[" in path.rpartition(".")[2]:
        go_type = go_type.removeprefix("[]")
    shown = go_type.removeprefix("*")
    return DecodeError(
        f"json: cannot unmarshal {found} into Go struct field {_short(owner)}.{'.'.join(steps)} "
        f"of type {shown}"
    )
