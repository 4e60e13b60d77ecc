"""Numbers as storage has them.

What was written with a point but is whole comes back as an integer, what no int64 holds as a float.
"""

from __future__ import annotations

import re
from typing import Any

from kubeloop.sandbox.pipeline.backend import Call
from kubeloop.sandbox.registry import Object

_ODD = re.compile(rb"\d(?:\.\d|[eE][+-]?\d)|\d{19}")
_INT64 = 2**63


def as_stored(call: Call, obj: Object) -> Object:
    """`obj` after its way through JSON, as Go writes and reads it (3.0 is written ``3``)."""
    # Only what the client wrote can be one of these; nearly no request holds any.
    return _whole(obj) if _ODD.search(call.request.body) else obj


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < _INT64:
        return int(value)
    if isinstance(value, int) and abs(value) >= _INT64:
        return float(value)
    return value
