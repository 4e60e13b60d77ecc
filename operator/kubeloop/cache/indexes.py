"""Finding objects by something other than their key. Not thread-safe; the store's lock guards it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kubeloop.cache.codec import Candidate, Entry

OWNER = "owner"
"""Built-in index: by the uid of the controller owner."""

NAMESPACE = "namespace"
"""Built-in index: by namespace; cluster-scoped objects are under the empty string."""

_log = logging.getLogger("kubeloop.cache")

_Values = dict[str, "str | set[str]"]


class Indexes:
    """The built-in indexes and the user's. No object is ever half in an index: all values are worked out
    before the first change, and a function that raises counts as one that gave none."""

    def __init__(self) -> None:
        self._keys: dict[str, _Values] = {OWNER: {}, NAMESPACE: {}}
        self._functions: dict[str, Callable[[Any], Iterable[str]]] = {}
        self._values: dict[str, dict[str, tuple[str, ...]]] = {}  # of user indexes: what each key is under
        self.errors = 0

    def add(self, name: str, function: Callable[[Any], Iterable[str]], objects: Mapping[str, Any]) -> None:
        """A new index over all `objects`, which are those in the store. Raises ValueError if it exists."""
        if name in self._keys:
            raise ValueError(f"there is an index {name!r} already")
        values = {key: self._compute(name, function, key, item) for key, item in objects.items()}
        self._functions[name] = function
        self._values[name] = {}
        self._keys[name] = {}
        for key, given in values.items():
            self._move(name, key, given)

    def keys(self, name: str, value: str) -> list[str]:
        """The keys under a value. Raises KeyError for an unknown index."""
        found = self._keys[name].get(value, ())
        return [found] if isinstance(found, str) else list(found)

    def values(self, name: str) -> list[str]:
        """All values that have keys. Raises KeyError for an unknown index."""
        return list(self._keys[name])

    def put(self, old: Entry | None, candidate: Candidate[Any]) -> None:
        """The candidate takes the place of `old`."""
        key, new = candidate.key, candidate.entry
        computed: list[tuple[str, tuple[str, ...]]] = []
        if self._functions:
            item = candidate.object
            computed = [
                (name, self._compute(name, function, key, item)) for name, function in self._functions.items()
            ]
        if old is None:
            _insert(self._keys[NAMESPACE], key.rpartition("/")[0], key)
        if (old.owner if old else None) != new.owner:
            if old is not None and old.owner is not None:
                _discard(self._keys[OWNER], old.owner, key)
            if new.owner is not None:
                _insert(self._keys[OWNER], new.owner, key)
        for name, values in computed:
            self._move(name, key, values)

    def drop(self, key: str, old: Entry) -> None:
        """`old` is gone."""
        _discard(self._keys[NAMESPACE], key.rpartition("/")[0], key)
        if old.owner is not None:
            _discard(self._keys[OWNER], old.owner, key)
        for name in self._functions:
            self._move(name, key, ())

    def _move(self, name: str, key: str, values: tuple[str, ...]) -> None:
        before = self._values[name].get(key, ())
        if values == before:
            return
        index = self._keys[name]
        for value in before:
            _discard(index, value, key)
        for value in values:
            _insert(index, value, key)
        if values:
            self._values[name][key] = values
        else:
            del self._values[name][key]

    def _compute(
        self, name: str, function: Callable[[Any], Iterable[str]], key: str, item: Any
    ) -> tuple[str, ...]:
        try:
            return tuple(dict.fromkeys(function(item)))
        except Exception:  # noqa: BLE001 - the user's code: whatever it raises must not harm the store
            self.errors += 1
            if self.errors == 1:
                _log.exception("an index function failed", extra={"fields": {"index": name, "key": key}})
            return ()


def _insert(index: _Values, value: str, key: str) -> None:
    """Most values have one key: a set of its own for each would be most of the index's memory."""
    found = index.get(value)
    if found is None:
        index[value] = key
    elif isinstance(found, set):
        found.add(key)
    elif found != key:
        index[value] = {found, key}


def _discard(index: _Values, value: str, key: str) -> None:
    found = index.get(value)
    if isinstance(found, set):
        found.discard(key)
        if not found:
            del index[value]
    elif found == key:
        del index[value]
