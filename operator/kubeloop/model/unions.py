"""Unions in structural schemas: all properties stand in the parent, the branches only say which go together.

Kubernetes wants every field declared once, outside of `oneOf` and `anyOf`; inside them only constraints may
stand (no type, no description, no default). So the branches' properties are hoisted. A property that occurs
in several branches must look the same in each; only the tag, an enum, may differ, and becomes the enum of all
tags.
"""

from __future__ import annotations

from typing import Any, Literal

from kubeloop.model.base import Model

Schema = dict[str, Any]


class UnionError(ValueError):
    """A union that has no structural schema; the text says why."""


def hoist(kind: Literal["oneOf", "anyOf"], branches: list[Schema]) -> Schema:
    """The parent schema of a union of objects, whose branches are already structural.

    Raises UnionError if a property differs between branches.
    """
    names = list(dict.fromkeys(name for branch in branches for name in branch.get("properties", {})))
    properties: dict[str, Schema] = {}
    tags: set[str] = set()
    for name in names:
        seen = [branch["properties"][name] for branch in branches if name in branch.get("properties", {})]
        properties[name], is_tag = _merge_property(name, seen, everywhere=len(seen) == len(branches))
        if is_tag:
            tags.add(name)
    constraints = [_constraint(branch, tags) for branch in branches]
    return {"type": "object", "properties": properties, kind: constraints}


def _merge_property(name: str, seen: list[Schema], *, everywhere: bool) -> tuple[Schema, bool]:
    """The one schema of a property, and whether it is the tag of the union."""
    first = seen[0]
    if all("enum" in schema for schema in seen):
        bare = [{key: value for key, value in schema.items() if key != "enum"} for schema in seen]
        if all(schema == bare[0] for schema in bare):
            values = list(dict.fromkeys(value for schema in seen for value in schema["enum"]))
            return {**first, "enum": values}, any(schema["enum"] != values for schema in seen)
    if any(schema != first for schema in seen):
        raise UnionError(f"property {name!r} differs between the members of the union")
    if not everywhere:
        # The server would add the default to members that have no such property.
        first = {key: value for key, value in first.items() if key != "default"}
    return first, False


def _constraint(branch: Schema, tags: set[str]) -> Schema:
    constraint: Schema = {}
    tagged = {
        name: {"enum": schema["enum"]}
        for name, schema in branch.get("properties", {}).items()
        if name in tags
    }
    if tagged:
        constraint["properties"] = tagged
    if branch.get("required"):
        constraint["required"] = branch["required"]
    for key in ("oneOf", "anyOf"):
        if key in branch:
            constraint[key] = branch[key]
    return constraint


class OneOf(Model):
    """A union whose member is told by its key: exactly one of the fields is given.

    Each field of a subclass is written `name: Type | None = None`. The CRD requires one of them, and so does
    construction (`pydantic.ValidationError`).
    """

    def __post_init__(self) -> None:
        names: list[str] = [alias for _, alias in self._members()]
        given = [alias for name, alias in self._members() if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"exactly one of {', '.join(names)} must be given, not {len(given)}")

    @classmethod
    def _members(cls) -> list[tuple[str, str]]:
        fields: dict[str, Any] = cls.__pydantic_fields__  # type: ignore[attr-defined]
        return [(name, info.alias or name) for name, info in fields.items()]

    @property
    def which(self) -> str:
        """The Python name of the field that is given."""
        return next(name for name, _ in self._members() if getattr(self, name) is not None)
