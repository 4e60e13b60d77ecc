"""Behaviours 8 to 10: handlers, and what they and reconciles may do to cached objects."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kubeloop.cache import Event, Informer
from kubeloop.client import Client
from kubeloop.controller import Context, Controller, Result
from kubeloop.model import Deployment, DynamicObject, Resource
from webapp_operator.types import WebApp

MAPS = Resource("", "v1", "configmaps", "ConfigMap")


def config_map(name: str, number: int = 0) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"team": "blue"}},
        "data": {"number": str(number)},
    }


@pytest.fixture
def informer_of(stage: Any) -> Iterator[Callable[..., Informer[Any]]]:
    """Makes informers of ConfigMaps; they end with the test."""
    made: list[Informer[Any]] = []

    def make(**options: Any) -> Informer[Any]:
        client = Client(stage.sandbox.transport(), clock=stage.clock)
        made.append(Informer[DynamicObject](client, MAPS, clock=stage.clock, **options))
        return made[-1]

    yield make
    for informer in made:
        informer.stop()
        assert informer.join(5)
        assert not informer.dead


def test_workers_start_when_every_initial_event_was_handled(stage: Any) -> None:
    """Behaviour 8: synced means that every initial event was *handled*, not just stored; workers start after
    that, or an empty cache would look like missing children (controller-runtime#3406)."""
    for name in ("a", "b", "c"):
        stage.make(name)
    handling, gate = threading.Event(), threading.Event()
    handled: list[tuple[str, bool]] = []
    reconciled: list[int] = []

    def reconcile(_app: WebApp, _ctx: Context[WebApp]) -> Result:
        reconciled.append(len(handled))
        return Result()

    def keys(app: WebApp) -> list[str]:
        handling.set()
        gate.wait(30)
        handled.append((app.name, True))
        return []

    controller = Controller(WebApp, reconcile, field_manager="test").watches(WebApp, keys)
    operator = stage.operate(controller)
    assert handling.is_set()
    stage.pass_time(5)
    assert len(operator.manager.informers[WebApp].store) == 3
    assert not operator.synced
    assert "WebApp" in operator.unready()
    assert reconciled == []
    gate.set()
    stage.pass_time(1)

    assert operator.synced
    assert reconciled == [3, 3, 3]


def test_a_late_handler_hears_everything_once(stage: Any, informer_of: Any) -> None:
    """Behaviour 8: a handler that comes late gets what is there as initial additions, and nothing is lost or
    told twice around its registration, while changes keep coming."""
    informer = informer_of()
    for number in range(10):
        stage.sandbox.create(config_map(f"m{number}"))
    informer.start()
    stage.settle()
    told: list[list[tuple[str, str, int, bool]]] = []

    def change() -> None:
        for number in range(120):
            stage.sandbox.apply(config_map(f"m{number % 12}", number))

    changer = threading.Thread(target=change)
    changer.start()
    for _ in range(25):
        mine: list[tuple[str, str, int, bool]] = []
        told.append(mine)

        def hear(event: Event[Any], initial: bool, mine: Any = mine) -> None:
            mine.append((type(event).__name__, event.object.key, event.object.resource_version, initial))

        informer.add_handler(hear)
    changer.join()
    stage.settle()

    final = {thing.key: thing.resource_version for thing in informer.store.list()}
    for mine in told:
        assert {key: version for _, key, version, _ in mine} == final
        for key in final:
            versions = [version for _, k, version, _ in mine if k == key]
            assert versions == sorted(set(versions)), "told twice or out of order"
            assert next(kind for kind, k, _, _ in mine if k == key) == "Added"
        # The initial ones come first.
        flags = [initial for *_, initial in mine]
        assert flags == sorted(flags, reverse=True)


def test_a_raising_handler_disturbs_nobody_and_is_counted(stage: Any) -> None:
    """Behaviour 9: a raising handler neither keeps events from the others nor ends the informer's thread."""

    def raising(app: WebApp) -> list[str]:
        raise LookupError(app.name)

    reconciled: list[str] = []

    def reconcile(app: WebApp, _ctx: Context[WebApp]) -> Result:
        reconciled.append(app.name)
        return Result()

    controller = Controller(WebApp, reconcile, field_manager="test").watches(WebApp, raising)
    stage.make("early")
    operator = stage.operate(controller)
    for number in range(20):
        stage.make(f"app{number}")
    stage.pass_time(1)

    assert sorted(reconciled) == sorted(["early", *(f"app{number}" for number in range(20))])
    assert operator.unwell() == ""
    assert operator.unready() == ""
    assert 'kubeloop_informer_handler_errors_total{resource="webapps.example.com"} 21.0' in operator.metrics()


def test_a_slow_handler_holds_back_only_its_own_watch_and_loses_nothing(stage: Any, informer_of: Any) -> None:
    """Behaviour 9: the backlog behind a slow handler is bounded.

    Differs from client-go, which gives every handler an unbounded buffer: here handlers run on the informer's
    thread, one at a time, and must only map objects to keys (kubeloop/cache/informer.py). One that is slow
    holds the watch back, so the backlog stays with the server; what may be slow, reconciles, have threads of
    their own.
    """
    slow, other = informer_of(), informer_of()
    gate, heard = threading.Event(), []

    def handle(event: Event[Any], _initial: bool) -> None:
        gate.wait(30)
        heard.append(event.object["data"]["number"])

    slow.add_handler(handle)
    slow.start()
    other.start()
    stage.settle()
    for number in range(200):
        stage.sandbox.apply(config_map("busy", number))
    stage.settle()
    assert other.store.get("default/busy")["data"]["number"] == "199"
    assert heard == []
    gate.set()
    stage.settle()

    assert heard == [str(number) for number in range(200)]
    assert slow.store.get("default/busy")["data"]["number"] == "199"


def test_a_slow_reconcile_keeps_no_event_from_the_cache(stage: Any) -> None:
    """Behaviour 9: the same for reconciles, however slow: the caches follow the server meanwhile."""
    gate = threading.Event()

    def reconcile(app: WebApp, _ctx: Context[WebApp]) -> Result:
        if app.name == "slow":
            gate.wait(30)
        return Result()

    operator = stage.operate(Controller(WebApp, reconcile, field_manager="test"), workers=1)
    stage.make("slow")
    for number in range(50):
        stage.make(f"app{number}")
    stage.settle()
    try:
        assert len(operator.manager.informers[WebApp].store) == 51
        assert operator.unready() == ""
        assert operator.controller.queue.stats().ready == {0: 50}, "the backlog is keys, and it is measured"
    finally:
        gate.set()
    stage.settle()
    assert len(operator.outcomes) == 51


def attempts(thing: Any) -> list[Callable[[], object]]:
    """Ways to change a cached object in place."""
    metadata = thing.metadata
    return [
        lambda: setattr(thing, "metadata", None),
        lambda: setattr(metadata, "name", "other"),
        lambda: thing.labels.__setitem__("team", "red"),
        lambda: thing.labels.clear(),
        lambda: metadata.annotations.update({"x": "y"}),
        lambda: metadata.finalizers.append("x"),
    ]


def test_nothing_that_is_done_to_an_object_reaches_the_cache(stage: Any, informer_of: Any) -> None:
    """Behaviour 10: what user code gets does not alias the store: it cannot be changed, or is a copy.
    Objects of classes and dynamic ones, from get, list, an index, and events."""
    operator = stage.operate()
    stage.make(env=[{"name": "A", "value": "1"}])
    stage.ready()
    stage.sandbox.patch("deployments.apps", "hello", {"metadata": {"labels": {"team": "blue"}}}, "default")
    stage.sandbox.create(config_map("m"))
    maps = informer_of()
    maps.store.add_index("team", lambda thing: [thing.labels.get("team", "")])
    events: list[Any] = []
    maps.add_handler(lambda event, _: events.append(event.object))
    maps.start()
    stage.settle()
    stage.sandbox.apply(config_map("m", 5))  # what has changed lately may be kept decoded
    stage.settle()
    apps, deployments = (operator.manager.informers[kind].store for kind in (WebApp, Deployment))
    (found,) = maps.store.by_index("team", "blue")
    for store, thing in (
        (apps, apps.get("default/hello")),
        (apps, apps.list()[0]),
        (deployments, deployments.get("default/hello")),
        (maps.store, found),
        (maps.store, maps.store.list()[0]),
        (maps.store, maps.store.get("default/m")),
        (maps.store, events[-1]),
    ):
        key, before = thing.key, store.get(thing.key).to_wire()
        done = 0
        ways = attempts(thing)
        wire = thing.to_wire()
        ways.append(lambda wire=wire: wire["metadata"].update({"name": "evil"}))
        if isinstance(thing, DynamicObject):
            ways.append(lambda thing=thing: thing["data"].__setitem__("number", "666"))
        if isinstance(thing, Deployment):
            ways.append(lambda thing=thing: thing.spec["template"]["spec"].__setitem__("containers", []))
        for way in ways:
            try:
                way()
            except (AttributeError, TypeError, ValueError):
                done += 1  # refused
        assert done >= 3
        again = store.get(key)
        assert (again.key, again.to_wire()) == (key, before)
    assert [thing.name for thing in maps.store.by_index("team", "blue")] == ["m"]
    assert maps.store.by_index("team", "red") == []


def test_a_failing_index_or_transform_leaves_the_store_whole(stage: Any, informer_of: Any) -> None:
    """Behaviour 10: an exception of an index function or a transform half-updates nothing (a panic in Go)."""

    def transform(raw: Any) -> Any:
        if raw["data"]["number"] == "13":
            raise ValueError("unlucky")
        return raw

    def by_number(thing: Any) -> list[str]:
        if thing["data"]["number"] == "7":
            raise KeyError("seven")
        return [thing["data"]["number"]]

    informer = informer_of(transform=transform)
    informer.store.add_index("number", by_number)
    informer.store.add_index("team", lambda thing: [thing.labels["team"]])
    informer.start()
    stage.settle()
    for number in (1, 7, 13, 2):
        stage.sandbox.apply(config_map("a", number))
        stage.sandbox.apply(config_map(f"b{number}", number))
    stage.settle()

    assert informer.store.get("default/a")["data"]["number"] == "2"
    names = sorted(thing.name for thing in informer.store.by_index("team", "blue"))
    assert names == sorted(thing.name for thing in informer.store.list())
    assert set(names) == {"a", "b1", "b2", "b7"}
    assert [thing.name for thing in informer.store.by_index("number", "1")] == ["b1"]
    assert sorted(thing.name for thing in informer.store.by_index("number", "2")) == ["a", "b2"]
    assert list(informer.undecodable) == ["default/b13"]
    stage.sandbox.apply(config_map("b13", 3))
    stage.settle()
    assert informer.undecodable == {}
    assert [thing.name for thing in informer.store.by_index("number", "3")] == ["b13"]
