"""What a worker makes of an outcome, on a clock that only the test moves."""

from __future__ import annotations

import logging
import random
from datetime import timedelta
from typing import Any

import pytest

from kubeloop.backoff import TOLD_CAP, TOLD_JITTER, Backoff
from kubeloop.client.errors import api_error
from kubeloop.clock import FakeClock
from kubeloop.controller.engine import End, Outcome
from kubeloop.controller.worker import WorkerPool
from kubeloop.model import Resource
from kubeloop.queue import WorkQueue


class SettledEngine:
    """Every reconcile finds nothing to do, and wants to look again."""

    class kind:  # noqa: N801 - as the engine has it
        resource = Resource("example.com", "v1", "things", "Thing")

    def __init__(self, requeue_after: timedelta) -> None:
        self.requeue_after = requeue_after

    def process(self, _key: str) -> Outcome:
        return Outcome(End.DONE, self.requeue_after)


class FailingEngine:
    """Every reconcile fails with `error`."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def process(self, _key: str) -> Outcome:
        return Outcome(End.FAILED, error=self.error)


def busy(retry_after: str) -> Exception:
    return api_error("patch", "deployments.apps/default/hello", 429, b"", {"retry-after": retry_after})


def waits(error: Exception, times: int = 1) -> list[float]:
    """The seconds after which each next try is made, with an own schedule of exactly one second."""
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock, backoff=Backoff(base=1.0, cap=1.0, jitter=0.0))
    engine: Any = FailingEngine(error)
    pool = WorkerPool("test", queue, engine, size=1, logger=logging.getLogger("kubeloop.test"), clock=clock)
    queue.add("default/hello")
    found = []
    for _ in range(times):
        assert pool.process_next(timeout=0)
        queue.add("default/hello", urgent=True)
        waited = 0.0
        while queue.stats().delayed:
            clock.advance(0.5)
            waited += 0.5
        found.append(waited)
    queue.shut_down()
    return found


def test_what_a_server_asks_for_is_waited_for_whatever_the_own_schedule_says() -> None:
    """The client has given the request back, because it was told to wait longer than a worker should."""
    assert all(30.0 <= wait <= 30.0 * (1 + TOLD_JITTER) + 0.5 for wait in waits(busy("30"), times=3))


@pytest.mark.parametrize("error", [busy("0.1"), RuntimeError("x"), api_error("x", "y", 500, b"")])
def test_otherwise_it_is_the_own_schedule(error: Exception) -> None:
    assert waits(error, times=3) == [1.0, 1.0, 1.0]


def test_a_retry_after_is_not_believed_for_ever() -> None:
    assert waits(busy("1000000000000"))[0] <= TOLD_CAP * (1 + TOLD_JITTER) + 0.5


class RecordingQueue(WorkQueue[str]):
    """Knows for when things were queued."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock=clock)
        self.clock = clock
        self.dues: list[float] = []

    def add(self, key: str, *, after: float = 0.0, priority: int = 0, urgent: bool = False) -> None:
        if after:
            self.dues.append(self.clock.monotonic() + after)
        super().add(key, after=after, priority=priority, urgent=urgent)


@pytest.mark.parametrize(("seconds", "together"), [(300, True), (2, False)])
def test_what_is_looked_at_again_much_later_comes_at_whole_seconds(seconds: int, together: bool) -> None:
    """Spread by a tenth, yet thirty of ten thousand are one wake-up; what is wanted soon is not late."""
    clock = FakeClock()
    clock.advance(1000.25)
    began = clock.monotonic()
    queue = RecordingQueue(clock)
    engine: Any = SettledEngine(timedelta(seconds=seconds))
    log = logging.getLogger("kubeloop.test")
    pool = WorkerPool("test", queue, engine, size=1, logger=log, clock=clock, rng=random.Random(1))
    for number in range(50):
        queue.add(f"default/{number}")
        assert pool.process_next(timeout=0)
    queue.shut_down()

    assert len(queue.dues) == 50
    assert all(0.9 * seconds <= due - began <= 1.1 * seconds + 1 for due in queue.dues)
    assert all(abs(due - round(due)) < 1e-6 for due in queue.dues) is together
