"""What a worker makes of an outcome, on a clock that only the test moves."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kubeloop.backoff import TOLD_CAP, TOLD_JITTER, Backoff
from kubeloop.client.errors import api_error
from kubeloop.clock import FakeClock
from kubeloop.controller.engine import End, Outcome
from kubeloop.controller.worker import WorkerPool
from kubeloop.queue import WorkQueue


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
