"""The status page: what it shows, to people and to programs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest

from kubeloop.client import Client
from kubeloop.clock import FakeClock
from kubeloop.controller import Change, End, Outcome, Verb
from kubeloop.manager import Manager
from kubeloop.manager.history import FAILING, History
from kubeloop.manager.http import Request
from kubeloop.manager.state import ManagerState
from kubeloop.manager.statusz import latency_plot, page, statusz
from kubeloop.sandbox import Sandbox
from webapp_operator.reconcile import webapp_controller

EVIL = "<script>alert(1)</script>"


def outcome(seconds: float = 0.01, error: Exception | None = None) -> Outcome:
    return Outcome(End.FAILED if error else End.DONE, error=error, seconds=seconds)


@pytest.fixture
def manager() -> Iterator[Manager]:
    with Sandbox() as sandbox:
        made = Manager(Client(sandbox.transport()), namespaces=["shop"], clock=FakeClock())
        made.add(webapp_controller())
        yield made


@pytest.fixture
def state(manager: Manager) -> dict[str, Any]:
    history = manager.histories["webapp"]
    for n in range(20):
        history.record(f"shop/app-{n}", outcome(0.001 * 2**n))
    history.record("shop/broken", outcome(error=ConnectionError(f"refused {EVIL}")))
    history.record("shop/broken", outcome(error=ConnectionError(f"refused {EVIL}")))
    return ManagerState(manager, {"name": "test-operator", "version": "1.2.3"}).read()


class Elements(HTMLParser):
    """Names of all elements, and whether all are closed."""

    VOID = frozenset({"meta", "link", "line", "circle"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:  # noqa: ARG002
        self.seen.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:  # noqa: ARG002
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_it_tells_leader_informers_queue_failures_and_the_slowest(state: dict[str, Any]) -> None:
    controller = state["controllers"][0]

    assert state["leader"]["text"] == "no election: this process always works"
    assert [(i["kind"], i["namespace"]) for i in state["informers"]] == [
        ("WebApp", "shop"),
        ("Deployment", "shop"),
        ("Service", "shop"),
    ]
    assert controller["queue"].keys() == {"ready", "delayed", "failing", "adds"}
    assert controller["slowest"][0]["object"] == "shop/app-19"
    assert len(controller["slowest"]) == 10
    (broken,) = controller["failing"]
    assert (broken["object"], broken["times"], broken["since"]) == ("shop/broken", 2, "2026-01-01T00:00:00Z")
    assert len(controller["recent"]) == 22


def test_it_is_a_page_for_people_without_any_script_or_anything_from_elsewhere(state: dict[str, Any]) -> None:
    text = page(state)
    elements = Elements(text)

    assert elements.open == []
    assert "script" not in elements.seen
    assert "circle" in elements.seen
    assert not re.search(r"(src|href)=.?(http|//)|@import|url\(", text)
    assert "shop/broken" in text
    assert EVIL not in text


def test_it_is_json_for_those_who_ask(manager: Manager) -> None:
    handler = statusz(ManagerState(manager, {"name": "test"}).read)
    as_json = handler(Request("GET", "/statusz", {}, {"accept": "application/json"}))
    for_people = handler(Request("GET", "/statusz", {}, {"accept": "text/html,application/json"}))

    assert json.loads(as_json.body)["about"] == {"name": "test"}
    assert for_people.content_type.startswith("text/html")
    assert "default-src 'none'" in for_people.headers["Content-Security-Policy"]


def test_before_the_first_reconcile_there_is_nothing_to_plot() -> None:
    assert "none yet" in latency_plot([])


def test_equal_and_absurd_times_can_be_plotted() -> None:
    for seconds in (0.0, 1e-9, 1.0, 1e5):
        row = {"object": "a", "seconds": seconds, "secondsAgo": 1.0, "end": "done"}
        assert latency_plot([row]).startswith("<svg")
        assert "nan" not in latency_plot([row, row])


class TestHistory:
    def test_a_success_ends_the_trouble(self) -> None:
        history = History(FakeClock())
        history.record("a", outcome(error=OSError("x")))
        assert [t.key for t in history.troubles()] == ["a"]
        history.record("a", outcome())

        assert history.troubles() == []

    def test_trouble_keeps_its_beginning_and_shows_the_newest_error(self) -> None:
        clock = FakeClock()
        history = History(clock)
        history.record("a", outcome(error=OSError("first")))
        began = clock.now()
        clock.advance(60)
        history.record("a", outcome(error=OSError("second")))
        (trouble,) = history.troubles()

        assert (trouble.since, trouble.times, trouble.error) == (began, 2, "second")

    def test_memory_is_bounded(self) -> None:
        history = History(FakeClock())
        for n in range(FAILING + 500):
            history.record(f"app-{n}", outcome(error=OSError("x")))

        assert len(history.troubles()) == FAILING
        assert len(history.recent()) == 512

    def test_writes_are_shown(self) -> None:
        history = History(FakeClock())
        history.record("a", Outcome(End.DONE, changes=[Change(Verb.CREATED, "Deployment", "a")]))

        assert history.recent()[0].writes == 1
