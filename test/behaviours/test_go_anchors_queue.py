"""Behaviours 1, 2 and 14: the work queue and its backoff, seen through a controller's real workers."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kubeloop.backoff import Backoff
from kubeloop.clock import FakeClock
from kubeloop.controller import Context, Controller, Result, TerminalError
from kubeloop.controller.result import Blocked
from kubeloop.queue import LOW_PRIORITY, WorkQueue
from kubeloop.queue.workqueue import RETRY_BACKOFF
from webapp_operator.types import WebApp

ENDS: dict[str, Callable[[], Result]] = {
    "returns": Result,
    "raises": lambda: (_ for _ in ()).throw(ValueError("no")),
    "exits": lambda: (_ for _ in ()).throw(SystemExit(1)),
    "is interrupted": lambda: (_ for _ in ()).throw(KeyboardInterrupt()),
    "is terminal": lambda: (_ for _ in ()).throw(TerminalError("no")),
}


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("end", ENDS)
def test_a_key_that_is_added_while_it_is_processed_runs_once_more(stage: Any, end: str, workers: int) -> None:
    """Behaviour 1: a key re-added N times while it is processed runs exactly once more, at the tail, never
    twice at a time, and on whatever path the first run ends (client-go util/workqueue, Done)."""
    runs: list[str] = []
    inside: set[str] = set()
    clashes: list[str] = []
    gate = threading.Event()

    def reconcile(app: WebApp, _ctx: Context[WebApp]) -> Result:
        if app.name in inside:
            clashes.append(app.name)
        inside.add(app.name)
        runs.append(app.name)
        try:
            if runs.count("hello") == 1 and app.name == "hello":
                gate.wait(30)
                return ENDS[end]()
            return Result()
        finally:
            inside.discard(app.name)

    operator = stage.operate(Controller(WebApp, reconcile, field_manager="test"), workers=workers)
    stage.make()
    stage.settle()
    for number in range(25):
        stage.touch(number)
    stage.make("other")
    stage.pass_time(1)
    gate.set()
    stage.pass_time(5)

    assert runs == ["hello", "other", "hello"]
    assert clashes == []
    assert operator.unwell() == ""
    assert len(operator.controller.queue) == 0


def test_an_event_brings_a_delayed_run_forward_and_makes_no_second_one(stage: Any) -> None:
    """Behaviour 2: an immediate add while a delayed one is pending gives one run, not two
    (controller-runtime's priority queue; client-go#131 has two)."""
    runs: list[float] = []

    def reconcile(_app: WebApp, _ctx: Context[WebApp]) -> Result:
        runs.append(stage.time)
        return Result(timedelta(seconds=300))

    stage.operate(Controller(WebApp, reconcile, field_manager="test"))
    stage.make()
    stage.pass_time(100, step=1)
    stage.touch(1)
    stage.pass_time(265, step=1)  # past the time of the first, with its jitter of a tenth
    assert runs == [0.0, 100.0]
    stage.pass_time(70, step=1)
    assert len(runs) == 3


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((300.0, LOW_PRIORITY), (0.0, 0)),
        ((300.0, 7), (0.0, LOW_PRIORITY)),
        ((0.0, LOW_PRIORITY), (300.0, 7)),
        ((5.0, 3), (300.0, LOW_PRIORITY)),
    ],
)
def test_merging_keeps_the_earlier_time_and_the_higher_priority(
    first: tuple[float, int], second: tuple[float, int]
) -> None:
    """Behaviour 2: merging two adds of a key lowers nothing: earliest time, highest priority."""
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    for after, priority in (first, second):
        queue.add("a", after=after, priority=priority)
    earliest, highest = min(first[0], second[0]), max(first[1], second[1])
    if earliest:
        clock.advance(earliest - 0.01)
        assert queue.get(0) is None
        clock.advance(0.02)
    item = queue.get(0)

    assert item is not None
    assert item.priority == highest
    queue.done("a")
    clock.advance(1000)
    assert queue.get(0) is None


