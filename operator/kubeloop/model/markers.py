"""What a field says beyond its type: how server-side apply merges it, and CEL rules it must obey.

All are used inside `Annotated`: `ports: Annotated[Items[Port], ListMap("containerPort")] = ()`. They change
the CRD and nothing else; the rules are data here, and evaluated by the server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import GetJsonSchemaHandler


class _Extension:
    """A marker that adds `x-kubernetes-*` keys to the schema of the annotated type."""

    def extension(self) -> dict[str, Any]:
        """The keys to add."""
        raise NotImplementedError

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), **self.extension()}


@dataclass(frozen=True)
class ListAtomic(_Extension):
    """Appliers replace the list as a whole (what Kubernetes does when nothing is said)."""

    def extension(self) -> dict[str, Any]:
        return {"x-kubernetes-list-type": "atomic"}


@dataclass(frozen=True)
class ListSet(_Extension):
    """A list of scalars without duplicates; each item has its own owner."""

    def extension(self) -> dict[str, Any]:
        return {"x-kubernetes-list-type": "set"}


@dataclass(frozen=True, init=False)
class ListMap(_Extension):
    """A list of objects that are told apart by some of their fields, given in wire spelling."""

    keys: tuple[str, ...]

    def __init__(self, *keys: str) -> None:
        object.__setattr__(self, "keys", keys)

    def extension(self) -> dict[str, Any]:
        return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(self.keys)}


@dataclass(frozen=True)
class MapAtomic(_Extension):
    """Appliers replace the map or object as a whole."""

    def extension(self) -> dict[str, Any]:
        return {"x-kubernetes-map-type": "atomic"}


@dataclass(frozen=True)
class MapGranular(_Extension):
    """Each key has its own owner (what Kubernetes does when nothing is said)."""

    def extension(self) -> dict[str, Any]:
        return {"x-kubernetes-map-type": "granular"}


@dataclass(frozen=True)
class PreserveUnknown(_Extension):
    """The server keeps fields that the schema does not know instead of pruning them."""

    def extension(self) -> dict[str, Any]:
        return {"x-kubernetes-preserve-unknown-fields": True}


@dataclass(frozen=True)
class EmbeddedObject(_Extension):
    """The value is a whole Kubernetes object with apiVersion, kind and metadata, which the server checks."""

    def extension(self) -> dict[str, Any]:
        return {"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}


RuleReason = Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"]


@dataclass(frozen=True)
class Rule:
    """A CEL expression that must be true of the value `self` (and `oldSelf`, for changes).

    `message` or `message_expression` (CEL giving a string) says what is wrong. `field_path` points the error
    at a child. The server prices each rule and refuses a CRD whose rules could become too dear: bound lists
    and strings.
    """

    KEY: ClassVar[str] = "x-kubernetes-validations"

    rule: str
    message: str | None = None
    message_expression: str | None = None
    field_path: str | None = None
    reason: RuleReason | None = None
    optional_old_self: bool | None = None

    @classmethod
    def of(cls, rule: Rule | str | tuple[str, str]) -> Rule:
        """A rule from its short forms: the expression, or the expression and the message."""
        if isinstance(rule, Rule):
            return rule
        return cls(rule) if isinstance(rule, str) else cls(*rule)

    def to_wire(self) -> dict[str, Any]:
        """The entry of `x-kubernetes-validations`; what was not given is absent."""
        entry = {
            "rule": self.rule,
            "message": self.message,
            "messageExpression": self.message_expression,
            "fieldPath": self.field_path,
            "reason": self.reason,
            "optionalOldSelf": self.optional_old_self,
        }
        return {key: value for key, value in entry.items() if value is not None}

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        inner = handler(schema)
        return {**inner, self.KEY: [*inner.get(self.KEY, []), self.to_wire()]}
