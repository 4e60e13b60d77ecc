"""etcd restored from a backup, beneath an informer (kubernetes#107457, docs/design/restore.md)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubeloop.cache import Informer
from kubeloop.client import ApiError, Client, TransportError, connect, load_config
from kubeloop.model import DynamicObject, Resource

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
COUNT = 200
"""More than what the control plane writes by itself in the time that the test takes."""


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Any]:
    from controlplane import ControlPlane

    with ControlPlane(tmp_path / "controlplane") as made:
        yield made


@pytest.fixture
def client(plane: Any) -> Iterator[Client]:
    made = connect(load_config(str(plane.kubeconfig())), pool_size=4)
    yield made
    made.close()


def wait_for(holds: Callable[[], object], seconds: float, what: str) -> None:
    deadline, pause = time.monotonic() + seconds, threading.Event()
    while not holds():
        assert time.monotonic() < deadline, what
        pause.wait(0.05)


def make(client: Client, name: str) -> None:
    client.create(CONFIG_MAPS, {"metadata": {"name": name, "namespace": "default"}})


@pytest.mark.e2e
def test_what_is_no_longer_true_is_forgotten_at_once_and_what_happens_then_is_heard(
    plane: Any, client: Client
) -> None:
    def answers() -> bool:
        try:
            return bool(client.get(CONFIG_MAPS, "before", "default"))
        except (ApiError, TransportError):
            return False

    make(client, "before")
    backup = plane.back_up()
    wait_for(answers, 30, "the server to work again")
    for n in range(COUNT):
        make(client, f"after-{n}")
    informer = Informer[DynamicObject](client, CONFIG_MAPS, "default")
    informer.start()
    try:
        wait_for(lambda: informer.has_synced, 30, "the cache")
        assert f"default/after-{COUNT - 1}" in informer.store
        plane.restore(backup)
        wait_for(lambda: "default/after-0" not in informer.store, 45, "the old state in the cache")
        assert "default/before" in informer.store
        make(client, "then")
        wait_for(lambda: "default/then" in informer.store, 10, "what happened after the restore")
    finally:
        informer.stop()
        assert informer.join(10)
