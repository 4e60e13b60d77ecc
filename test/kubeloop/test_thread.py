"""The life of a thread that somebody owns."""

from __future__ import annotations

import threading

import pytest

from kubeloop.clock import FakeClock, SystemClock
from kubeloop.thread import ThreadOwner


class Sleeper(ThreadOwner):
    """Sleeps, then hangs where only `_interrupt` can reach it."""

    def __init__(self, clock: FakeClock | SystemClock, seconds: float = 0.0) -> None:
        super().__init__("sleeper", clock)
        self._seconds = seconds
        self.awake, self._door = threading.Event(), threading.Event()

    def _run(self) -> None:
        self._pause(self._seconds)
        self.awake.set()
        self._door.wait(10)

    def _interrupt(self) -> None:
        self._door.set()


def test_it_runs_under_its_name_as_a_daemon_until_it_is_stopped() -> None:
    sleeper = Sleeper(SystemClock())
    assert not sleeper.alive
    sleeper.start()
    assert sleeper.awake.wait(5)
    assert sleeper.alive
    (thread,) = [each for each in threading.enumerate() if each.name == "sleeper"]
    assert thread.daemon
    assert not sleeper.join(0.01)
    sleeper.stop()
    assert sleeper.join(5)
    assert not sleeper.alive
    sleeper.stop()
    assert sleeper.join()


def test_a_pause_ends_with_its_time_or_at_once_when_stopped() -> None:
    clock = FakeClock()
    sleeper = Sleeper(clock, seconds=60)
    sleeper.start()
    while not clock._waiting:
        threading.Event().wait(0.001)
    clock.advance(59)
    assert not sleeper.awake.wait(0.02)
    clock.advance(1)
    assert sleeper.awake.wait(5)
    sleeper.stop()
    assert sleeper.join(5)

    second = Sleeper(clock, seconds=60)
    second.start()
    second.stop()
    assert second.join(5)


def test_one_that_never_ran_has_ended_and_one_that_was_stopped_before_ends_at_once() -> None:
    sleeper = Sleeper(SystemClock(), seconds=60)
    assert sleeper.join(0)
    sleeper.stop()
    sleeper.start()
    assert sleeper.join(5)
    with pytest.raises(RuntimeError, match="once"):
        sleeper.start()


def test_what_it_does_must_be_said() -> None:
    with pytest.raises(NotImplementedError):
        ThreadOwner("nothing", SystemClock())._run()
