"""Structural schemas, point by point. The whole of one CRD is in test_golden.py."""

from __future__ import annotations

from datetime import datetime
from enum import Enum, IntEnum
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import ValidationError

from kubeloop.model import (
    EMPTY,
    Field,
    Int32,
    Int64,
    IntOrString,
    Items,
    JsonObject,
    JsonValue,
    ListAtomic,
    ListMap,
    ListSet,
    Map,
    MapGranular,
    Model,
    OneOf,
    PreserveUnknown,
    Quantity,
    Rule,
    Timestamp,
)
from kubeloop.model.schema import structural_schema


class Small(Enum):
    """An enum."""

    A = "a"
    B = "b"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Part(Model):
    """Doc of the part."""

    name: str
    weight: int = 1


def schema_of(annotation: Any, **field: Any) -> dict[str, Any]:
    """The schema of a single field `it` of that type."""
    made = type(Model)("Made", (Model,), {"__annotations__": {"it": annotation}, "it": Field(**field)})
    schema, problems = structural_schema(made)
    assert problems == []
    found: dict[str, Any] = schema["properties"]["it"]
    return found


def problems_of(annotation: Any, **field: Any) -> list[str]:
    made = type(Model)("Made", (Model,), {"__annotations__": {"it": annotation}, "it": Field(**field)})
    return structural_schema(made)[1]


