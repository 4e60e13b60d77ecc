"""Informers that are sent, and keep, nothing but metadata."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kubeloop.cache import Added, Deleted, Event, Informer, Modified, Store, events
from kubeloop.cache.codec import Codec
from kubeloop.client import Apply, Client, connect, load_config
from kubeloop.clock import StopEvent
from kubeloop.model import PartialObjectMetadata, Resource, metadata_only
from kubeloop.sandbox import Sandbox

SECRETS = Resource("", "v1", "secrets", "Secret")
WORD = "aHVudGVyMg=="


class Overheard:
    """A transport that remembers the bodies that came through it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.heard = bytearray()
        self.accepted: list[str] = []

    def request(self, method: str, target: str, *, headers: Mapping[str, str], **options: Any) -> Any:
        return self._inner.request(method, target, headers=headers, **options)

    def stream(self, method: str, target: str, *, headers: Mapping[str, str], **options: Any) -> Any:
        self.accepted.append(headers["Accept"])
        stream = self._inner.stream(method, target, headers=headers, **options)
        chunks, heard = stream.chunks, self.heard

        def listen() -> Iterator[bytes]:
            for chunk in chunks():
                heard.extend(chunk)
                yield chunk

        stream.chunks = listen
        return stream

    def close(self) -> None:
        self._inner.close()


@pytest.fixture(params=["http", "in process"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with Sandbox(http=request.param == "http", controllers=False) as sandbox:
        yield sandbox


@pytest.fixture
def admin(sandbox: Sandbox, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Client]:
    if "http" in request.node.name:
        client = connect(load_config(str(sandbox.kubeconfig(tmp_path / "kubeconfig")), environ={}))
    else:
        client = Client(sandbox.transport())
    yield client
    client.close()


def put(client: Client, name: str, **labels: str) -> bytes:
    document = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "data": {"password": WORD},
    }
    return client.patch(SECRETS, name, "default", Apply(document), field_manager="test", force=True).raw


@pytest.mark.parametrize("streaming", [True, False])
def test_it_follows_the_server_without_being_sent_any_content(
    admin: Client, tools: Any, streaming: bool
) -> None:
    put(admin, "first")
    transport = Overheard(admin.transport)
    informer = Informer(Client(transport), metadata_only(SECRETS), streaming=streaming)
    told: list[tuple[str, str, str]] = []

    def handle(event: Event[PartialObjectMetadata], _: bool) -> None:
        told.append((type(event).__name__, event.object.name, event.object.labels.get("step", "")))

    informer.add_handler(handle)
    informer.start()
    assert informer.wait_synced(10)
    put(admin, "second")
    put(admin, "first", step="2")
    admin.delete(SECRETS, "second", "default")
    tools.until(lambda: len(told) == 4)
    informer.stop()
    assert informer.join(2)

    assert told == [
        ("Added", "first", ""),
        ("Added", "second", ""),
        ("Modified", "first", "2"),
        ("Deleted", "second", ""),
    ]
    found = informer.store.get("default/first")
    assert found is not None
    assert (found.kind, found.api_version, found.labels) == ("Secret", "v1", {"step": "2"})
    assert b"PartialObjectMetadata" in transport.heard
    assert WORD.encode() not in transport.heard
    forms = {"PartialObjectMetadata"} if streaming else {"PartialObjectMetadataList", "PartialObjectMetadata"}
    assert set(transport.accepted) == {
        f"application/json;as={form};g=meta.k8s.io;v=v1,application/json" for form in forms
    }


def test_the_answer_to_an_own_write_is_reduced_to_its_metadata(admin: Client) -> None:
    """D3, and no more than is wanted: also as a mapping, and where a server knows no other form."""
    codec = Codec(metadata_only(SECRETS))
    store = Store(codec)
    raw = put(admin, "own", step="1")
    assert WORD.encode() in raw
    for form in (raw, json.loads(raw)):
        store = Store(codec)
        store.write_through(form)
        found = store.get("default/own")
        assert found is not None
        assert found.labels == {"step": "1"}
        kept = codec._packer.unpack(
            store.known().get("default/own", store._ledger.entries["default/own"]).packed
        )
        assert json.loads(kept).keys() == {"metadata"}
        assert "managedFields" not in json.loads(kept)["metadata"]


def test_what_is_no_object_is_reported_like_for_any_kind() -> None:
    codec = Codec(metadata_only(SECRETS))
    for nothing in (b"{}", b"[]", b"3", b"null", b'{"metadata": null}', b'{"metadata": {}}', b"{"):
        assert codec.candidate(nothing) is None
    bad = codec.candidate(
        b'{"metadata": {"name": "a", "resourceVersion": "5", "labels": {"b": 7}}, "data": {"c": "d"}}'
    )
    assert getattr(bad, "message", "").startswith("metadata.labels.b: ")


def test_threads_and_log_lines_say_that_it_is_only_metadata(client: Client) -> None:
    informer = Informer(client, metadata_only(SECRETS), "ns")
    assert (informer.name, informer.kind_name) == ("secrets (metadata)", "Secret (metadata)")
    assert informer._reflectors[0]._thread.name == "informer-secrets-metadata-ns"
    assert Informer[Any](client, SECRETS).name == "secrets"


def test_the_plain_iterator_takes_such_a_kind_too(admin: Client) -> None:
    put(admin, "one")
    stop = StopEvent()
    for event in events(admin, metadata_only(SECRETS), "default", stop):
        match event:
            case Added(secret):
                assert (secret.name, secret.kind) == ("one", "Secret")
                put(admin, "one", changed="yes")
            case Modified(object=secret, old=old):
                assert (secret.labels, old.labels) == ({"changed": "yes"}, {})
                admin.delete(SECRETS, "one", "default")
            case Deleted():
                stop.set()
