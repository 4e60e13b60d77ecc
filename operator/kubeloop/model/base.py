"""`Model`: the base of every typed piece of a Kubernetes object.

A model class is written like a pydantic one, and validates like one. Underneath it is a *slotted* pydantic
dataclass, not a BaseModel: a BaseModel instance carries a `__dict__` and a set of its field names, which came
to 6.4 KB for a Deployment's metadata and status where slots need 1 KB. An operator keeps tens of thousands of
them.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Hashable, Iterator, Mapping
from datetime import timedelta
from enum import Enum
from functools import cache
from types import CellType, FunctionType
from typing import Annotated, Any, Self, dataclass_transform, get_args, get_origin

import pydantic.dataclasses
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import to_jsonable_python

from kubeloop.model.duration import format_duration
from kubeloop.model.frozen import Frozen, RawJson, thaw
from kubeloop.model.problems import DefinitionError

__all__ = ["Field", "Model", "to_json_value"]

_IMMUTABLE_INSTEAD: dict[Any, str] = {
    list: "write Items[T] instead of list",
    dict: "write Map[V] instead of dict",
    set: "write frozenset instead of set",
    Any: "write JsonValue or JsonObject instead of Any",
}

_CONFIG = ConfigDict(
    alias_generator=to_camel,
    validate_by_name=True,
    validate_by_alias=True,
    extra="ignore",
    arbitrary_types_allowed=False,
)


def _repair_super(namespace: dict[str, Any], old: type, new: type) -> None:
    """Let a zero-argument `super()` find the class that `slots=True` put in place of the first one.

    All methods of a class share one `__class__` cell, so the first one found settles it. (Python 3.14 does
    this by itself.)
    """
    for member in namespace.values():
        function = getattr(member, "__func__", getattr(member, "fget", member))
        if not isinstance(function, FunctionType) or "__class__" not in function.__code__.co_freevars:
            continue
        cell: CellType = (function.__closure__ or ())[function.__code__.co_freevars.index("__class__")]
        if cell.cell_contents is old:
            cell.cell_contents = new
            return


def _mutable_fields(cls: Any) -> Iterator[str]:
    """The own fields that could hold a mutable container, which a shared object must not."""
    for name in inspect.get_annotations(cls):
        info = cls.__pydantic_fields__.get(name)
        if info is None or any(isinstance(marker, Frozen) for marker in info.metadata):
            continue
        for found in _mutable_types(info.annotation):
            yield f"{name}: {_IMMUTABLE_INSTEAD[found]}, since objects are shared between threads"


def _mutable_types(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation) or annotation
    if isinstance(origin, Hashable) and origin in _IMMUTABLE_INSTEAD:
        yield origin
    elif origin is Annotated and any(isinstance(marker, Frozen) for marker in annotation.__metadata__):
        return
    else:
        for argument in get_args(annotation):
            yield from _mutable_types(argument)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(Field, dataclasses.field))
class ModelMeta(type):
    """Turns each subclass of `Model` into a frozen, slotted, keyword-only pydantic dataclass."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **kwargs: Any) -> Any:
        cls = super().__new__(mcs, name, bases, namespace, **kwargs)
        if "__slots__" in namespace:
            return cls  # the second pass: `slots=True` builds the class anew through this metaclass
        decorate: Any = pydantic.dataclasses.dataclass(frozen=True, slots=True, kw_only=True, config=_CONFIG)
        made = decorate(cls)
        _repair_super(namespace, cls, made)
        if problems := list(_mutable_fields(made)):
            raise DefinitionError(name, problems)
        return made


class Model(metaclass=ModelMeta):
    """An immutable value with declared fields: `snake_case` here, `camelCase` on the wire, unknown keys
    ignored.

    Fields take pydantic's `Field(default=..., ge=..., description=...)`. Containers are `Items[T]` and
    `Map[V]`.
    """

    @classmethod
    def model_validate_json(cls, data: bytes | str) -> Self:
        """Decode JSON text. Raises `pydantic.ValidationError` naming each bad field."""
        value: Self = cls.__pydantic_validator__.validate_json(data, by_alias=True, by_name=False)  # type: ignore[attr-defined]
        return value

    @classmethod
    def model_validate(cls, data: Mapping[str, Any] | Self) -> Self:
        """Decode a JSON object given as a mapping. Raises `pydantic.ValidationError` for bad fields."""
        value: Self = cls.__pydantic_validator__.validate_python(data)  # type: ignore[attr-defined]
        return value

    def to_wire(self) -> dict[str, Any]:
        """The JSON object to send: camelCase, without None and without containers that are empty by default.

        Scalars that equal their default stay in: an apply owns what it says, and a reader of a status should
        see `ready: false`.
        """
        wire: dict[str, Any] = {}
        for attribute, alias, droppable in _wire_fields(type(self)):
            value = getattr(self, attribute)
            if value is None or (droppable and not value):
                continue
            wire[alias] = to_json_value(value)
        return wire

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed; the changes are validated."""
        return dataclasses.replace(self, **changes)


_PLAIN = frozenset((str, int, float, bool, type(None)))


def to_json_value(value: Any) -> Any:
    """The JSON form of any value that a model's field can have."""
    if value.__class__ in _PLAIN:
        return value
    if isinstance(value, Model):
        return value.to_wire()
    if isinstance(value, tuple | list):
        return [to_json_value(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): to_json_value(item) for key, item in value.items()}
    if isinstance(value, RawJson):
        return thaw(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, str):
        return str(value)  # a Quantity is a str of its own kind
    return to_jsonable_python(value)


@cache
def _wire_fields(cls: type[Model]) -> tuple[tuple[str, str, bool], ...]:
    """(attribute, wire name, leave out when empty) of each field."""
    fields: dict[str, Any] = cls.__pydantic_fields__  # type: ignore[attr-defined]
    return tuple(
        (
            name,
            info.serialization_alias or info.alias or name,
            not info.is_required() and info.get_default() is not None and not _is_scalar(info.get_default()),
        )
        for name, info in fields.items()
        if not info.exclude
    )


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int | float | Enum) and not isinstance(value, RawJson)
