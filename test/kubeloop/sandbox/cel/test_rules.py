"""Validation rules over objects. What the real server answers is in the corpus (crds/cel-*)."""

from __future__ import annotations

from typing import Any

import pytest

from kubeloop.sandbox.cel import uses_rules
from kubeloop.sandbox.cel.compiling import Checker
from kubeloop.sandbox.cel.rules import Rules, compile_rules, evaluate
from kubeloop.sandbox.cel.types import TypeBook
from kubeloop.sandbox.status import ApiFailure

INTEGER = {"type": "integer"}


def rules(schema: dict[str, Any]) -> Rules:
    made = compile_rules(schema, root=False)
    assert made is not None
    return made


def checker(**properties: Any) -> Checker:
    book = TypeBook()
    return Checker(book, book.type_of({"type": "object", "properties": properties}))


def test_a_schema_without_rules_compiles_to_nothing() -> None:
    assert compile_rules({"type": "object", "properties": {"n": INTEGER}}) is None


def test_rules_are_found_below_a_property_of_any_name() -> None:
    ruled = {"type": "string", "x-kubernetes-validations": [{"rule": "self != ''"}]}
    schema = {"type": "object", "properties": {"default": {"type": "array", "items": ruled}}}
    assert uses_rules(schema)
    assert evaluate(rules(schema), {"default": ["", "x"]})[0].field == "default[0]"
    assert not uses_rules({"type": "object", "default": {"x-kubernetes-validations": [1]}})


def test_unchanged_values_are_forgiven_but_not_in_transition_rules() -> None:
    both = [{"rule": "self > 5"}, {"rule": "self != oldSelf", "message": "has to change"}]
    compiled = rules({"type": "integer", "x-kubernetes-validations": both})
    warned: list[str] = []
    found = evaluate(compiled, 3, 3, "spec.n", warned.append)
    assert [cause.message for cause in found] == ["Invalid value: 3: has to change"]
    assert warned == ["spec.n: Invalid value: 3: failed rule: self > 5"]


def test_sets_compare_without_order_in_transition_rules() -> None:
    schema = {
        "type": "array",
        "items": INTEGER,
        "x-kubernetes-list-type": "set",
        "x-kubernetes-validations": [{"rule": "self == oldSelf"}],
    }
    assert not evaluate(rules(schema), [2, 1], [1, 2])
    assert evaluate(rules(schema), [2, 1, 3], [1, 2])


def test_a_failing_message_expression_leaves_the_message() -> None:
    rule = {"rule": "false", "message": "no", "messageExpression": "self.absent"}
    schema = {
        "type": "object",
        "properties": {"absent": {"type": "string"}},
        "x-kubernetes-validations": [rule],
    }
    assert [cause.message for cause in evaluate(rules(schema), {}, path="spec")] == ["Invalid value: no"]


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("self.l.all(i, v, i < v)", "two variables"),
        ("format.dns1123Label().validate('a').hasValue()", "format"),
        ("self.l.flatten() == []", "flatten"),
    ],
)
def test_what_only_the_real_server_has_is_a_501_that_names_it(expression: str, named: str) -> None:
    with pytest.raises(ApiFailure, match=named) as failure:
        checker(l={"type": "array", "items": INTEGER}).check(expression, optional=False, wanted="bool")
    assert failure.value.code == 501


def test_fields_whose_names_would_make_the_same_entry_type_are_both_seen() -> None:
    texts = {"type": "object", "additionalProperties": {"type": "string"}}
    here = checker(a_b=texts, a__b=texts)
    assert not here.check(
        "self.a_b.x == 'y' && self.a__underscores__b.x == 'y'", optional=False, wanted="bool"
    )
