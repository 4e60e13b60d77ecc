"""Pruning, nulls and defaulting of custom resources."""

from __future__ import annotations

import copy
from typing import Any

from kubeloop.sandbox.schema import CustomSchema


def schema(**properties: Any) -> CustomSchema:
    spec = {"type": "object", "properties": properties}
    return CustomSchema("Thing", "example.com/v1", {"type": "object", "properties": {"spec": spec}})


def obj(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec}


TEXT = {"type": "string"}


def test_unknown_fields_are_pruned_and_named() -> None:
    items = {"type": "object", "properties": {"x": TEXT}}
    pruned, unknown = schema(a=TEXT, l={"type": "array", "items": items}).prune(
        {**obj(a="1", b="2", l=[{"x": "1", "y": "2"}]), "extra": 1}
    )
    assert pruned["spec"] == {"a": "1", "l": [{"x": "1"}]}
    assert unknown == ["extra", "spec.b", "spec.l[0].y"]


def test_preserved_and_embedded_parts_are_left_alone() -> None:
    free = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"k": {"type": "object"}},
    }
    embedded = {**free, "x-kubernetes-embedded-resource": True}
    body = obj(
        f={"any": [1], "k": {"gone": 1}}, e={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}
    )
    pruned, unknown = schema(f=free, e=embedded).prune(body)
    assert unknown == ["spec.f.k.gone"]
    assert pruned["spec"]["e"] == body["spec"]["e"]


def test_an_object_that_fits_is_returned_as_it_is() -> None:
    body = obj(a="1")
    things = schema(a=TEXT, b={"type": "integer"})
    assert things.prune(body)[0] is body
    assert things.default(body) is body


def test_defaults_fill_what_is_missing_also_inside_defaults() -> None:
    inner = {
        "type": "object",
        "default": {"p": "q"},
        "properties": {"p": TEXT, "r": {"type": "integer", "default": 1}},
    }
    things = schema(a={"type": "string", "default": "x"}, o=inner)
    assert things.default(obj())["spec"] == {"a": "x", "o": {"p": "q", "r": 1}}
    assert things.default(obj(o={}))["spec"]["o"] == {"r": 1}


def test_defaults_are_not_shared_between_objects() -> None:
    things = schema(
        o={"type": "object", "default": {}, "properties": {"l": {"type": "array", "items": TEXT}}}
    )
    first = things.default(obj())
    first["spec"]["o"]["l"] = ["x"]
    assert things.default(obj())["spec"]["o"] == {}


def test_a_null_goes_unless_it_may_stay_or_has_a_default() -> None:
    things = schema(a=TEXT, n={"type": "string", "nullable": True}, d={"type": "string", "default": "x"})
    pruned, _ = things.prune(obj(a=None, n=None, d=None))
    assert pruned["spec"] == {"n": None, "d": None}
    assert things.default(pruned)["spec"] == {"n": None, "d": "x"}


def test_arguments_are_never_changed() -> None:
    things = schema(a={"type": "string", "default": "x"})
    body = obj(b=1, c=None)
    before = copy.deepcopy(body)
    things.default(things.prune(body)[0])
    assert body == before
