"""Informers against a scripted server: lists, watches, faults, handlers."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kubeloop.cache import Added, Deleted, Event, Informer, Modified
from kubeloop.client import Client
from kubeloop.clock import FakeClock, StopEvent

Seen = list[tuple[str, str, int, bool]]


def recorder(seen: Seen) -> Callable[[Event[Any], bool], None]:
    def handle(event: Event[Any], initial: bool) -> None:
        seen.append((type(event).__name__, event.object.key, event.object.resource_version, initial))

    return handle


@pytest.fixture
def informers() -> Iterator[list[Informer[Any]]]:
    """Informers put here are stopped at the end, and must then end within a second."""
    started: list[Informer[Any]] = []
    yield started
    for informer in started:
        informer.stop()
    began = time.monotonic()
    assert all(informer.join(1.0) for informer in started)
    assert time.monotonic() - began < 1.0


@pytest.fixture
def make(client: Client, clock: FakeClock, tools: Any, informers: list[Informer[Any]]) -> Any:
    def make(**options: Any) -> Informer[Any]:
        informer: Informer[Any] = Informer(
            client, options.pop("kind", tools.Thing), clock=clock, **{"streaming": False, **options}
        )
        informers.append(informer)
        return informer

    return make


def started(informer: Informer[Any], server: Any, tools: Any, clock: FakeClock, streams: int = 1) -> Any:
    """Start, and give the stream that the informer watches."""
    informer.start()
    tools.until(lambda: informer.has_synced and len(server.streams) >= streams, clock)
    return server.streams[-1]


def test_it_lists_then_follows_the_watch(make: Any, server: Any, tools: Any, clock: FakeClock) -> None:
    """R0.23, R4.7"""
    server.on_list = lambda *_: tools.listing([tools.thing("a", 5)], 10)
    informer = make()
    seen: Seen = []
    informer.add_handler(recorder(seen))
    stream = started(informer, server, tools, clock)
    stream.event("ADDED", tools.thing("b", 11))
    stream.event("MODIFIED", tools.thing("a", 12, size=7))
    stream.event("DELETED", tools.thing("b", 13))
    tools.until(lambda: len(seen) == 4)
    assert seen == [
        ("Added", "ns/a", 5, True),
        ("Added", "ns/b", 11, False),
        ("Modified", "ns/a", 12, False),
        ("Deleted", "ns/b", 13, False),
    ]
    assert informer.store.get("ns/a").spec.size == 7
    assert informer.store.keys() == ["ns/a"]
    assert server.requests[1][2]["resourceVersion"] == "10"


def test_a_streaming_list_becomes_the_watch(make: Any, server: Any, tools: Any) -> None:
    """WatchList: one request for both, and a watch's patience after the list."""
    informer = make(streaming=True)
    seen: Seen = []
    informer.add_handler(recorder(seen))
    informer.start()
    tools.until(lambda: server.streams)
    stream = server.streams[0]
    stream.event("ADDED", tools.thing("a", 900))
    stream.event("ADDED", tools.thing("b", 20))
    tools.until(lambda: not stream._chunks)
    assert seen == []
    assert not informer.has_synced
    stream.bookmark(901, ends_list=True)
    tools.until(lambda: informer.has_synced)
    stream.event("MODIFIED", tools.thing("b", 902))
    tools.until(lambda: len(seen) == 3)
    assert {entry[3] for entry in seen[:2]} == {True}
    assert seen[2] == ("Modified", "ns/b", 902, False)
    assert stream.read_timeouts == [10.0, 150.0]
    assert server.requests[0][2]["sendInitialEvents"] == "true"
    assert server.requests[0][2]["resourceVersionMatch"] == "NotOlderThan"
    assert server.count("list") == 0


