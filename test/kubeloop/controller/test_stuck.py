"""Reconciles that hang are shown, once, with the line of code."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator

import pytest

from kubeloop.clock import FakeClock
from kubeloop.controller.stuck import RECONCILE_DEADLINE, StuckWatch

NAME = "kubeloop.test.stuck"


class Worker:
    """A thread that hangs in `hang_here` until it is let go."""

    def __init__(self, watch: StuckWatch, key: str = "default/hello") -> None:
        self.entered, self.release = threading.Event(), threading.Event()
        self._watch, self._key = watch, key
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        assert self.entered.wait(5)

    def _run(self) -> None:
        self._watch.began(self._key)
        try:
            self.hang_here()
        finally:
            self._watch.ended()

    def hang_here(self) -> None:
        self.entered.set()
        self.release.wait(10)

    def end(self) -> None:
        self.release.set()
        self.thread.join(5)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def counted() -> list[None]:
    return []


@pytest.fixture
def watch(clock: FakeClock, counted: list[None]) -> Iterator[StuckWatch]:
    made = StuckWatch("test", logging.getLogger(NAME), on_stuck=lambda: counted.append(None), clock=clock)
    made.start()
    yield made
    made.stop()
    assert made.join(5)


def wait_for(holds: Callable[[], object]) -> None:
    pause = threading.Event()
    for _ in range(500):
        if holds():
            return
        pause.wait(0.01)
    pytest.fail("waited in vain")


def lines(caplog: pytest.LogCaptureFixture, message: str) -> list[dict[str, object]]:
    return [vars(r)["fields"] for r in caplog.records if r.getMessage() == message]


def test_one_warning_names_the_object_and_the_line_where_it_hangs(
    watch: StuckWatch, clock: FakeClock, counted: list[None], caplog: pytest.LogCaptureFixture
) -> None:
    worker = Worker(watch)
    clock.advance(RECONCILE_DEADLINE - 1)
    assert watch.stuck == 0
    clock.advance(1)
    wait_for(lambda: counted)
    clock.advance(3600)
    (told,) = lines(caplog, "reconcile is stuck")

    assert (told["ns"], told["name"], told["seconds"]) == ("default", "hello", RECONCILE_DEADLINE)
    assert "hang_here" in str(told["stack"])
    assert watch.stuck == 1
    worker.end()
    assert watch.stuck == 0
    assert len(lines(caplog, "stuck reconcile has ended")) == 1
    assert len(counted) == 1


def test_a_later_reconcile_has_a_deadline_of_its_own(
    watch: StuckWatch, clock: FakeClock, counted: list[None]
) -> None:
    first = Worker(watch, "default/first")
    clock.advance(40)
    second = Worker(watch, "default/second")
    first.end()
    clock.advance(40)
    assert watch.stuck == 0
    clock.advance(20)

    wait_for(lambda: counted)
    second.end()


def test_a_reconcile_that_begins_after_a_quiet_time_is_watched(
    watch: StuckWatch, clock: FakeClock, counted: list[None]
) -> None:
    clock.advance(1000)
    worker = Worker(watch)
    clock.advance(RECONCILE_DEADLINE)

    wait_for(lambda: counted)
    worker.end()
