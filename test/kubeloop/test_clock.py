"""Clocks and the stop event."""

from __future__ import annotations

import os
import signal
import threading
from datetime import timedelta

import pytest

from kubeloop.clock import FakeClock, StopEvent, SystemClock


def test_a_fake_clock_moves_only_when_told_to() -> None:
    clock = FakeClock()
    before = clock.now()
    clock.advance(90)

    assert clock.monotonic() == 90
    assert clock.now() - before == timedelta(seconds=90)
    with pytest.raises(ValueError, match="forward"):
        clock.advance(-1)


def test_whoever_waits_on_a_fake_clock_wakes_when_his_time_has_come() -> None:
    clock = FakeClock()
    stop = StopEvent(clock)
    results: list[bool] = []
    thread = threading.Thread(target=lambda: results.append(stop.wait(10)))
    thread.start()
    while not clock._waiting:
        threading.Event().wait(0.001)
    clock.advance(9)
    thread.join(0.05)
    assert thread.is_alive()
    clock.advance(1)
    thread.join(5)

    assert results == [False]


@pytest.mark.parametrize("timeout", [1e12, float("inf"), -1e12])
def test_absurd_timeouts_do_not_raise(timeout: float) -> None:
    """kube-rs#1772: Python's waits raise OverflowError past 292 years."""
    stop = StopEvent(SystemClock())
    threading.Timer(0.01, stop.set).start()

    assert stop.wait(timeout) is (timeout > 0)


def test_a_stop_wakes_those_who_wait_for_something_else() -> None:
    stop = StopEvent()
    condition = threading.Condition()
    woken = threading.Event()

    def wait() -> None:
        with condition, stop.waking(condition):
            condition.wait_for(stop.is_set, 10)
        woken.set()

    thread = threading.Thread(target=wait)
    thread.start()
    while not stop._others:
        threading.Event().wait(0.001)
    stop.set()
    thread.join(5)

    assert woken.is_set()
    assert not stop._others


def test_a_signal_handler_may_set_it_while_the_main_thread_waits() -> None:
    stop = StopEvent()
    previous = signal.signal(signal.SIGUSR1, lambda *_: stop.set())
    try:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        assert stop.wait(10)
    finally:
        signal.signal(signal.SIGUSR1, previous)
