"""Validation of custom resources: causes and texts of the real server."""

from __future__ import annotations

from typing import Any

import pytest

from kubeloop.sandbox.schema import CustomSchema
from kubeloop.sandbox.schema.causes import go_float


def schema(**properties: Any) -> CustomSchema:
    spec = {"type": "object", "properties": properties}
    return CustomSchema("Thing", "example.com/v1", {"type": "object", "properties": {"spec": spec}})


def causes(definition: dict[str, Any], value: Any) -> list[tuple[str, str, str]]:
    body = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"f": value}}
    return [(c.reason, c.field, c.message) for c in schema(f=definition).validate(body)]


INVALID, TYPE = "FieldValueInvalid", "FieldValueTypeInvalid"


@pytest.mark.parametrize(
    ("definition", "value", "reason", "message"),
    [
        (
            {"type": "integer", "minimum": 0},
            -1,
            INVALID,
            "Invalid value: -1: spec.f in body should be greater than or equal to 0",
        ),
        (
            {"type": "integer", "maximum": 3, "exclusiveMaximum": True},
            3,
            INVALID,
            "Invalid value: 3: spec.f in body should be less than 3",
        ),
        (
            {"type": "integer"},
            "x",
            TYPE,
            'Invalid value: "string": spec.f in body must be of type integer: "string"',
        ),
        (
            {"type": "string"},
            None,
            TYPE,
            'Invalid value: "null": spec.f in body must be of type string: "null"',
        ),
        (
            {"type": "string", "minLength": 1},
            "",
            INVALID,
            'Invalid value: "": spec.f in body should be at least 1 chars long',
        ),
        (
            {"type": "string", "maxLength": 1},
            "ab",
            "FieldValueTooLong",
            "Too long: may not be more than 1 byte",
        ),
        (
            {"type": "string", "pattern": "^a$"},
            "b",
            INVALID,
            "Invalid value: \"b\": spec.f in body should match '^a$'",
        ),
        (
            {"type": "string", "enum": ["a", "b"]},
            "c",
            "FieldValueNotSupported",
            'Unsupported value: "c": supported values: "a", "b"',
        ),
        (
            {"type": "string", "format": "date-time"},
            "x",
            TYPE,
            'Invalid value: "x": spec.f in body must be of type date-time: "x"',
        ),
        (
            {"type": "array", "items": {"type": "string"}, "maxItems": 1},
            ["a", "b"],
            "FieldValueTooMany",
            "Too many: 2: must have at most 1 item",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
            [],
            INVALID,
            "Invalid value: 0: spec.f in body should have at least 1 items",
        ),
        (
            {"type": "number", "multipleOf": 0.5},
            0.7,
            INVALID,
            "Invalid value: 0.7: spec.f in body should be a multiple of 0.5",
        ),
    ],
)
def test_a_value_that_breaks_its_schema(definition: Any, value: Any, reason: str, message: str) -> None:
    assert causes(definition, value) == [(reason, "spec.f", message)]


def test_a_missing_required_field() -> None:
    definition = {"type": "object", "required": ["x"], "properties": {"x": {"type": "string"}}}
    assert causes(definition, {}) == [("FieldValueRequired", "spec.f.x", "Required value")]


def test_int_or_string_takes_both_and_nothing_else() -> None:
    definition = {"x-kubernetes-int-or-string": True}
    assert causes(definition, 1) == causes(definition, "50%") == []
    (found,) = causes(definition, True)
    assert found[2] == 'Invalid value: "boolean": spec.f in body must be of type integer,string: "boolean"'


def test_an_integer_beyond_its_format_belongs_to_no_field() -> None:
    (found,) = causes({"type": "integer", "format": "int32"}, 2**31)
    text = "Checked value must be of type integer with format int32 in spec.f"
    assert found == (INVALID, "<nil>", f'Invalid value: "": {text}')


def test_one_of_any_of_all_of_and_not() -> None:
    one = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    }
    assert causes(one, {"a": "x"}) == []
    both = causes(one, {"a": "x", "b": "y"})
    assert (
        both[0][2] == 'Invalid value: "": "spec.f" must validate one and only one schema (oneOf). '
        "Found 2 valid alternatives"
    )
    none = causes(one, {})
    assert none[0][2].endswith("(oneOf). Found none valid")
    any_of = {"type": "string", "anyOf": [{"minLength": 5}, {"pattern": "^x"}]}
    assert causes(any_of, "xy") == []
    assert causes(any_of, "y")[0][2].endswith("must validate at least one schema (anyOf)")
    all_of = {"type": "string", "allOf": [{"minLength": 2}, {"pattern": "^x"}]}
    assert causes(all_of, "x")[-1][2].endswith("must validate all the schemas (allOf)")
    negative = {"type": "string", "not": {"pattern": "^x"}}
    assert causes(negative, "x")[0][2].endswith("must not validate the schema (not)")


def test_duplicates_in_sets_and_maps() -> None:
    items = {"type": "object", "properties": {"n": {"type": "string"}}}
    keyed = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["n"],
        "items": items,
    }
    assert causes(keyed, [{"n": "a"}, {"n": "a"}, {"n": "a"}]) == [
        ("FieldValueDuplicate", "spec.f[1]", 'Duplicate value: {"n":"a"}')
    ]
    plain = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
    assert causes(plain, ["a", "b", "a"]) == [("FieldValueDuplicate", "spec.f[2]", 'Duplicate value: "a"')]


def test_what_was_wrong_before_and_is_unchanged_is_forgiven() -> None:
    things = schema(f={"type": "integer", "minimum": 5}, g={"type": "integer", "maximum": 1})
    old = {"metadata": {"name": "a"}, "spec": {"f": 1, "g": 0}}
    assert things.validate({**old, "spec": {"f": 1, "g": 1}}, old) == []
    (cause,) = things.validate({**old, "spec": {"f": 2, "g": 0}}, old)
    assert cause.field == "spec.f"


def test_a_status_is_validated_by_itself() -> None:
    status = {"type": "object", "properties": {"n": {"type": "integer"}}}
    things = CustomSchema("T", "example.com/v1", {"type": "object", "properties": {"status": status}})
    (cause,) = things.validate_status({"metadata": {}, "status": {"n": "x"}}, {"metadata": {}})
    assert cause.field == "status.n"
    assert cause.message == 'Invalid value: "string": n in body must be of type integer: "string"'


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.5, "0.5"),
        (3.0, "3"),
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (0.00001, "1e-05"),
        (-2.5, "-2.5"),
    ],
)
def test_floats_as_go_prints_them(number: float, text: str) -> None:
    assert go_float(number) == text
