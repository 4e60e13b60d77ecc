"""Informers against the simulated API server, over HTTP and in process: the store ends as the server is."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubeloop.cache import Added, Deleted, Event, Informer, Modified
from kubeloop.client import Apply, Client, NotFound, connect, load_config
from kubeloop.model import DynamicObject, Resource
from kubeloop.sandbox import Sandbox

MAPS = Resource("", "v1", "configmaps", "ConfigMap")


@pytest.fixture(params=["http", "in process"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with Sandbox(http=request.param == "http", controllers=False) as sandbox:
        yield sandbox


@pytest.fixture
def real_client(sandbox: Sandbox, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Client]:
    if "http" in request.node.name:
        client = connect(load_config(str(sandbox.kubeconfig(tmp_path / "kubeconfig")), environ={}))
    else:
        client = Client(sandbox.transport())
    yield client
    client.close()


def put(client: Client, name: str, value: str) -> bytes:
    document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"value": value},
    }
    return client.patch(MAPS, name, "default", Apply(document), field_manager="test", force=True).raw


def truth(client: Client) -> dict[str, tuple[str, int]]:
    return {
        f"{item['metadata']['namespace']}/{item['metadata']['name']}": (
            item["metadata"]["uid"],
            int(item["metadata"]["resourceVersion"]),
        )
        for item in client.list(MAPS).items
    }


def test_it_follows_a_busy_server_through_cut_connections_and_expired_versions(
    sandbox: Sandbox, real_client: Client, tools: Any
) -> None:
    """R0.24: missed events still converge."""
    client = real_client
    informer = Informer[DynamicObject](client, MAPS, rng=random.Random(1))
    told: dict[str, tuple[str, int]] = {}
    wrong: list[object] = []

    def fold(event: Event[DynamicObject], _: bool) -> None:
        key, state = event.object.key, (event.object.uid, event.object.resource_version)
        match event:
            case Added():
                if key in told:
                    wrong.append(event)
                told[key] = state
            case Modified():
                if told.get(key, ("", 0))[0] != state[0] or told[key][1] >= state[1]:
                    wrong.append(event)
                told[key] = state
            case Deleted():
                if told.pop(key, None) is None:
                    wrong.append(event)

    informer.add_handler(fold)
    informer.start()
    assert informer.wait_synced(10)
    rng = random.Random(7)
    names = [f"m{number}" for number in range(12)]
    for step in range(150):
        name = rng.choice(names)
        if rng.random() < 0.3:
            try:
                client.delete(MAPS, name, "default")
            except NotFound:
                continue
        else:
            put(client, name, str(step))
        if step % 50 == 25:
            sandbox.compact()
            reflector = informer._reflectors[0]
            assert reflector._cancel is not None
            reflector._cancel.cancel()  # as if the connection had been cut
            informer.hurry()
    expected = truth(client)
    tools.until(lambda: told == expected)
    stored = {thing.key: (thing.uid, thing.resource_version) for thing in informer.store.list()}
    assert stored == expected
    assert wrong == []
    informer.stop()
    assert informer.join(1)


def test_a_writer_reads_its_own_writes_while_others_write_too(real_client: Client, tools: Any) -> None:
    """D3"""
    client = real_client
    informer = Informer[DynamicObject](client, MAPS)
    informer.start()
    assert informer.wait_synced(10)
    wrong: list[tuple[str, int, int]] = []

    def write(name: str) -> None:
        for number in range(40):
            raw = put(client, name, str(number))
            informer.store.write_through(raw)
            found = informer.store.get(f"default/{name}")
            if found is None or int(found["data"]["value"]) < number:
                wrong.append((name, number, -1))
            if number % 10 == 9:
                uid = found.uid if found else ""
                client.delete(MAPS, name, "default")
                informer.store.forget(f"default/{name}", uid=uid)
                if informer.store.get(f"default/{name}") is not None:
                    wrong.append((name, number, 0))

    threads = [threading.Thread(target=write, args=(f"w{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    put(client, "last", "x")
    tools.until(lambda: informer.store.keys() == ["default/last"])
    informer.stop()
    assert informer.join(1)
