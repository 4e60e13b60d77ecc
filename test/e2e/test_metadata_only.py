"""Watching nothing but metadata: what the server sends then, and what is kept of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kubeloop.cache import Event, Informer
from kubeloop.client import Api, Apply, Client, connect, load_config
from kubeloop.model import PartialObjectMetadata, Resource, metadata_only

SECRETS = Resource("", "v1", "secrets", "Secret")
WORD = "aHVudGVyMg=="


@pytest.fixture
def client(cluster: Any) -> Iterator[Client]:
    made = connect(load_config(str(cluster.kubeconfig)), pool_size=2)
    yield made
    made.close()


def secret(cluster: Any, name: str, **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": cluster.namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"password": WORD}}


@pytest.mark.parametrize("streaming", [True, False], ids=["streamed", "listed"])
def test_metadata_of_secrets_is_followed_and_nothing_else_is_known(
    cluster: Any, client: Client, streaming: bool
) -> None:
    whole = Api(client, SECRETS, cluster.namespace)
    whole.create(secret(cluster, "first"))
    told: list[tuple[str, str, str]] = []
    done = threading.Event()

    def handle(event: Event[PartialObjectMetadata], _: bool) -> None:
        told.append((type(event).__name__, event.object.name, event.object.labels.get("step", "")))
        if len(told) == 4:
            done.set()

    informer = Informer(client, metadata_only(SECRETS), cluster.namespace, streaming=streaming)
    informer.add_handler(handle)
    informer.start()
    try:
        assert informer.wait_synced(20), informer.state
        whole.create(secret(cluster, "second"))
        patch = Apply(secret(cluster, "first", step="2"))
        answer = client.patch(SECRETS, "first", cluster.namespace, patch, field_manager="test", force=True)
        informer.store.write_through(answer.raw)
        mine = informer.store.get(f"{cluster.namespace}/first")
        assert mine is not None
        assert mine.labels == {"step": "2"}
        whole.delete("second")
        assert done.wait(20), told
    finally:
        informer.stop()
        assert informer.join(5)

    assert informer.watches == 1, "a streaming list goes on as the watch"
    assert told == [
        ("Added", "first", ""),
        ("Added", "second", ""),
        ("Modified", "first", "2"),
        ("Deleted", "second", ""),
    ]
    assert [(each.kind, each.name) for each in informer.store.list()] == [("Secret", "first")]


def test_metadata_is_all_that_the_server_sends(cluster: Any, client: Client) -> None:
    Api(client, SECRETS, cluster.namespace).create(secret(cluster, "only"))

    page = client.list_page(SECRETS, cluster.namespace, metadata_only=True)
    one = client.get(SECRETS, "only", cluster.namespace, metadata_only=True)
    stream = client.watch(SECRETS, cluster.namespace, initial_events=True, metadata_only=True)
    line = next(iter(stream))
    stream.close()

    assert [item.keys() for item in (*page.items, one)] == [{"apiVersion", "kind", "metadata"}] * 2
    assert b'"kind":"PartialObjectMetadata"' in line
    assert WORD.encode() not in line