def test_without_the_ending_bookmark_it_falls_back_to_a_list(
    make: Any, server: Any, tools: Any, clock: FakeClock
) -> None:
    """go-anchors 6.6"""
    server.on_list = lambda *_: tools.listing([tools.thing("a", 5)], 10)
    informer = make(streaming=True)
    informer.start()
    tools.until(lambda: server.streams)
    server.streams[0].event("ADDED", tools.thing("a", 5))
    server.streams[0].feed(TimeoutError("timed out"))
    tools.until(lambda: informer.has_synced, clock)
    assert [kind for kind, _, _ in server.requests[:3]] == ["watch", "list", "watch"]


def test_events_cut_into_single_bytes_are_read_whole(
    make: Any, server: Any, tools: Any, clock: FakeClock
) -> None:
    """bug report 2"""
    informer = make()
    stream = started(informer, server, tools, clock)
    text = "蓝鲸 🐋 – schön"
    thing = tools.thing("a", 12, annotations={"note": text})
    line = json.dumps({"type": "ADDED", "object": thing}, ensure_ascii=False).encode() + b"\n"
    stream.feed(*(line[index : index + 1] for index in range(len(line))))
    tools.until(lambda: "ns/a" in informer.store)
    assert informer.store.get("ns/a").annotations["note"] == text


def test_it_resumes_from_the_last_bookmark_and_never_from_a_listed_item(
    make: Any, server: Any, tools: Any, clock: FakeClock
) -> None:
    """bug report 1"""
    server.on_list = lambda *_: tools.listing([tools.thing("a", 9), tools.thing("b", 2)], 10)
    informer = make()
    started(informer, server, tools, clock).end()
    tools.until(lambda: len(server.streams) == 2, clock)
    server.streams[1].bookmark(44)
    server.streams[1].end()
    tools.until(lambda: len(server.streams) == 3, clock)
    versions = [query["resourceVersion"] for kind, _, query in server.requests if kind == "watch"]
    assert versions == ["10", "10", "44"]
    assert server.count("list") == 1


@pytest.mark.parametrize("way", ["status", "stream"])
def test_410_leads_to_a_new_list_whose_differences_are_told(
    make: Any, server: Any, tools: Any, clock: FakeClock, way: str
) -> None:
    """go-anchors 6.3, 6.5"""
    lists = [
        tools.listing([tools.thing("gone", 5), tools.thing("same", 6), tools.thing("old", 7, uid="u1")], 10),
        tools.listing([tools.thing("same", 6), tools.thing("old", 30, uid="u2"), tools.thing("new", 31)], 40),
    ]
    server.on_list = lambda *_: lists.pop(0)
    informer = make()
    seen: Seen = []
    informer.add_handler(recorder(seen))
    stream = started(informer, server, tools, clock)
    del seen[:]
    if way == "stream":
        stream.event("ERROR", json.loads(tools.refusal(410, "Expired").body))
    else:
        answers = [tools.refusal(410, "Gone"), tools.Stream()]
        server.on_watch = lambda *_: answers.pop(0)
        stream.end()
    tools.until(lambda: len(seen) == 4, clock)
    assert seen == [
        ("Deleted", "ns/gone", 5, False),
        ("Deleted", "ns/old", 7, False),
        ("Added", "ns/old", 30, False),
        ("Added", "ns/new", 31, False),
    ]


def test_it_survives_an_outage_without_a_storm(make: Any, server: Any, tools: Any, clock: FakeClock) -> None:
    """bug reports 3 and 5: refused for a minute, then 503, then 429, and caught up afterwards."""
    informer = make()
    stream = started(informer, server, tools, clock)
    began = clock.monotonic()
    attempts: list[float] = []

    def broken(*_: object) -> Any:
        attempts.append(clock.monotonic() - began)
        if attempts[-1] < 60:
            return ConnectionRefusedError("refused")
        if attempts[-1] < 120:
            return tools.refusal(503, "ServiceUnavailable")
        if attempts[-1] < 180:
            return tools.refusal(429, "TooManyRequests", details={"retryAfterSeconds": 2})
        return tools.Stream()

    server.on_watch = broken
    stream.feed(ConnectionResetError("reset"))
    tools.until(lambda: len(server.streams) == 2, clock, seconds=20)
    told = [at for at in attempts if at >= 120]
    assert len(attempts) - len(told) < 20
    # Then the server said when: at most 35 s after the last try of ours, every two seconds, and no later.
    assert len(told) < 60 / 2 + 3
    assert attempts[-1] < 180 + 3
    assert server.count("list") == 1
    server.streams[-1].event("ADDED", tools.thing("a", 50))
    tools.until(lambda: "ns/a" in informer.store)


