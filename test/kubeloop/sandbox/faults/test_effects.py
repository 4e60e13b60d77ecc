"""What a client of the in-process transport sees of each fault."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from kubeloop.clock import FakeClock
from kubeloop.sandbox import Sandbox

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WATCH = f"{CONFIG_MAPS}?watch=1&resourceVersion=1&allowWatchBookmarks=1&timeoutSeconds=600"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def names(api: Any, stream: Any) -> list[str]:
    return [f"{kind} {obj['metadata'].get('name', '')}".strip() for kind, obj in api.events(stream)]


def in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """Run `work` on a thread; its result or OSError is found in the list."""
    results: list[object] = []

    def run() -> None:
        try:
            results.append(work())
        except OSError as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, results


def advance_until_done(clock: FakeClock, thread: threading.Thread, seconds: float) -> None:
    for _ in range(200):
        if not thread.is_alive():
            break
        clock.advance(seconds)
        thread.join(0.02)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    ("effect", "error"),
    [
        ({"refuse": True}, ConnectionRefusedError),
        ({"reset": True}, ConnectionResetError),
        ({"truncate": 10}, ConnectionResetError),
        ({"lose_answer": True}, ConnectionResetError),
    ],
)
def test_broken_connections_are_the_oserrors_of_a_network(
    sandbox: Sandbox, api: Any, effect: dict[str, Any], error: type[OSError]
) -> None:
    sandbox.faults.add(verb="create", **effect)
    with pytest.raises(error):
        api.post(CONFIG_MAPS, config_map("a"))
    # What was handled before the connection broke has happened.
    handled = "truncate" in effect or "lose_answer" in effect
    assert (sandbox.get("configmaps", "a", "default") is not None) is handled


def test_a_body_of_ones_own(sandbox: Sandbox, api: Any) -> None:
    sandbox.faults.add(status=502, body="<html>Bad Gateway</html>", count=1)
    sandbox.faults.add(status=500, body={"not": "a Status"}, after=1)
    answer = api.get(CONFIG_MAPS)
    assert (answer.status, answer.headers["content-type"]) == (502, "text/plain")
    assert answer.body == b"<html>Bad Gateway</html>"
    assert api.get(CONFIG_MAPS).json == {"not": "a Status"}


def test_latency_passes_on_the_sandboxs_clock(sandbox: Sandbox, api: Any, clock: FakeClock) -> None:
    sandbox.faults.add(latency=5)
    begin = clock.monotonic()
    thread, results = in_thread(lambda: api.get(CONFIG_MAPS).status)
    advance_until_done(clock, thread, 1)
    assert results == [200]
    assert clock.monotonic() - begin >= 5


@pytest.mark.parametrize("effect", [{"latency": 60}, {"silence": True}])
def test_a_client_gives_up_by_its_own_timeout(
    sandbox: Sandbox, clock: FakeClock, effect: dict[str, Any]
) -> None:
    sandbox.faults.add(**effect)
    transport = sandbox.transport()
    thread, results = in_thread(lambda: transport.request("GET", CONFIG_MAPS, timeout=3))
    advance_until_done(clock, thread, 1)
    assert isinstance(results[0], TimeoutError)
    assert 3 <= clock.monotonic() <= 10


def test_stopping_ends_all_waiting() -> None:
    sandbox = Sandbox().start()
    sandbox.faults.add(latency=3600)
    transport = sandbox.transport()
    thread, results = in_thread(lambda: transport.request("GET", CONFIG_MAPS).status)
    sandbox.stop()
    thread.join(5)
    assert not thread.is_alive()
    assert results


def test_a_watch_is_cut_after_some_events(sandbox: Sandbox, api: Any) -> None:
    for name in ("a", "b", "c"):
        sandbox.create(config_map(name))
    sandbox.faults.add(verb="watch", end_after=2, count=1)
    stream = api.watch(WATCH)
    assert names(api, stream) == ["ADDED a", "ADDED b"]
    assert stream.poll() is None
    assert len(api.events(api.watch(WATCH))) == 3


def test_a_watch_is_reset_after_some_events(sandbox: Sandbox, api: Any) -> None:
    sandbox.create(config_map("a"))
    sandbox.faults.add(verb="watch", reset_after=1)
    stream = api.watch(WATCH)
    assert names(api, stream) == ["ADDED a"]
    with pytest.raises(ConnectionResetError):
        stream.poll()


def test_a_watch_ends_with_410_after_some_events(sandbox: Sandbox, api: Any) -> None:
    sandbox.create(config_map("a"))
    sandbox.faults.add(verb="watch", gone_after=1)
    stream = api.watch(WATCH)
    (_, first), (kind, status) = api.events(stream)
    assert first["metadata"]["name"] == "a"
    assert (kind, status["code"], status["reason"]) == ("ERROR", 410, "Expired")
    assert stream.poll() is None


def test_a_watch_goes_silent_without_ending(sandbox: Sandbox, api: Any, clock: FakeClock) -> None:
    sandbox.faults.add(verb="watch", silence_after=1)
    stream = sandbox.transport().stream("GET", WATCH, read_timeout=30)
    sandbox.create(config_map("a"))
    sandbox.create(config_map("b"))
    assert names(api, stream) == ["ADDED a"]
    clock.advance(1000)
    assert stream.poll() == []  # not even its own timeout ends it
    thread, results = in_thread(lambda: list(stream.chunks()))
    advance_until_done(clock, thread, 10)
    assert isinstance(results[0], TimeoutError)


def test_closing_a_silent_watch_frees_its_reader(sandbox: Sandbox) -> None:
    sandbox.faults.add(verb="watch", silence_after=0)
    stream = sandbox.transport().stream("GET", WATCH)
    thread, results = in_thread(lambda: list(stream.chunks()))
    stream.close()
    thread.join(5)
    assert results == [[]]


def test_bookmarks_are_dropped(sandbox: Sandbox, api: Any, clock: FakeClock) -> None:
    with sandbox.faults.add(verb="watch", drop_bookmarks=True):
        without = api.watch(WATCH)
    usual = api.watch(WATCH)
    clock.advance(61)
    assert names(api, usual) == ["BOOKMARK"]
    assert names(api, without) == []


def test_a_body_comes_in_pieces(sandbox: Sandbox, api: Any) -> None:
    sandbox.create(config_map("a"))
    sandbox.faults.add(verb="watch", pieces=1)
    lines = api.watch(WATCH).poll()
    assert {len(line) for line in lines} == {1}
    assert json.loads(b"".join(lines))["object"]["metadata"]["name"] == "a"


def test_a_watch_breaks_off_in_the_middle_of_a_line(sandbox: Sandbox, api: Any) -> None:
    sandbox.create(config_map("a"))
    sandbox.faults.add(verb="watch", truncate=20)
    stream = api.watch(WATCH)
    assert stream.poll() == [b'{"type":"ADDED","obj']
    with pytest.raises(ConnectionResetError):
        stream.poll()


def test_a_lagging_server_answers_from_the_past(sandbox: Sandbox, api: Any) -> None:
    sandbox.create(config_map("a", x="1"))
    then = api.get(CONFIG_MAPS).json["metadata"]["resourceVersion"]
    sandbox.patch("configmaps", "a", {"data": {"x": "2"}}, "default")
    sandbox.create(config_map("b"))
    sandbox.faults.add(resource="configmaps", stale=2)
    listed = api.get(f"{CONFIG_MAPS}?resourceVersion=0").json
    assert [(o["metadata"]["name"], o["data"]["x"]) for o in listed["items"]] == [("a", "1")]
    assert listed["metadata"]["resourceVersion"] == then
    assert api.get(f"{CONFIG_MAPS}/a").json["data"] == {"x": "1"}
    assert api.get(f"{CONFIG_MAPS}/b").status == 404
    now = sandbox.backend.store.revision
    again = api.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={now}&timeoutSeconds=60")
    assert names(api, again) == ["MODIFIED a", "ADDED b"]
    initial = api.watch(f"{CONFIG_MAPS}?watch=1&timeoutSeconds=60")
    assert names(api, initial) == ["ADDED a", "MODIFIED a", "ADDED b"]


def test_a_lagging_server_has_forgotten_no_less_than_others(sandbox: Sandbox, api: Any) -> None:
    """A watch that began later than it was asked to would leave something out."""
    sandbox.create(config_map("a"))
    then = sandbox.backend.store.revision
    sandbox.create(config_map("b"))
    sandbox.compact()
    sandbox.create(config_map("c"))
    sandbox.faults.add(resource="configmaps", stale=2)
    (line,) = api.watch(f"{CONFIG_MAPS}?watch=1&resourceVersion={then}").poll() or ()
    assert json.loads(line)["object"]["code"] == 410


def test_writes_of_a_lagging_server_are_as_usual(sandbox: Sandbox, api: Any) -> None:
    sandbox.faults.add(stale=5)
    assert api.post(CONFIG_MAPS, config_map("a")).status == 201
    assert api.merge(f"{CONFIG_MAPS}/a", {"data": {"x": "2"}}).status == 200
