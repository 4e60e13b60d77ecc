"""JSON merge patch (RFC 7396), as the server's library applies it."""

from __future__ import annotations

from typing import Any

from kubeloop.sandbox.status import bad_request


def merge_patch(doc: dict[str, Any], patch: Any) -> dict[str, Any]:
    """`doc` with `patch` merged in. Raises ApiFailure 400 when `patch` is not an object."""
    if not isinstance(patch, dict):
        if patch is None:
            raise bad_request("Invalid JSON Patch")
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {json_kind(patch)} into Go value of type "
            "map[string]interface {}"
        )
    return _merge(doc, patch)


def json_kind(value: Any) -> str:
    """What Go's JSON decoder calls a value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def _merge(doc: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    result = dict(doc)
    for key, value in patch.items():
        old = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(old, dict):
            result[key] = _merge(old, value)
        elif isinstance(value, list) and isinstance(old, dict):
            result[key] = value
        else:
            result[key] = _without_nulls(value)
    return result


def _without_nulls(value: Any) -> Any:
    """A value that is put in as a whole: nulls in its objects mean "absent"; in its lists they stay."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
