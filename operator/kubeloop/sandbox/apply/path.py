"""Path elements: how one step into an object is written in a field set, and how messages print it."""

from __future__ import annotations

import json
from typing import Any

from kubeloop.sandbox.schema.node import MISSING, Node

_HTML = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


class PathError(ValueError):
    """A list item that cannot be addressed; the text is the server's."""


def dump(value: Any) -> str:
    """Compact JSON as Go prints it (HTML characters escaped)."""
    if value.__class__ is str:
        return json.dumps(value, ensure_ascii=False).translate(_HTML)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


# Elements already written: few different ones exist (container names, ports), each many times.
_single: dict[tuple[str, str], str] = {}
_several: dict[tuple[Any, ...], str] = {}
_CACHE_LIMIT = 4096


def item_element(node: Node, item: Any) -> str:
    """The path element of a list item in a set or map list `node` (PathError when it has none)."""
    keys = node.keys
    if not keys:
        if isinstance(item, dict):
            raise PathError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise PathError("not supported: associative list with lists as elements")
        if item is None:
            raise PathError("associative list without keys has an element that's an explicit null")
        return "v:" + dump(item)
    if not isinstance(item, dict):
        if item is None:
            raise PathError("associative list with keys may not have a null element")
        raise PathError("associative list with keys may not have non-map elements")
    if len(keys) == 1:
        value = item.get(keys[0])
        if value.__class__ is str:
            known = _single.get((keys[0], value))
            if known is None:
                known = f'k:{{"{keys[0]}":{dump(value)}}}'
                if len(_single) >= _CACHE_LIMIT:
                    _single.clear()
                _single[(keys[0], value)] = known
            return known
        return _write_key(node, item)
    values: list[Any] = [keys]
    for key in keys:
        value = item.get(key, MISSING)
        if value is MISSING:
            value = node.key_defaults.get(key, MISSING)
        if value.__class__ is not str and value.__class__ is not int:
            return _write_key(node, item)  # an absent key, or one that hashes like another (True, 1.0)
        values.append(value)
    identity = tuple(values)
    known = _several.get(identity)
    if known is None:
        known = _write_key(node, item)
        if len(_several) >= _CACHE_LIMIT:
            _several.clear()
        _several[identity] = known
    return known


def _write_key(node: Node, item: dict[str, Any]) -> str:
    keys = node.keys
    parts = []
    for key in sorted(keys):
        if key in item:
            parts.append(f'"{key}":{dump(item[key])}')
        elif key in node.key_defaults:
            parts.append(f'"{key}":{dump(node.key_defaults[key])}')
    if not parts:
        names = " ".join(json.dumps(key) for key in keys)
        raise PathError(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return "k:{" + ",".join(parts) + "}"


def canonical(element: str) -> str:
    """A client's spelling of a path element as this server would write it (ValueError: not one)."""
    kind, _, rest = element.partition(":")
    if kind == "f" or element == ".":
        return element
    if kind == "k":
        fields = json.loads(rest)
        return "k:{" + ",".join(f'"{key}":{dump(fields[key])}' for key in sorted(fields)) + "}"
    if kind == "v":
        return "v:" + dump(json.loads(rest))
    if kind == "i":
        return f"i:{int(rest)}"
    raise ValueError("unknown path element type")


def _quote(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return dump(value)


def display_element(element: str) -> str:
    """``.spec``, ``[name="nginx"]``, ``[="x"]`` or ``[0]``."""
    kind, _, rest = element.partition(":")
    if kind == "f":
        return "." + rest
    if kind == "k":
        fields = json.loads(rest)
        return "[" + ",".join(f"{key}={_quote(fields[key])}" for key in sorted(fields)) + "]"
    if kind == "v":
        return f"[={_quote(json.loads(rest))}]"
    return f"[{rest}]"


def display(path: tuple[str, ...]) -> str:
    """A whole path as conflicts name it."""
    return "".join(display_element(element) for element in path)
