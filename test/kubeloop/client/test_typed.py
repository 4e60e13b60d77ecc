"""`Api`: typed objects in and out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from kubeloop.client import Api, MergePatch, MissingKeyError, NotFound
from kubeloop.model import DynamicObject, KubeObject, Model, PartialObjectMetadata, Resource, metadata_only


class BookSpec(Model):
    title: str


class Book(KubeObject):
    resource = Resource("example.com", "v1", "books", "Book")
    spec: BookSpec


WIRE: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Book",
    "metadata": {"name": "moby", "namespace": "ns", "resourceVersion": "5"},
    "spec": {"title": "Moby Dick"},
}
PATH = "/apis/example.com/v1/namespaces/ns/books"


def test_objects_come_typed(scripted: Any, tools: Any) -> None:
    client, transport = scripted(tools.answer(WIRE))
    book = Api(client, Book, "ns").get("moby")
    assert book.spec.title == "Moby Dick"
    assert transport.sent[0][1] == f"{PATH}/moby"


def test_a_resource_needs_no_class(scripted: Any, tools: Any) -> None:
    """R4.6"""
    client, _ = scripted(tools.answer(WIRE))
    book = Api(client, Resource("example.com", "v1", "books"), "ns").get("moby")
    assert isinstance(book, DynamicObject)
    assert book["spec"]["title"] == "Moby Dick"


def test_objects_are_sent_complete(scripted: Any, tools: Any) -> None:
    client, transport = scripted(*[tools.answer(WIRE)] * 5)
    api = Api(client, Book, "ns")
    api.create({"metadata": {"name": "moby"}, "spec": {"title": "Moby Dick"}})
    api.apply({"metadata": {"name": "moby"}, "spec": {"title": "x"}}, field_manager="me", force=True)
    api.replace(Book.model_validate(WIRE))
    api.patch("moby", MergePatch({"spec": {"title": "y"}}))
    api.patch_status("moby", {"read": True})
    sent = [(method, target) for method, target, _, _ in transport.sent]
    assert sent == [
        ("POST", PATH),
        ("PATCH", f"{PATH}/moby?fieldManager=me&force=true"),
        ("PUT", f"{PATH}/moby"),
        ("PATCH", f"{PATH}/moby"),
        ("PATCH", f"{PATH}/moby/status"),
    ]
    created = json.loads(transport.sent[0][3])
    assert (created["kind"], created["metadata"]["namespace"]) == ("Book", "ns")


def test_lists_and_deletions(scripted: Any, tools: Any) -> None:
    document = {"kind": "BookList", "metadata": {"resourceVersion": "7"}, "items": [WIRE]}
    client, transport = scripted(tools.answer(document), tools.answer({}), tools.refusal(404, "NotFound"))
    api = Api(client, Book, "ns")
    assert [book.name for book in api.list(label_selector="a=b")] == ["moby"]
    api.delete("moby", uid="u")
    with pytest.raises(NotFound):
        api.delete("moby")
    assert transport.sent[1][0] == "DELETE"


def test_a_missing_namespace_or_name_is_an_error_of_its_own(scripted: Any) -> None:
    """R0.12"""
    api = Api(scripted()[0], Book)
    with pytest.raises(MissingKeyError, match=r"missing key \.metadata\.namespace"):
        api.get("moby")
    with pytest.raises(MissingKeyError, match=r"missing key \.metadata\.name"):
        api.apply({"metadata": {"namespace": "ns"}}, field_manager="me")


def test_a_malformed_object_is_a_validation_error(scripted: Any, tools: Any) -> None:
    client, _ = scripted(tools.answer({**WIRE, "spec": {}}))
    with pytest.raises(ValidationError, match="title"):
        Api(client, Book, "ns").get("moby")


def test_a_watch_gives_types_and_objects(scripted: Any, tools: Any) -> None:
    line = json.dumps({"type": "ADDED", "object": WIRE}).encode() + b"\n"
    client, _ = scripted(tools.Stream(200, [line]))
    assert list(Api(client, Book, "ns").watch()) == [("ADDED", WIRE)]


def test_a_kind_can_be_read_as_metadata_only_and_is_then_not_written_whole(scripted: Any, tools: Any) -> None:
    """A PUT of what is known would empty the object."""
    document = {"kind": "PartialObjectMetadataList", "metadata": {"resourceVersion": "7"}, "items": [WIRE]}
    client, transport = scripted(tools.answer(WIRE), tools.answer(document), tools.answer(WIRE))
    api = Api(client, metadata_only(Book), "ns")
    book = api.get("moby")
    assert isinstance(book, PartialObjectMetadata)
    assert (book.kind, [each.key for each in api.list()]) == ("Book", ["ns/moby"])
    assert all("as=PartialObjectMetadata" in headers["Accept"] for _, _, headers, _ in transport.sent)
    with pytest.raises(TypeError, match="only the metadata of Book ns/moby is known"):
        api.replace(book)
    with pytest.raises(TypeError, match="would empty it"):
        Api(client, Book, "ns").replace(book)  # type: ignore[arg-type]
    api.apply(book, field_manager="me")
    assert "spec" not in json.loads(transport.sent[-1][3])