def test_failures_are_retried_on_a_bounded_jittered_schedule(stage: Any) -> None:
    """Behaviour 14: exponential per object, capped, without overflow.

    Differs from client-go's 5 ms to 1000 s without jitter, see docs/design/backoff.md: 0.1 s to 60 s,
    jittered by half.
    """
    tries: list[float] = []

    def reconcile(_app: WebApp, _ctx: Context[WebApp]) -> Result:
        tries.append(stage.time)
        raise OSError("no")

    operator = stage.operate(Controller(WebApp, reconcile, field_manager="test"))
    stage.make()
    stage.pass_time(8, step=0.01)
    stage.pass_time(600, step=1)
    gaps = [b - a for a, b in itertools.pairwise(tries)]

    for number, gap in enumerate(gaps):
        full = min(60.0, 0.1 * 2**number)
        slack = 0.02 if sum(gaps[: number + 1]) < 7.9 else 1.01
        assert full / 2 <= gap <= full + slack, (number, gap)
    assert len(set(gaps[-8:])) > 1, "no jitter"
    assert operator.controller.queue.failures("default/hello") == len(tries)
    for failures in (0, 1, 10**3, 10**6, 10**18):
        assert 0 < RETRY_BACKOFF.delay(failures, random.Random(failures)) <= 60
        assert 0 < Backoff(5e-324, 1e308, factor=1e300).delay(failures, random.Random(1)) <= 1e308


@pytest.mark.parametrize(
    ("end", "resets"),
    [
        pytest.param(Result(), True, id="success"),
        pytest.param(Result(timedelta(seconds=10)), True, id="requeue after"),
        pytest.param(Blocked("others"), True, id="blocked"),
        pytest.param(TerminalError("bad"), True, id="terminal"),
        pytest.param(OSError("no"), False, id="error"),
    ],
)
def test_whatever_is_no_failure_resets_the_backoff(stage: Any, end: Result | Exception, resets: bool) -> None:
    """Behaviour 14: reset on success and on requeue-after, and nothing else than an error counts."""
    ends: list[Result | Exception] = [*[OSError("no")] * 6, end]
    tries: list[float] = []

    def reconcile(_app: WebApp, _ctx: Context[WebApp]) -> Result:
        tries.append(stage.time)
        what = ends.pop(0) if ends else OSError("no")
        if isinstance(what, Exception):
            raise what
        return what

    stage.operate(Controller(WebApp, reconcile, field_manager="test"))
    stage.make()
    stage.until(lambda: not ends, step=0.05)
    stage.pass_time(0.1, step=0.05)
    stage.touch(1)
    stage.pass_time(15, step=0.05)

    # After a reset the next failures come at short intervals again.
    later = [b - a for a, b in itertools.pairwise(tries[7:])]
    assert (min(later, default=99.0) < 0.3) is resets


def test_a_terminal_error_is_counted_and_not_retried(stage: Any) -> None:
    """Behaviour 14: a terminal error is not retried, yet counted as an error and as a terminal one.

    Differs: an error cannot come with a requeue-after, as a reconcile either returns or raises
    (kubeloop/controller/result.py); and a terminal error resets the backoff.
    """

    def reconcile(_app: WebApp, _ctx: Context[WebApp]) -> Result:
        raise TerminalError("the spec is bad")

    operator = stage.operate(Controller(WebApp, reconcile, field_manager="test"))
    stage.make()
    stage.pass_time(2000, step=10)

    assert len(operator.outcomes) == 1
    page = operator.metrics()
    for line in (
        'controller_runtime_reconcile_errors_total{controller="webapp"} 1.0',
        'controller_runtime_terminal_reconcile_errors_total{controller="webapp"} 1.0',
        'controller_runtime_reconcile_total{controller="webapp",result="error"} 1.0',
        'workqueue_retries_total{controller="webapp",name="webapp"} 0.0',
    ):
        assert line in page