INT_OR_STRING = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (float, {"type": "number"}),
        (int, {"type": "integer"}),
        (Int32, {"type": "integer", "format": "int32"}),
        (Int64 | None, {"type": "integer", "format": "int64", "nullable": True}),
        (datetime, {"type": "string", "format": "date-time"}),
        (Timestamp | None, {"type": "string", "format": "date-time", "nullable": True}),
        (Small, {"description": "An enum.", "type": "string", "enum": ["a", "b"]}),
        (Small | None, {"description": "An enum.", "type": "string", "nullable": True, "enum": ["a", "b"]}),
        (Literal["x"], {"type": "string", "enum": ["x"]}),
        (Literal["x", "y"] | None, {"type": "string", "nullable": True, "enum": ["x", "y"]}),
        (Literal["x", None], {"type": "string", "nullable": True, "enum": ["x"]}),
        (Literal["x"] | Literal["y"], {"type": "string", "enum": ["x", "y"]}),
        (Level, {"type": "integer", "enum": [1, 2]}),
        (int | str, INT_OR_STRING),
        (IntOrString | None, {"nullable": True, **INT_OR_STRING}),
        (Items[str], {"type": "array", "items": {"type": "string"}}),
        (Items[str] | None, {"type": "array", "nullable": True, "items": {"type": "string"}}),
        (frozenset[str], {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        (Map[int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Map[Items[str]], {
            "type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}},
        }),
        (JsonObject, {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        (Map[JsonValue], {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        (JsonValue, {"x-kubernetes-preserve-unknown-fields": True}),
        (Annotated[Items[str], ListSet()], {
            "type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set",
        }),
        (Annotated[Items[str], ListAtomic()], {
            "type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic",
        }),
        (Annotated[Map[str], MapGranular()], {
            "type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "granular",
        }),
        (Annotated[int, Rule("self > 0")], {
            "type": "integer", "x-kubernetes-validations": [{"rule": "self > 0"}],
        }),
        (Annotated[int | None, Rule("self > 0"), Rule("self < 9", "m")], {
            "type": "integer", "nullable": True,
            "x-kubernetes-validations": [{"rule": "self > 0"}, {"rule": "self < 9", "message": "m"}],
        }),
    ],
)  # fmt: skip
def test_each_type_has_its_structural_form(annotation: Any, expected: dict[str, Any]) -> None:
    assert schema_of(annotation) == expected


@pytest.mark.parametrize(
    ("annotation", "field", "expected"),
    [
        (Int32, {"default": 1, "ge": 0}, {"default": 1, "minimum": 0}),
        (Int32 | None, {"default": None, "ge": 1, "le": 9}, {"nullable": True, "minimum": 1, "maximum": 9}),
        (float, {"gt": 0, "lt": 2}, {
            "minimum": 0, "exclusiveMinimum": True, "maximum": 2, "exclusiveMaximum": True,
        }),
        (str | None, {"default": None, "min_length": 1, "max_length": 3, "pattern": "^a"}, {
            "nullable": True, "minLength": 1, "maxLength": 3, "pattern": "^a",
        }),
        (Items[str], {"default": (), "min_length": 1, "max_length": 3}, {"minItems": 1, "maxItems": 3}),
        (Map[str], {"default": EMPTY, "min_length": 1, "max_length": 3}, {
            "minProperties": 1, "maxProperties": 3,
        }),
        (Small, {"default": Small.B}, {"default": "b"}),
        (str, {"description": "Said."}, {"description": "Said."}),
        (str, {"examples": ["a"], "title": "T", "deprecated": True}, {}),
        (Part, {"default": Part(name="x"), "description": "Said."}, {
            "description": "Said.", "default": {"name": "x", "weight": 1},
        }),
    ],
)  # fmt: skip
def test_bounds_and_defaults_are_kept_and_empty_ones_dropped(
    annotation: Any, field: dict[str, Any], expected: dict[str, Any]
) -> None:
    bare = {"type", "format", "items", "additionalProperties", "properties", "required", "enum"}
    if expected.get("description") is None:
        bare.add("description")
    assert {
        key: value for key, value in schema_of(annotation, **field).items() if key not in bare
    } == expected


def test_a_user_bound_wins_over_that_of_the_integer_format() -> None:
    class Bounded(Model):
        it: Int32 = Field(default=1, ge=0)

    for bad in (-1, 2**31):
        with pytest.raises(ValidationError):
            Bounded(it=bad)


def test_references_are_inlined_and_the_field_describes_better_than_its_type() -> None:
    class Whole(Model):
        one: Part
        two: Part = Field(description="The second.")

    properties = structural_schema(Whole)[0]["properties"]
    assert properties["one"]["description"] == "Doc of the part."
    assert properties["two"]["description"] == "The second."
    assert "$ref" not in str(properties)


def test_docstrings_of_class_and_attributes_become_descriptions() -> None:
    """R0.2."""

    class Documented(Model):
        """All of it."""

        one: str
        """First
        line."""
        two: str = Field(default="", description="By field.")
        """By docstring."""

    class Heir(Documented):
        three: int = 0
        """Third."""

    schema = structural_schema(Heir)[0]
    assert structural_schema(Documented)[0]["description"] == "All of it."
    assert [schema["properties"][name]["description"] for name in ("one", "two", "three")] == [
        "First\nline.",
        "By field.",
        "Third.",
    ]


def test_properties_stand_in_the_order_of_declaration() -> None:
    class Ordered(Model):
        zebra: str = Field(default="")
        apple: str
        mango: Part | None = None

    schema = structural_schema(Ordered)[0]
    assert list(schema["properties"]) == ["zebra", "apple", "mango"]
    assert schema["required"] == ["apple"]


class Left(Model):
    kind: Literal["left"]
    only_left: str
    both: int = 1


class Right(Model):
    kind: Literal["right"]
    only_right: int = 5
    both: int = 1


def test_a_tagged_union_hoists_its_properties() -> None:
    schema = schema_of(Annotated[Left | Right, Field(discriminator="kind")])

    assert schema == {
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": ["left", "right"]},
            "onlyLeft": {"type": "string"},
            "both": {"type": "integer", "default": 1},
            # no default: the server would give it to a left one, too
            "onlyRight": {"type": "integer"},
        },
        "oneOf": [
            {"properties": {"kind": {"enum": ["left"]}}, "required": ["kind", "onlyLeft"]},
            {"properties": {"kind": {"enum": ["right"]}}, "required": ["kind"]},
        ],
    }


def test_an_untagged_union_hoists_into_any_of() -> None:
    class A(Model):
        a: str

    class B(Model):
        b: str

    assert schema_of(A | B | None) == {
        "type": "object",
        "nullable": True,
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }


def test_members_that_disagree_about_a_property_are_a_problem() -> None:
    class A(Model):
        same: str

    class B(Model):
        same: int

    assert problems_of(A | B) == ["it: property 'same' differs between the members of the union"]


class Choice(OneOf):
    """Doc of the choice."""

    one: Part | None = None
    """Doc of one."""
    other_way: str | None = None


def test_a_one_of_requires_exactly_one_key() -> None:
    schema = structural_schema(Choice)[0]

    assert schema["oneOf"] == [{"required": ["one"]}, {"required": ["otherWay"]}]
    assert schema["properties"]["otherWay"] == {"type": "string"}
    assert schema["properties"]["one"]["description"] == "Doc of one."
    assert "nullable" not in schema["properties"]["one"]
    assert Choice(other_way="x").which == "other_way"
    for bad in ({}, {"one": {"name": "a"}, "otherWay": "x"}, {"one": None}):
        with pytest.raises(ValidationError, match="exactly one of one, otherWay"):
            Choice.model_validate(bad)


def test_rules_of_a_class_stand_at_its_object() -> None:
    class Ruled(Model):
        rules: ClassVar = (
            "self.a > 0",
            ("self.a < 9", "too much"),
            Rule(
                "self.a != oldSelf.a",
                message_expression="'x'",
                field_path=".a",
                reason="FieldValueForbidden",
                optional_old_self=True,
            ),
        )
        a: int

    assert structural_schema(Ruled)[0]["x-kubernetes-validations"] == [
        {"rule": "self.a > 0"},
        {"rule": "self.a < 9", "message": "too much"},
        {
            "rule": "self.a != oldSelf.a",
            "messageExpression": "'x'",
            "fieldPath": ".a",
            "reason": "FieldValueForbidden",
            "optionalOldSelf": True,
        },
    ]


def test_preserved_fields_stand_beside_known_ones() -> None:
    schema = schema_of(Annotated[Part, PreserveUnknown()])

    assert schema["x-kubernetes-preserve-unknown-fields"] is True
    assert set(schema["properties"]) == {"name", "weight"}


class Node(Model):
    children: Items[Node] = ()


@pytest.mark.parametrize(
    ("annotation", "part"),
    [
        (Node, "Node contains itself"),
        (str | bool, "a union of string | boolean has no structural schema"),
        (tuple[int, str], "a tuple of fixed length"),
        (None, "a field that is always None"),
        (Literal["a", 1], "must all be strings or all be numbers"),
        (Annotated[float, Field(multiple_of=0.5)], "can check whole factors only"),
        (Annotated[Items[Part], ListMap("nope")], "no field 'nope'"),
        (Annotated[Items[Small], ListMap("a")], "no field 'a'"),
        (Annotated[Items[Part], ListSet()], "must be scalars or atomic"),
    ],
)
def test_what_has_no_structural_schema_is_a_problem_at_its_path(annotation: Any, part: str) -> None:
    problems = problems_of(annotation)

    assert any(problem.startswith("it") and part in problem for problem in problems), problems


def test_a_key_of_a_list_map_must_be_there_in_every_item() -> None:
    class Keyed(Model):
        key: str | None = None

    assert problems_of(Annotated[Items[Keyed], ListMap("key")]) == [
        "it: the key 'key' of its items must be required or have a default"
    ]


def test_a_quantity_is_a_number_or_a_string_of_its_pattern() -> None:
    schema = schema_of(Map[Quantity])["additionalProperties"]

    assert schema["x-kubernetes-int-or-string"] is True
    assert schema["anyOf"] == INT_OR_STRING["anyOf"]
    assert schema["pattern"].startswith("^")