def test_one_forbidden_namespace_does_not_stop_the_others(
    make: Any, server: Any, tools: Any, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    """bug report 4"""
    caplog.set_level(logging.INFO, "kubeloop")
    allowed = False

    def on_list(path: str, _: object) -> Any:
        if "/dark/" in path and not allowed:
            return tools.refusal(403, "Forbidden")
        namespace = path.split("/")[5]
        return tools.listing([tools.thing("a", 5, namespace=namespace)], 10)

    server.on_list = on_list
    informer = make(namespaces=["one", "dark", "two"])
    informer.start()
    tools.until(lambda: len(informer.store) == 2 and len(server.streams) == 2, clock)
    tools.until(lambda: server.count("list") > 6, clock)
    assert not informer.has_synced
    assert "list things.example.com in dark: 403 Forbidden" in informer.state
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    told: Any = warnings[0]
    assert told.fields["ns"] == "dark"
    assert told.fields["resource"] == "things.example.com"
    allowed = True
    began = clock.monotonic()
    tools.until(lambda: informer.has_synced, clock)
    assert clock.monotonic() - began < 10
    assert sorted(informer.store.keys()) == ["dark/a", "one/a", "two/a"]


def test_a_missing_crd_is_waited_for(make: Any, server: Any, tools: Any, clock: FakeClock) -> None:
    """go-anchors 5b: patient, visible, and quick when it is there."""
    there = threading.Event()
    server.on_list = lambda *_: (
        tools.listing([tools.thing("a", 5)], 10) if there.is_set() else tools.refusal(404, "NotFound")
    )
    informer = make()
    informer.start()
    tools.until(lambda: server.count("list") == 20, clock)
    assert not informer.wait_synced(0)
    assert "404" in informer.state
    there.set()
    informer.hurry()
    tools.until(lambda: informer.has_synced)
    assert informer.scopes[0].error is None


def test_a_server_that_was_restored_from_a_backup_is_listed_at_once(
    make: Any, server: Any, tools: Any, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    """kubernetes#107457: what is there now is older than what we know, objects made since included."""
    server.on_list = lambda *_: tools.listing([tools.thing("old", 5), tools.thing("new", 90)], 100)
    informer = make()
    stream = started(informer, server, tools, clock)
    server.on_check = lambda *_: tools.listing([], 41)
    server.on_list = lambda *_: tools.listing([tools.thing("old", 5)], 42)
    stream.feed(ConnectionResetError("reset"))
    tools.until(lambda: len(server.streams) == 2, clock)

    assert server.requests[-1][2]["resourceVersion"] == "42"
    assert informer.store.keys() == ["ns/old"]
    assert [kind for kind, _, _ in server.requests] == ["list", "watch", "check", "list", "watch"]
    (line,) = [r for r in caplog.records if "listing anew" in r.message]
    assert "went back from 100 to 41" in str(vars(line)["fields"])
    server.streams[-1].event("MODIFIED", tools.thing("old", 43))
    tools.until(lambda: int(informer.store.get("ns/old").metadata.resource_version) == 43)


def test_an_unreadable_object_blocks_nobody_and_is_reported_once(
    make: Any, server: Any, tools: Any, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    """D4"""
    items = [tools.thing("bad", 5, size="huge", generation=3), tools.thing("good", 6)]
    server.on_list = lambda *_: tools.listing(items, 10)
    informer = make()
    reports: list[tuple[str, str, Any]] = []
    informer.on_undecodable(lambda key, message, metadata: reports.append((key, message, metadata)))
    stream = started(informer, server, tools, clock)
    assert informer.store.keys() == ["ns/good"]
    assert list(informer.undecodable) == ["ns/bad"]
    assert "spec.size" in informer.undecodable["ns/bad"]
    stream.event("ERROR", json.loads(tools.refusal(410, "Expired").body))
    tools.until(lambda: server.count("list") == 2 and len(server.streams) == 2, clock)
    assert len(reports) == 1
    assert reports[0][2]["generation"] == 3
    assert sum("cannot be read" in record.message for record in caplog.records) == 1
    stream = server.streams[-1]
    stream.event("MODIFIED", tools.thing("good", 11, size=[]))
    tools.until(lambda: len(reports) == 2)
    assert len(informer.store) == 0
    stream.event("MODIFIED", tools.thing("bad", 12, size=3))
    stream.event("DELETED", tools.thing("good", 13, size=[]))
    tools.until(lambda: informer.undecodable == {})
    assert informer.store.keys() == ["ns/bad"]
    stream.bookmark(20)
    stream.end()
    tools.until(lambda: len(server.streams) == 3, clock)
    assert server.requests[-1][2]["resourceVersion"] == "20"


def test_a_line_that_is_no_event_is_asked_for_again(
    make: Any, server: Any, tools: Any, clock: FakeClock
) -> None:
    informer = make()
    stream = started(informer, server, tools, clock)
    stream.event("ADDED", tools.thing("a", 11))
    stream.feed(b'{"type":"MODIF\n')
    tools.until(lambda: len(server.streams) == 2, clock)
    assert server.requests[-1][2]["resourceVersion"] == "11"
    assert not informer.dead


def test_a_raising_handler_disturbs_nobody(make: Any, server: Any, tools: Any, clock: FakeClock) -> None:
    """go-anchors 6.9"""
    server.on_list = lambda *_: tools.listing([tools.thing("a", 5), tools.thing("b", 6)], 10)
    informer = make()

    def broken(event: Event[Any], _: bool) -> None:
        raise LookupError(event.object.key)

    seen: Seen = []
    informer.add_handler(broken)
    informer.add_handler(recorder(seen))
    stream = started(informer, server, tools, clock)
    stream.event("MODIFIED", tools.thing("a", 11))
    tools.until(lambda: len(seen) == 3)
    assert informer.handler_errors == 3


def test_it_has_synced_only_when_the_handlers_are_done(make: Any, server: Any, tools: Any) -> None:
    """go-anchors 6.8"""
    server.on_list = lambda *_: tools.listing([tools.thing("a", 5), tools.thing("b", 6)], 10)
    informer = make()
    go = threading.Event()
    informer.add_handler(lambda *_: go.wait(10))
    informer.start()
    tools.until(lambda: len(informer.store) == 2)
    assert not informer.has_synced
    go.set()
    tools.until(lambda: informer.has_synced)


def test_a_late_handler_is_told_of_everything_once(
    make: Any, server: Any, tools: Any, clock: FakeClock
) -> None:
    """go-anchors 6.8: while events keep coming, nothing is lost or told twice."""
    server.on_list = lambda *_: tools.listing([tools.thing("a", 5)], 10)
    informer = make()
    stream = started(informer, server, tools, clock)
    handlers: list[Seen] = []

    def feed() -> None:
        for version in range(11, 211):
            stream.event("MODIFIED" if version > 11 else "ADDED", tools.thing("b", version))

    feeder = threading.Thread(target=feed)
    feeder.start()
    for _ in range(20):
        seen: Seen = []
        handlers.append(seen)
        informer.add_handler(recorder(seen))
    feeder.join()
    tools.until(lambda: informer.store.version_of("ns/b") == 210)
    tools.until(lambda: all(seen and seen[-1][2] == 210 for seen in handlers))
    for seen in handlers:
        versions = [version for _, key, version, _ in seen if key == "ns/b"]
        first = next(kind for kind, key, _, _ in seen if key == "ns/b")
        assert first == "Added"
        assert versions == list(range(versions[0], 211))
        assert [key for _, key, _, initial in seen if initial].count("ns/a") == 1


def test_own_writes_are_visible_at_once_and_told_in_the_watchs_order(
    make: Any, server: Any, tools: Any, clock: FakeClock
) -> None:
    """D3"""
    server.on_list = lambda *_: tools.listing([tools.thing("a", 5)], 10)
    informer = make()
    events: list[Event[Any]] = []
    informer.add_handler(lambda event, _: events.append(event))
    stream = started(informer, server, tools, clock)
    informer.store.write_through(tools.thing("a", 12, size=2))
    assert informer.store.get("ns/a").spec.size == 2
    late: Seen = []
    informer.add_handler(recorder(late))
    assert late == [("Added", "ns/a", 5, True)]
    stream.event("MODIFIED", tools.thing("a", 11, size=9))
    stream.event("MODIFIED", tools.thing("a", 12, size=2))
    tools.until(lambda: len(events) == 2)
    match events[1]:
        case Modified(new, old):
            assert (new.spec.size, old.spec.size) == (2, 1)
    assert events[1].own
    assert late[1:] == [("Modified", "ns/a", 12, False)]


@pytest.mark.parametrize("moment", ["watching", "listing", "opening", "waiting"])
def test_it_stops_at_once_whatever_it_waits_for(make: Any, server: Any, tools: Any, moment: str) -> None:
    """bug report 10; the fixture measures it"""
    informer = make()
    if moment == "listing":
        server.on_list = lambda *_: tools.Stream()
    elif moment == "opening":
        server.on_watch = lambda *_: tools.Stream()
    elif moment == "waiting":
        server.on_list = lambda *_: ConnectionRefusedError()
    informer.start()
    tools.until(lambda: server.requests)


def test_stopping_before_or_while_starting_works(make: Any) -> None:
    make().stop()
    for _ in range(50):
        informer = make()
        informer.start()
        informer.stop()


def test_wait_synced_ends_with_the_stop_event(client: Client, server: Any, tools: Any) -> None:
    server.on_list = lambda *_: ConnectionRefusedError()
    informer: Informer[Any] = Informer(client, tools.Thing, streaming=False)
    informer.start()
    stop = StopEvent()
    timer = threading.Timer(0.05, stop.set)
    timer.start()
    assert not informer.wait_synced(30, stop)
    informer.stop()
    assert informer.join(1)
    timer.join()


def test_deleted_objects_come_as_they_were_last(make: Any, server: Any, tools: Any, clock: FakeClock) -> None:
    server.on_list = lambda *_: tools.listing([tools.thing("a", 5)], 10)
    informer = make()
    events: list[Event[Any]] = []
    informer.add_handler(lambda event, _: events.append(event))
    stream = started(informer, server, tools, clock)
    stream.event("DELETED", tools.thing("a", 11, size=4, deletionTimestamp="2026-01-01T00:00:00Z"))
    tools.until(lambda: len(events) == 2)
    assert isinstance(events[1], Deleted)
    assert events[1].object.spec.size == 4
    assert isinstance(events[0], Added)


def test_a_bug_that_ends_the_thread_is_visible(
    make: Any, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """bug report 6: a dead watch must not look alive."""
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    informer = make()
    informer._reflectors[0].core.next_action = lambda _: 1 / 0
    informer.start()
    tools.until(lambda: informer.dead and not informer.scopes[0].alive)
