"""Which fields a manifest has, whatever their values.

By default the server looks through each apply twice for fields that it does not know, to warn of them: a
fifth of what an apply costs it. Whether it knows a field does not depend on its value, so once for each set
of fields is enough: a typing error in a manifest is still warned of, when it is first sent.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

LIMIT = 4096
"""Shapes remembered. A builder makes a handful; one that makes up field names gets no discount."""


def shape_of(value: Any) -> Hashable:
    """The names in a JSON value: equal for equal fields in the same order, however many items lists have."""
    if isinstance(value, Mapping):
        return tuple((key, shape_of(item)) for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return frozenset(shape_of(item) for item in value)
    return None


class KnownShapes:
    """The shapes that were sent with success. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _known
        self._known: set[int] = set()  # hashes: one that is taken for another only loses a warning

    def __contains__(self, manifest: Mapping[str, Any]) -> bool:
        return hash(shape_of(manifest)) in self._known

    def add(self, manifest: Mapping[str, Any]) -> None:
        """The server has taken `manifest`, and has said what it had to say of its fields."""
        with self._lock:
            if len(self._known) >= LIMIT:
                self._known.clear()
            self._known.add(hash(shape_of(manifest)))
