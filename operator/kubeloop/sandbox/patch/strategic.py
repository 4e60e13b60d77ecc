"""Strategic merge patch: lists merge by key where the schema says so, and patches may carry directives.

`$patch: replace|delete|merge`, `$retainKeys`, `$setElementOrder/<list>` and
`$deleteFromPrimitiveList/<list>` work as in apimachinery's strategicpatch.
"""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any

from kubeloop.sandbox.patch.merge import json_kind
from kubeloop.sandbox.patch.ordering import distinct, in_order, interleave
from kubeloop.sandbox.schema import KindSchema
from kubeloop.sandbox.schema.node import DEDUCED, Node
from kubeloop.sandbox.status import ApiFailure, bad_request

_PATCH = "$patch"
_RETAIN_KEYS = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"
_GONE: Any = object()


def strategic_merge_patch(doc: dict[str, Any], patch: Any, schema: KindSchema) -> dict[str, Any]:
    """`doc` with `patch` merged in as `schema` says. Raises ApiFailure 400, 422 or (as the server) 500."""
    if not isinstance(patch, dict):
        raise bad_request(
            f"json: cannot unmarshal {json_kind(patch)} into Go value of type map[string]interface {{}}"
        )
    return _merge_map(doc, patch, schema.root)


def _failure(text: str) -> ApiFailure:
    return ApiFailure(500, "", text)


