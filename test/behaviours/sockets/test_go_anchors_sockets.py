"""Behaviours 7 and 15, as far as they are about sockets."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from typing import Any

import pytest

from kubeloop.client import Client, TransportError
from kubeloop.clock import StopEvent
from kubeloop.controller import Controller, Result
from kubeloop.manager import Manager
from kubeloop.manager.checks import liveness
from kubeloop.manager.health import Health
from kubeloop.manager.http import HttpServer
from kubeloop.model import Resource
from webapp_operator.types import WebApp

MAPS = Resource("", "v1", "configmaps", "ConfigMap")


@pytest.mark.parametrize("silent", ["watch", "opening", "request"])
def test_a_silent_socket_is_no_wait_without_end(make_live: Any, silent: str) -> None:
    """Behaviour 7: the same on real sockets, which Python lets block for ever."""
    live = make_live()
    client = live.client(timeout=0.3)
    faults = live.sandbox.faults
    began = time.monotonic()
    if silent == "watch":
        faults.add(verb="watch", silence_after=0)
        with pytest.raises(TransportError):
            list(client.watch(MAPS, read_timeout=0.3))
    elif silent == "opening":
        faults.add(verb="watch", silence=True)
        with pytest.raises(TransportError):
            list(client.watch(MAPS, connect_timeout=0.3, read_timeout=0.3))
    else:
        faults.add(verb="get", silence=True)
        with pytest.raises(TransportError):
            client.get(MAPS, "a", "default")

    assert time.monotonic() - began < 3
    assert threading.active_count() < 30


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_servers_are_the_first_to_start(make_live: Any) -> None:
    """Behaviour 15: the manager itself starts its servers before the caches, and stops them last."""
    live = make_live()
    live.sandbox.faults.add(verb=("list", "watch"), status=503)
    stop = StopEvent()
    client: Client = live.client(stop=stop)
    manager = Manager(client)
    manager.add(Controller(WebApp, lambda _app, _ctx: Result(), field_manager="test"))
    server = HttpServer("test", ("127.0.0.1", 0), Health("/healthz", liveness(manager)).routes())
    manager.serve(server)
    thread = threading.Thread(target=manager.run, args=(stop,))
    thread.start()
    try:
        live.until(lambda: get(server.port, "/healthz") == (200, "ok"))
        assert not manager.wait_synced(StopEvent(), 0)
    finally:
        stop.set()
        thread.join(10)
    assert not thread.is_alive()
