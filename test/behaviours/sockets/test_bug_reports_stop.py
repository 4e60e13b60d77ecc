"""The report on watches that do not stop."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from kubeloop.client import Client
from kubeloop.model import Resource

MAPS = Resource("", "v1", "configmaps", "ConfigMap")


@pytest.mark.parametrize("moment", ["idle", "opening", "in a burst"])
@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_a_watch_stops_at_once(make_live: Any, tls: bool, moment: str) -> None:
    """kubernetes-client/python#422: stop() of a watch returns minutes later on an idle stream."""
    live = make_live(tls=tls)
    client: Client = live.client()
    if moment == "opening":
        live.sandbox.faults.add(verb="watch", silence=True)
    watch = client.watch(MAPS, timeout_seconds=600)
    lines: list[bytes] = []
    reading, ended = threading.Event(), threading.Event()

    def read() -> None:
        reading.set()
        try:
            lines.extend(watch)
        except Exception as error:  # noqa: BLE001 - which one is looked at below
            lines.append(type(error).__name__.encode())
        ended.set()

    reader = threading.Thread(target=read)
    reader.start()
    assert reading.wait(5)
    if moment == "in a burst":
        for number in range(50):
            meta = {"name": f"m{number}", "namespace": "default"}
            live.sandbox.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    live.until(lambda: moment == "opening" or live.sandbox.log.entries(verb="watch"))
    threading.Event().wait(0.05)
    began = time.monotonic()
    watch.close()

    assert ended.wait(1)
    reader.join()
    assert time.monotonic() - began < 1
    assert all(b'"ADDED"' in line or b'"BOOKMARK"' in line for line in lines) or moment == "opening"
