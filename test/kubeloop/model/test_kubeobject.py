"""Whole objects, as servers send them."""

from __future__ import annotations

import gc
import json
import tracemalloc
from typing import Any

import pytest
from pydantic import ValidationError

from kubeloop.model import (
    ApiObject,
    Deployment,
    DynamicObject,
    KubeObject,
    Namespace,
    ObjectMeta,
    OwnerReference,
    Resource,
    Service,
)

BOOKS = Resource("example.technosophos.com", "v1", "books", "Book")


def test_a_deployment_with_all_server_noise_decodes_to_what_we_look_at(
    server_deployment: dict[str, Any],
) -> None:
    seen = Deployment.model_validate_json(json.dumps(server_deployment))

    assert (seen.key, seen.resource_version, seen.generation, seen.deleting) == (
        "default/hello",
        123456,
        2,
        False,
    )
    assert (seen.api_version, seen.kind) == ("apps/v1", "Deployment")
    assert seen.status is not None
    assert (seen.status.available_replicas, seen.status.unavailable_replicas) == (3, 0)
    assert seen.spec == server_deployment["spec"]
    owner = seen.controller_owner()
    assert owner is not None
    assert (owner.kind, owner.group, owner.name) == ("WebApp", "example.com", "hello")


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"labels": None, "annotations": None, "finalizers": None, "ownerReferences": None},
        {"managedFields": 7, "selfLink": [], "creationTimestamp": None, "namespace": None},
    ],
)
def test_nulls_and_strange_metadata_decode(metadata: dict[str, Any]) -> None:
    raw = json.dumps({"metadata": {"name": "a", **metadata}, "spec": None, "status": None})
    for seen in (Deployment.model_validate_json(raw), DynamicObject(BOOKS, json.loads(raw))):
        assert seen.labels == {}
        assert seen.annotations == {}
        assert seen.metadata.finalizers == ()
        assert seen.controller_owner() is None
        assert seen.resource_version == 0


def test_a_missing_or_null_spec_reads_as_empty() -> None:
    assert Deployment.model_validate({"metadata": {}, "spec": None}).spec == {}
    assert Deployment.model_validate({"metadata": {}}).spec == {}


def test_a_field_of_the_wrong_type_is_an_error_that_names_it() -> None:
    with pytest.raises(ValidationError) as caught:
        Deployment.model_validate_json('{"metadata": {"name": 3}, "status": {"replicas": "many"}}')

    assert {error["loc"] for error in caught.value.errors()} == {("metadata", "name"), ("status", "replicas")}


def test_a_key_has_the_namespace_only_where_there_is_one() -> None:
    assert Namespace(metadata=ObjectMeta(name="a")).key == "a"
    assert Service(metadata=ObjectMeta(name="a", namespace="b")).key == "b/a"


def test_a_deletion_timestamp_means_deleting() -> None:
    assert Namespace(metadata=ObjectMeta(name="a", deletion_timestamp="2026-01-01T00:00:00Z")).deleting


def test_only_the_controlling_owner_counts() -> None:
    owners = [
        OwnerReference(api_version="v1", kind="A", name="a", uid="1"),
        OwnerReference(api_version="apps/v1", kind="B", name="b", uid="2", controller=True),
    ]
    found = Service(metadata=ObjectMeta(name="s", owner_references=owners)).controller_owner()

    assert found is not None
    assert (found.uid, found.group, owners[0].group) == ("2", "apps", "")


def test_an_object_is_a_controller_for_its_children_only_once_it_has_a_uid() -> None:
    """R0.8: a controller ownerReference with uid and blockOwnerDeletion."""
    assert Namespace(metadata=ObjectMeta(name="a", uid="u")).owner_reference() == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "name": "a",
        "uid": "u",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    with pytest.raises(ValueError, match="no uid"):
        Namespace(metadata=ObjectMeta(name="a")).owner_reference()


def test_the_wire_form_of_an_object_says_kind_first_and_nothing_unset() -> None:
    wire = Service(metadata=ObjectMeta(name="a"), spec={"ports": []}).to_wire()

    assert wire == {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": []}}
    assert list(wire)[:2] == ["apiVersion", "kind"]


def test_a_dynamic_object_needs_no_class() -> None:
    """R4.6."""
    raw = {
        "apiVersion": "example.technosophos.com/v1",
        "kind": "Book",
        "metadata": {
            "name": "moby-dick",
            "namespace": "default",
            "managedFields": [{}],
            "resourceVersion": "9",
        },
        "spec": {"title": "Moby Dick", "authors": ["Herman Melville"]},
    }
    book = DynamicObject(BOOKS, raw)

    assert book["spec"]["title"] == "Moby Dick"
    assert (book.key, book.resource_version, book.kind) == ("default/moby-dick", 9, "Book")
    assert "managedFields" not in book["metadata"]
    with pytest.raises(TypeError):
        book["spec"]["title"] = "x"
    del raw["metadata"]["managedFields"]  # type: ignore[attr-defined]
    assert book.to_wire() == raw
    assert book == DynamicObject(BOOKS, raw)
    assert hash(book) == hash(DynamicObject(BOOKS, raw))
    assert repr(book) == "DynamicObject(books.example.technosophos.com, 'default/moby-dick')"


def test_typed_and_dynamic_objects_have_the_same_surface() -> None:
    for kind in (KubeObject, DynamicObject):
        assert issubclass(kind, ApiObject)


def test_a_cached_deployment_costs_less_than_two_kilobytes(server_deployment: dict[str, Any]) -> None:
    """Cached WebApp and Deployment together are to stay below 3 KB."""
    raws = []
    for number in range(300):
        server_deployment["metadata"] |= {"name": f"hello-{number}", "uid": f"{number:036}"}
        server_deployment["metadata"]["labels"]["app.kubernetes.io/instance"] = f"hello-{number}"
        raws.append(json.dumps(server_deployment))
    decoded = [Deployment.model_validate_json(raws[0])]
    gc.collect()
    tracemalloc.start()
    try:
        decoded += [Deployment.model_validate_json(raw) for raw in raws]
        gc.collect()
        each = tracemalloc.get_traced_memory()[0] / len(raws)
    finally:
        tracemalloc.stop()

    assert len(decoded) == 301
    assert each < 2048
