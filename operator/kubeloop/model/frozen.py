"""Immutable containers, and the field types that decode into them.

`Map[V]` and `Items[T]` are what a model writes where JSON has an object with free keys or a list. Both read
null as empty, because servers and old clients do send `labels: null`. `RawJson` keeps a subtree that is
rarely looked at as compact bytes: a tenth of the memory of the dicts and impossible to change by accident.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema, from_json, to_json

K = TypeVar("K")
V = TypeVar("V")


class FrozenDict(dict[K, V]):
    """A dict whose mutating methods raise TypeError; it reads, compares and serialises like any dict."""

    __slots__ = ()

    def _refuse(self, *_args: object, **_kwargs: object) -> NoReturn:
        raise TypeError("this mapping is shared and cannot be changed; make a copy with dict(...)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __copy__(self) -> FrozenDict[K, V]:
        return self

    def __deepcopy__(self, _memo: object) -> FrozenDict[K, V]:
        return self  # values are frozen too

    def __reduce__(self) -> tuple[object, ...]:
        return FrozenDict, (dict(self),)


EMPTY: FrozenDict[str, Any] = FrozenDict()
"""The one empty map that all models share."""


def freeze(value: Any) -> Any:
    """A deeply immutable copy of a JSON value: dicts become FrozenDicts, lists become tuples."""
    if isinstance(value, Mapping):
        return FrozenDict({key: freeze(item) for key, item in value.items()}) if value else EMPTY
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return value


def thaw(value: Any) -> Any:
    """A plain, mutable copy of a frozen JSON value, as `json.loads` would have given it."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [thaw(item) for item in value]
    if isinstance(value, RawJson):
        return value.value()
    return value


def _freeze_map(value: dict[str, Any] | None) -> FrozenDict[str, Any]:
    return FrozenDict(value) if value else EMPTY


def _tuple_or_empty(value: tuple[Any, ...] | None) -> tuple[Any, ...]:
    return value or ()


class _AsMap:
    """Makes `Mapping[str, V]` decode into a FrozenDict, and null into the empty one."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        # A nullable schema and one small function, not a union: the error then points at the very key.
        return core_schema.no_info_after_validator_function(
            _freeze_map, core_schema.nullable_schema(handler(source))
        )

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return handler(schema["schema"]["schema"])  # null is read, but not advertised


class _AsItems:
    """Makes null decode into the empty tuple."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            _tuple_or_empty, core_schema.nullable_schema(handler(source))
        )

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return handler(schema["schema"]["schema"])  # null is read, but not advertised


Map = Annotated[Mapping[str, V], _AsMap()]
"""A JSON object with free keys: `labels: Map[str] = EMPTY`. Immutable; null reads as empty."""

Items = Annotated[tuple[V, ...], _AsItems()]
"""A JSON list: `args: Items[str] = ()`. Immutable; null reads as empty."""


class RawJson(bytes):
    """A JSON object kept as compact UTF-8 bytes; `value()` gives a fresh dict that the caller may change."""

    __slots__ = ()

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> RawJson:
        """The bytes of a JSON object given as a mapping."""
        return cls(to_json(value))

    def value(self) -> dict[str, Any]:
        """The object, parsed anew at each call."""
        parsed: dict[str, Any] = from_json(self)
        return parsed

    def __repr__(self) -> str:
        return f"RawJson({json.dumps(self.value(), ensure_ascii=False)})"

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        def encode(value: Any) -> RawJson:
            return cls(to_json(value)) if value else cls(b"{}")

        decoded = core_schema.no_info_after_validator_function(
            encode, core_schema.nullable_schema(core_schema.dict_schema(core_schema.str_schema()))
        )
        return core_schema.json_or_python_schema(
            json_schema=decoded,
            python_schema=core_schema.union_schema([core_schema.is_instance_schema(cls), decoded]),
        )


class Frozen:
    """Makes free-form JSON decode into its deeply immutable form."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(freeze, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return handler(schema["schema"])


JsonObject = Annotated[Mapping[str, Any], Frozen()]
"""A JSON object of unknown shape, kept whole by the server and deeply immutable here."""

JsonValue = Annotated[Any, Frozen()]
"""Any JSON value at all, kept whole by the server and deeply immutable here."""