def _go(value: Any) -> str:
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_go(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(_go, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return "<nil>" if value is None else str(value)


def _no_key(item: dict[str, Any], key: str) -> ApiFailure:
    return _failure(f"map: {_go(item)} does not contain declared merge key: {key}")


def _strategy(node: Node) -> str:
    return next((name for name in node.merge_strategy if name != "retainKeys"), "")


def _merge_map(original: dict[str, Any], patch: dict[str, Any], node: Node) -> dict[str, Any]:
    if _PATCH in patch:
        return _whole_map(patch)
    result = dict(original)
    pending = dict(patch)
    if _RETAIN_KEYS in pending:
        _retain(result, pending)
    for key in [key for key in pending if key.startswith(_ORDER)]:
        _merge_ordered(key, result, pending, node)
    for key, value in pending.items():
        deleting = key.startswith(_DELETE.rstrip("/"))
        if deleting:
            if not key.startswith(_DELETE):
                raise bad_request("invalid patch format of primitive list")
            key = key.removeprefix(_DELETE)
        if value is None:
            result.pop(key, None)
            continue
        old = result.get(key, _GONE)
        child = node.child(key) or DEDUCED
        if old is _GONE or type(old) is not type(value):
            if not deleting:
                _put(result, key, _clean(value))
        elif isinstance(value, dict):
            replaces = _strategy(child) == "replace"
            result[key] = value if replaces else _merge_map(old, value, child)
        elif isinstance(value, list):
            result[key] = _merge_list(old, value, child, deleting)
        else:
            result[key] = value
    return result


def _put(result: dict[str, Any], key: str, value: Any) -> None:
    if value is _GONE:
        result.pop(key, None)
    else:
        result[key] = value


def _whole_map(patch: dict[str, Any]) -> dict[str, Any]:
    directive = patch[_PATCH]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if directive == "delete":
        return {}
    raise _failure(f"unknown patch type: {_go(directive)} in map: {_go(patch)}")


def _clean(value: Any) -> Any:
    """A value that is put in as a whole, without nulls and without what carries a directive."""
    if isinstance(value, dict):
        if _PATCH in value:
            return _GONE
        cleaned = ((key, _clean(item)) for key, item in value.items() if item is not None)
        return {key: item for key, item in cleaned if item is not _GONE}
    if isinstance(value, list):
        return [item for item in map(_clean, value) if item is not _GONE]
    return value


def _retain(result: dict[str, Any], pending: dict[str, Any]) -> None:
    keep = pending.pop(_RETAIN_KEYS)
    if not isinstance(keep, list):
        raise bad_request("invalid patch format of retainKeys")
    for key, value in pending.items():
        if value is not None and not key.startswith((_DELETE, _ORDER)) and key not in keep:
            raise bad_request("invalid patch format of retainKeys")
    for key in [key for key in result if key not in keep]:
        del result[key]


def _merge_ordered(key: str, result: dict[str, Any], pending: dict[str, Any], node: Node) -> None:
    """A list whose final order the patch spells out."""
    order = pending.pop(key)
    name = key.removeprefix(_ORDER)
    if not isinstance(order, list):
        raise _failure(f"expected a []interface {{}}, but received a {_go_type(order)}")
    old, new = result.get(name, _GONE), pending.pop(name, _GONE)
    for value in (old, new):
        if value is not _GONE and not isinstance(value, list):
            raise _failure(f"expected a []interface {{}}, but received a {_go_type(value)}")
    child = node.child(name) or DEDUCED
    merge_key = child.merge_key
    _check_order([] if new is _GONE else new, order, merge_key)
    if old is _GONE and new is _GONE:
        return
    if new is _GONE:
        merged = old
    elif old is _GONE:
        merged = _clean(new)
    else:
        merged = _merge_list(old, new, child, False)
    if (old is _GONE or not old) and (new is _GONE or not new):
        raise _failure("no elements in any of the given slices")
    listed = [_key_of(item, merge_key) for item in order]
    ours = [item for item in merged if _key_of(item, merge_key) in listed]
    theirs = [item for item in merged if _key_of(item, merge_key) not in listed]
    server = [] if old is _GONE else [_key_of(item, merge_key) for item in old]
    if merge_key and isinstance(new, list):
        server = _server_order(server, new, merge_key)
    result[name] = _normalised(ours, theirs, listed, server, merge_key)


def _server_order(server: list[Any], new: list[Any], merge_key: str) -> list[Any]:
    """The live order after deletions, as the server sees it.

    It deletes from and appends to the very array it later reads the order from: deleted places are closed
    up and the freed tail is filled with what the patch adds. The outcome is visible in the list's order.
    """
    if any(item.get(_PATCH) == "replace" for item in new):
        return server
    gone = [item.get(merge_key) for item in new if item.get(_PATCH) == "delete"]
    left = [key for key in server if key not in gone]
    added = [item.get(merge_key) for item in new if _PATCH not in item and item.get(merge_key) not in left]
    return (left + added)[: len(server)] + server[len(left) + len(added) :]


def _check_order(patch: list[Any], order: list[Any], merge_key: str) -> None:
    if not patch or not order:
        return
    wanted = [item for item in patch if not (isinstance(item, dict) and _PATCH in item)]
    keys = [_key_of(item, merge_key) for item in order]
    position = 0
    for item in wanted:
        key = _key_of(item, merge_key)
        while position < len(keys) and keys[position] != key:
            position += 1
        if position == len(keys):
            raise _failure(
                f"The order in patch list:\n{_go(patch)}\n doesn't match $setElementOrder list:\n"
                f"{_go(order)}\n"
            )
        position += 1


def _key_of(item: Any, merge_key: str) -> Any:
    if not merge_key:
        return item
    if not isinstance(item, dict):
        raise _failure(f"expected a map[string]interface {{}}, but received a {_go_type(item)}")
    if merge_key not in item:
        raise _no_key(item, merge_key)
    return item[merge_key]


def _go_type(value: Any) -> str:
    names = {str: "string", bool: "bool", int: "int64", float: "float64", list: "[]interface {}"}
    return names.get(type(value), "map[string]interface {}" if isinstance(value, dict) else "%!s(<nil>)")


def _merge_list(old: list[Any], new: list[Any], node: Node, deleting: bool) -> list[Any]:
    if _strategy(node) != "merge" and not deleting:
        return new
    if not old and not new:
        return old
    everything = [*old, *new]
    if any(isinstance(item, list) for item in everything):
        raise ApiFailure(422, "Invalid", "lists of lists are not supported", details={})
    if len({type(item) for item in everything}) > 1:
        raise _failure(f"list element types are not identical: {_go([old, new])}")
    if not isinstance(everything[0], dict):
        if deleting:
            return [item for item in old if item not in new]
        merged, merge_key = distinct(everything), ""
        live = old
    else:
        merge_key = node.merge_key
        if not merge_key:
            raise _failure("cannot merge lists without merge key for ")
        live, new = _special(old, new, merge_key)
        merged = _merge_items(live, new, merge_key, node.items or DEDUCED)
    listed = [_key_of(item, merge_key) for item in new]
    ours = [item for item in merged if _key_of(item, merge_key) in listed]
    theirs = [item for item in merged if _key_of(item, merge_key) not in listed]
    return _normalised(ours, theirs, listed, [_key_of(item, merge_key) for item in live], merge_key)


def _special(old: list[Any], new: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Carry out the items that are directives."""
    plain: list[Any] = []
    replace = False
    for item in new:
        directive = item.get(_PATCH, _GONE)
        if directive is _GONE:
            plain.append(item)
        elif directive == "delete":
            gone = _key_of(item, merge_key)
            old = [other for other in old if other.get(merge_key, _GONE) != gone]
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise _failure("merging lists cannot yet be specified in the patch")
        else:
            raise _failure(f"unknown patch type: {_go(directive)} in map: {_go(item)}")
    return (plain, []) if replace else (old, plain)


def _merge_items(old: list[Any], new: list[Any], merge_key: str, items: Node) -> list[Any]:
    merged = list(old)
    for item in new:
        key = _key_of(item, merge_key)
        for index, other in enumerate(merged):
            if other.get(merge_key, _GONE) == key:
                merged[index] = _merge_map(other, item, items)
                break
        else:
            merged.append(item)
    return merged


def _normalised(
    ours: list[Any], theirs: list[Any], patch_order: list[Any], server_order: list[Any], merge_key: str
) -> list[Any]:
    """Patched items in the patch's order, the others in the server's, interleaved by the server's."""

    def key(item: Any) -> Any:
        return _key_of(item, merge_key)

    ours = sorted(ours, key=cmp_to_key(in_order(patch_order, key)))
    theirs = sorted(theirs, key=cmp_to_key(in_order(server_order, key)))
    return interleave(theirs, ours, server_order, key)
