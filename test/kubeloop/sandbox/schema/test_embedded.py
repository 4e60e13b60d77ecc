"""Embedded resources: metadata inside of a custom resource is checked and pruned as metadata."""

from __future__ import annotations

from typing import Any

from kubeloop.sandbox.schema import CustomSchema

EMBEDDED = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}


def schema(part: dict[str, Any]) -> CustomSchema:
    return CustomSchema("Foo", "example.com/v1", {"type": "object", "properties": {"spec": part}})


def test_unknown_fields_of_embedded_metadata_go_wherever_it_stands() -> None:
    inner = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "odd": 1}, "odd": 1}
    obj, unknown = schema({"type": "array", "items": EMBEDDED}).prune({"spec": [inner]})
    assert obj["spec"] == [{**inner, "metadata": {"name": "x"}}]
    assert unknown == ["spec[0].metadata.odd"]


def test_embedded_resources_say_what_they_are() -> None:
    found = schema(EMBEDDED).validate({"spec": {"kind": "a b", "metadata": {"labels": {"x y": ""}}}})
    assert [cause.field for cause in found] == ["spec.apiVersion", "spec.kind", "spec.metadata.labels"]
