"""`events`: a plain stream of changes."""

from __future__ import annotations

import threading
import time
from typing import Any

from kubeloop.cache import Added, Deleted, events
from kubeloop.client import Client
from kubeloop.clock import StopEvent
from kubeloop.model import Resource


def test_events_come_one_at_a_time_in_order_over_lost_connections(
    client: Client, server: Any, tools: Any
) -> None:
    """R4.7, R4.8"""
    server.on_list = lambda *_: tools.listing([tools.thing("a", 5)], 10)
    stop = StopEvent()
    stream = events(client, tools.Thing, "ns", stop, streaming=False)
    assert isinstance(next(stream), Added)
    tools.until(lambda: server.streams)
    first = server.streams[0]
    first.event("ADDED", tools.thing("b", 11))
    first.feed(ConnectionResetError("reset"))
    assert next(stream).object.key == "ns/b"
    tools.until(lambda: len(server.streams) == 2)
    server.streams[1].event("DELETED", tools.thing("a", 12))
    match next(stream):
        case Deleted(thing):
            assert thing.name == "a"
        case other:
            raise AssertionError(other)
    assert server.requests[-1][2]["resourceVersion"] == "11"
    stop.set()
    assert list(stream) == []


def test_it_ends_promptly_when_stopped(client: Client, tools: Any) -> None:
    stop = StopEvent()
    timer = threading.Timer(0.05, stop.set)
    timer.start()
    began = time.monotonic()
    assert list(events(client, tools.Thing, "ns", stop)) == []
    assert time.monotonic() - began < 1
    timer.join()


def test_closing_it_ends_its_thread(client: Client, server: Any, tools: Any) -> None:
    server.on_list = lambda *_: tools.listing([tools.thing("a", 5)], 10)
    stream = events(client, tools.Thing, streaming=False)
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("informer-")]


def test_a_slow_consumer_holds_the_watch_back_and_loses_nothing(
    client: Client, server: Any, tools: Any
) -> None:
    things = [tools.thing(f"t{number}", number + 1) for number in range(1500)]
    server.on_list = lambda *_: tools.listing(things, 2000)
    stop = StopEvent()
    stream = events(client, tools.Thing, stop=stop, streaming=False)
    names = [next(stream).object.name for _ in range(1500)]
    assert names == [f"t{number}" for number in range(1500)]
    stop.set()
    assert list(stream) == []


def test_a_resource_needs_no_class(client: Client, server: Any, tools: Any) -> None:
    """R4.6"""
    server.on_list = lambda *_: tools.listing([tools.thing("a", 5, size=3)], 10)
    stream = events(client, Resource("example.com", "v1", "things"), "ns", streaming=False)
    event = next(stream)
    assert event.object["spec"]["size"] == 3
    stream.close()  # type: ignore[attr-defined]
