"""Watches: initial events, bookmarks, transitions, expiry, timeouts; as seen on kube-apiserver 1.36."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kubeloop.clock import FakeClock
from kubeloop.sandbox import Sandbox


def kinds(events: list[tuple[str, Any]]) -> list[tuple[str, str]]:
    return [(kind, obj["metadata"].get("name", "")) for kind, obj in events]


def test_a_watch_without_a_revision_begins_with_what_is_there(api: Any) -> None:
    api.create("b")
    api.create("a")
    stream = api.watch(f"{api.WEBAPPS}?watch=1")
    assert kinds(api.events(stream)) == [("ADDED", "a"), ("ADDED", "b")]
    stream.close()


def test_a_watch_from_a_revision_sends_only_what_came_after(api: Any) -> None:
    first = api.create("a")
    stream = api.watch(f"{api.WEBAPPS}?watch=1&resourceVersion={first['metadata']['resourceVersion']}")
    assert api.events(stream) == []
    api.merge(f"{api.WEBAPPS}/a", {"spec": {"replicas": 2}})
    api.delete(f"{api.WEBAPPS}/a")
    events = api.events(stream)
    assert kinds(events) == [("MODIFIED", "a"), ("DELETED", "a")]
    assert int(events[1][1]["metadata"]["resourceVersion"]) > int(events[0][1]["metadata"]["resourceVersion"])
    stream.close()


def test_initial_events_end_with_an_annotated_bookmark(api: Any) -> None:
    api.create("a")
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    stream = api.watch(f"{api.WEBAPPS}?{query}")
    (_, added), (kind, bookmark) = api.events(stream)
    assert kind == "BOOKMARK"
    assert bookmark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert bookmark["metadata"]["resourceVersion"] == added["metadata"]["resourceVersion"]
    stream.close()


def test_declined_initial_events_are_not_sent(api: Any) -> None:
    api.create("a")
    query = "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0"
    stream = api.watch(f"{api.WEBAPPS}?{query}")
    assert api.events(stream) == []
    stream.close()


def test_send_initial_events_needs_its_match(api: Any) -> None:
    reply = api.get(f"{api.WEBAPPS}?watch=1&sendInitialEvents=true")
    assert reply.status == 422
    assert reply.message == (
        'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires '
        "setting resourceVersionMatch to NotOlderThan"
    )


def test_a_revision_from_before_the_history_is_an_error_event(api: Any, sandbox: Sandbox) -> None:
    api.create("a")
    sandbox.compact()
    stream = api.watch(f"{api.WEBAPPS}?watch=1&resourceVersion=1")
    ((kind, status),) = api.events(stream)
    assert stream.status == 200
    assert (kind, status["code"], status["reason"]) == ("ERROR", 410, "Expired")
    assert status["message"].startswith("too old resource version: 1 (")
    assert stream.poll() is None


def test_bookmarks_come_every_minute_and_before_the_end(api: Any, clock: FakeClock, sandbox: Sandbox) -> None:
    stream = api.watch(f"{api.WEBAPPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=90")
    api.events(stream)
    sandbox.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "elsewhere"}})
    clock.advance(59)
    assert api.events(stream) == []
    clock.advance(1)
    ((kind, bookmark),) = api.events(stream)
    assert kind == "BOOKMARK"
    assert bookmark["metadata"]["resourceVersion"] == str(sandbox.backend.store.revision)
    clock.advance(28)
    assert kinds(api.events(stream)) == [("BOOKMARK", "")]
    clock.advance(2)
    assert stream.poll() is None


def test_a_watch_from_the_future_is_silent_until_then(api: Any, clock: FakeClock, sandbox: Sandbox) -> None:
    """As after a restored backup: no event, and no bookmark either, tells that the server has gone back."""
    future = sandbox.backend.store.revision + 4
    query = f"watch=1&allowWatchBookmarks=true&resourceVersion={future}&timeoutSeconds=300"
    stream = api.watch(f"{api.WEBAPPS}?{query}")
    for name in ("a", "b", "c"):
        api.create(name)
    clock.advance(60)
    assert api.events(stream) == []
    for name in ("d", "e"):
        api.create(name)
    assert kinds(api.events(stream)) == [("ADDED", "e")]
    clock.advance(60)
    assert kinds(api.events(stream)) == [("BOOKMARK", "")]
    stream.close()


def test_who_polls_can_wait(api: Any, clock: FakeClock) -> None:
    stream = api.watch(f"{api.WEBAPPS}?watch=1")
    stream.poll()
    stream.wait(0)
    api.create("a")
    stream.wait(3600)
    assert kinds(api.events(stream)) == [("ADDED", "a")]
    waiter = threading.Thread(target=stream.wait, args=(3600,))
    waiter.start()
    stream.close()
    clock.advance(1)
    waiter.join(5)
    assert not waiter.is_alive()


def test_a_watch_that_a_restart_has_ended_knows_nothing_of_later(
    api: Any, clock: FakeClock, sandbox: Sandbox
) -> None:
    """A bookmark from after the end would have its reader miss what has happened meanwhile."""
    stream = api.watch(f"{api.WEBAPPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=300")
    api.events(stream)
    sandbox.restart("keep")
    api.create("a")
    clock.advance(60)
    assert stream.poll() is None


def test_a_watch_ends_after_its_timeout(api: Any, clock: FakeClock) -> None:
    stream = api.watch(f"{api.WEBAPPS}?watch=1&timeoutSeconds=5")
    clock.advance(4.9)
    assert stream.poll() == []
    clock.advance(0.1)
    assert stream.poll() is None


def test_entering_and_leaving_a_selection_is_added_and_deleted(api: Any) -> None:
    revision = api.create("a", labels={"tier": "web"})["metadata"]["resourceVersion"]
    stream = api.watch(f"{api.WEBAPPS}?watch=1&resourceVersion={revision}&labelSelector=tier%3Dweb")
    api.merge(f"{api.WEBAPPS}/a", {"spec": {"replicas": 3}})
    left = api.merge(f"{api.WEBAPPS}/a", {"metadata": {"labels": {"tier": "db"}}}).json
    api.merge(f"{api.WEBAPPS}/a", {"spec": {"replicas": 4}})
    api.merge(f"{api.WEBAPPS}/a", {"metadata": {"labels": {"tier": "web"}}})
    api.delete(f"{api.WEBAPPS}/a")
    events = api.events(stream)
    assert [kind for kind, _ in events] == ["MODIFIED", "DELETED", "ADDED", "DELETED"]
    # The last selected state at the revision of the change that took it out.
    assert events[1][1]["metadata"]["labels"] == {"tier": "web"}
    assert events[1][1]["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]
    stream.close()


def test_the_last_event_of_an_object_shows_what_was_stored(api: Any) -> None:
    """The write that removes the last finalizer deletes the object instead: the event still has it."""
    revision = api.create("a", finalizers=["a.b/c"])["metadata"]["resourceVersion"]
    api.delete(f"{api.WEBAPPS}/a")
    reply = api.merge(f"{api.WEBAPPS}/a", {"metadata": {"finalizers": None}})
    assert "finalizers" not in reply.json["metadata"]
    stream = api.watch(f"{api.WEBAPPS}?watch=1&resourceVersion={revision}")
    (_, _), (kind, last) = api.events(stream)
    assert kind == "DELETED"
    assert last["metadata"]["finalizers"] == ["a.b/c"]
    stream.close()


def test_a_blocked_reader_is_woken_by_an_event_and_by_close(api: Any) -> None:
    stream = api.watch(f"{api.WEBAPPS}?watch=1")
    stream.poll()
    chunks: list[bytes] = []
    first = threading.Event()

    def read() -> None:
        for chunk in stream.chunks():
            chunks.append(chunk)
            first.set()

    reader = threading.Thread(target=read)
    reader.start()
    api.create("a")
    assert first.wait(5)
    stream.close()
    reader.join(5)
    assert not reader.is_alive()
    assert b'"ADDED"' in chunks[0]


def test_deleting_the_definition_ends_the_watches_of_its_objects(api: Any, sandbox: Sandbox) -> None:
    stream = api.watch(f"{api.WEBAPPS}?watch=1")
    stream.poll()
    sandbox.delete("customresourcedefinitions.apiextensions.k8s.io", "webapps.example.com")
    sandbox.settle()
    assert stream.poll() is None
    assert api.get(api.WEBAPPS).status == 404


@pytest.mark.parametrize("query", ["watch=1&resourceVersion=abc", "resourceVersion=abc"])
def test_a_malformed_revision_is_refused(api: Any, query: str) -> None:
    """500 without a reason for a watch, 400 for a list: so does the real server."""
    reply = api.get(f"{api.WEBAPPS}?{query}")
    assert reply.status == (500 if "watch" in query else 400)
    assert 'strconv.ParseUint: parsing "abc": invalid syntax' in reply.message
