"""The world in which soaks take place."""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Callable, Iterator

import pytest
from soak.actors import Process, ProcessClock
from soak.harness import SoakFailure, world
from soak.simulation import Simulation, SimulationError

from kubeloop.clock import StopEvent


@pytest.fixture
def it() -> Iterator[Simulation]:
    with Simulation(1) as simulation:
        yield simulation


def live(act: Callable[[], object], check: Callable[[Simulation], None] = lambda _it: None) -> None:
    """A world of its own, for a while."""
    with Simulation(1) as it:
        it.checks.append(lambda: check(it))
        it.spawn("t", act)
        for _ in range(20):
            it.sleep(1)


def test_time_passes_only_when_everybody_waits(it: Simulation) -> None:
    seen: list[tuple[str, float]] = []

    def tick(name: str, seconds: float) -> None:
        for _ in range(3):
            it.sleep(seconds)
            seen.append((name, it.time))

    it.spawn("a", lambda: tick("a", 10.0))
    it.spawn("b", lambda: tick("b", 4.0))
    it.sleep(3600)
    assert seen == [("b", 4), ("b", 8), ("a", 10), ("b", 12), ("a", 20), ("a", 30)]
    assert it.time == 3600


def test_threads_of_the_product_are_actors_with_their_own_waits(it: Simulation) -> None:
    clock = ProcessClock(it, Process("p"), rate=2.0, offset=100.0)
    stop, seen = StopEvent(clock), []

    def wait() -> None:
        seen.append(stop.wait(10))
        seen.append(stop.wait())

    thread = threading.Thread(target=wait)
    thread.start()
    it.sleep(4.9)
    assert seen == []
    it.sleep(0.2)
    assert seen == [False]
    assert clock.monotonic() == pytest.approx(110.2)
    stop.set()
    thread.join()
    assert seen == [False, True]


def test_a_join_waits_in_the_worlds_time(it: Simulation) -> None:
    thread = threading.Thread(target=lambda: it.sleep(50))
    thread.start()
    thread.join(20)
    assert thread.is_alive()
    assert it.time == 20
    thread.join(40)
    assert not thread.is_alive()
    assert it.time == 50


def test_notify_wakes_as_many_as_it_says(it: Simulation) -> None:
    condition, woken = threading.Condition(), []

    def wait(number: int) -> None:
        with condition:
            woken.append((number, condition.wait(60)))

    for number in range(3):
        it.spawn("w", lambda number=number: wait(number))  # type: ignore[misc]
    it.sleep(1)
    with condition:
        condition.notify()
    it.sleep(1)
    assert [notified for _, notified in woken] == [True]
    with condition:
        condition.notify_all()
    it.sleep(100)
    assert [notified for _, notified in woken] == [True] * 3


def test_a_suspended_process_goes_on_where_it_was(it: Simulation) -> None:
    process, seen = Process("p"), []

    def tick() -> None:
        while True:
            it.sleep(1)
            seen.append(it.time)

    it.spawn("t", tick, process)
    it.sleep(1.5)
    process.suspended = True
    it.sleep(10)
    process.suspended = False
    it.sleep(1.2)
    assert seen == [1, 11.5, 12.5]


def test_a_killed_process_ends_wherever_it_waits(it: Simulation) -> None:
    process, ended = Process("p"), []

    def hold(wait: Callable[[], object]) -> None:
        try:
            wait()
        finally:
            ended.append(it.time)

    clock = ProcessClock(it, process)
    for wait in (StopEvent(clock).wait, threading.Event().wait, lambda: it.sleep(1000)):
        it.spawn("t", lambda wait=wait: hold(wait), process)  # type: ignore[misc]
    it.sleep(5)
    it.kill(process)
    it.sleep(0)
    it.sleep(1)
    assert ended == [5, 5, 5]
    assert it.alive(process) == []


def test_randomness_without_a_seed_has_one() -> None:
    drawn = []
    for _ in range(2):
        with Simulation(7):
            drawn.append((random.Random().random(), uuid.uuid4()))
    assert drawn[0] == drawn[1]


def test_a_thread_that_dies_fails_the_world() -> None:
    def die() -> None:
        raise ValueError("a bug")

    with pytest.raises(SimulationError, match="world/t died: ValueError: a bug"):
        live(die)


def test_a_check_that_does_not_hold_fails_the_world_at_that_moment() -> None:
    seen: list[float] = []

    def check(it: Simulation) -> None:
        seen.append(it.time)
        assert it.time < 10, "too late"

    with pytest.raises(AssertionError, match="too late"):
        live(lambda: None, check)
    assert max(seen) == 10


def test_waiting_for_ever_is_noticed() -> None:
    with pytest.raises(SimulationError, match="waits for ever"), Simulation(1):
        threading.Event().wait()


def test_running_in_circles_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("soak.simulation.BUSY", 1000)

    pause = threading.Event()

    def spin() -> None:
        while not pause.wait(0):
            continue

    with pytest.raises(SimulationError, match="run in circles"):
        live(spin)


def test_a_failure_tells_how_to_see_it_again() -> None:
    def fail() -> None:
        with world("cache", 17) as it:
            it.history.note("fault", "all went dark")
            raise AssertionError("broken")

    with pytest.raises(SoakFailure) as caught:
        fail()
    told = str(caught.value)
    assert "broken" in told
    assert "all went dark" in told
    assert 'make soak ARGS="cache --seed 17"' in told
