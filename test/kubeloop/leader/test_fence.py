"""The fence closes by the asking thread's clock, and for good."""

from __future__ import annotations

import math
import time

import pytest

from kubeloop.clock import FakeClock, SystemClock
from kubeloop.leader import Fence, NotLeader, steady_seconds


def test_it_is_closed_before_the_first_renewal() -> None:
    fence = Fence(FakeClock().monotonic)
    assert not fence.may_write()
    with pytest.raises(NotLeader, match="not elected yet"):
        fence.check()


def test_it_closes_at_the_very_moment_of_the_deadline_with_no_thread_running() -> None:
    """A thread that hogs the interpreter cannot keep it open: nothing has to run for it to close."""
    clock = FakeClock()
    fence = Fence(clock.monotonic)
    assert fence.extend(10)
    clock.advance(9.999)
    fence.check()
    assert fence.left == pytest.approx(0.001)
    clock.advance(0.001)
    assert fence.left == 0
    with pytest.raises(NotLeader, match="does not hold the lease"):
        fence.check()


def test_once_somebody_was_told_no_it_stays_no() -> None:
    clock = FakeClock()
    fence = Fence(clock.monotonic)
    fence.extend(10)
    clock.advance(10)
    assert not fence.may_write()
    assert not fence.extend(30)
    assert not fence.may_write()


def test_a_renewal_that_comes_too_late_does_not_open_it_again_though_nobody_asked_meanwhile() -> None:
    clock = FakeClock()
    fence = Fence(clock.monotonic)
    fence.extend(10)
    clock.advance(11)
    assert not fence.extend(20)
    assert not fence.may_write()


def test_asking_before_the_first_term_does_not_spoil_it() -> None:
    fence = Fence(FakeClock().monotonic)
    assert not fence.may_write()
    assert fence.extend(10)
    assert fence.may_write()


def test_a_deadline_never_moves_back() -> None:
    fence = Fence(FakeClock().monotonic)
    fence.extend(10)
    fence.extend(5)
    assert fence.until == 10


def test_a_closed_fence_stays_closed() -> None:
    fence = Fence(FakeClock().monotonic)
    fence.close()
    assert not fence.extend(10)
    fence = Fence(FakeClock().monotonic)
    fence.extend(10)
    fence.close()
    assert not fence.may_write()
    assert not fence.extend(20)
    assert not fence.may_write()


def test_the_machines_seconds_go_on_while_it_is_suspended() -> None:
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    seconds = steady_seconds(SystemClock())
    if boottime is None:
        assert abs(seconds() - time.monotonic()) < 1
    else:
        assert time.clock_gettime(boottime) <= seconds() <= time.clock_gettime(boottime)


def test_a_kernel_without_that_clock_gets_the_monotonic_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(clock: int) -> float:
        raise OSError(22, f"no clock {clock}")

    monkeypatch.setattr(time, "clock_gettime", refuse)
    assert abs(steady_seconds(SystemClock())() - time.monotonic()) < 1


def test_a_given_clock_is_used_as_it_is() -> None:
    clock = FakeClock()
    clock.advance(7)
    assert steady_seconds(clock)() == 7


def test_a_closed_fence_has_no_time_left_and_no_deadline() -> None:
    clock = FakeClock()
    fence = Fence(clock.monotonic)
    assert (fence.until, fence.left) == (-math.inf, 0.0)
    fence.extend(clock.monotonic() + 10)
    assert fence.left == 10
    fence.close()
    assert (fence.until, fence.left) == (-math.inf, 0.0)


def test_a_fence_that_has_closed_by_itself_forgets_its_deadline() -> None:
    clock = FakeClock()
    fence = Fence(clock.monotonic)
    end = clock.monotonic() + 10
    fence.extend(end)
    clock.advance(10)
    assert fence.until == end
    assert not fence.may_write()
    assert fence.until == -math.inf
    assert not fence.extend(end + 20)
    assert fence.until == -math.inf


def test_a_first_renewal_that_comes_too_late_spoils_nothing() -> None:
    """It never was open, so nobody was told yes."""
    clock = FakeClock()
    clock.advance(10)
    fence = Fence(clock.monotonic)
    assert not fence.extend(clock.monotonic())
    with pytest.raises(NotLeader, match=r"^not elected yet$"):
        fence.check()
    assert fence.extend(clock.monotonic() + 5)
    assert fence.may_write()


def test_a_closed_fence_says_that_the_lease_is_not_held() -> None:
    fence = Fence(FakeClock().monotonic)
    fence.extend(10)
    fence.close()
    with pytest.raises(NotLeader, match=r"^this process does not hold the lease$"):
        fence.check()


def test_a_deadline_that_passes_while_the_question_is_asked_is_not_missed() -> None:
    """The clock is looked at again under the lock, where renewals are let in."""
    times = iter([0.0, 9.0, 11.0, 12.0])
    fence = Fence(lambda: next(times))
    assert fence.extend(10)
    assert fence.may_write()
    assert not fence.may_write()


def test_each_renewal_in_time_prolongs_it() -> None:
    clock = FakeClock()
    fence = Fence(clock.monotonic)
    for _ in range(5):
        assert fence.extend(clock.monotonic() + 10)
        clock.advance(9)
        assert fence.may_write()
        assert fence.left == 1


def test_a_renewal_that_arrives_while_the_question_is_asked_counts() -> None:
    """The first look at the clock found the deadline passed; under the lock there is a later one."""
    looks = 0

    def seconds() -> float:
        nonlocal looks
        looks += 1
        look = looks
        if look == 2:
            assert fence.extend(20)  # the third look
        return {1: 0.0, 2: 10.0, 3: 9.0, 4: 11.0}[look]

    fence = Fence(seconds)
    assert fence.extend(10)
    assert fence.may_write()


def test_the_machines_seconds_are_those_of_the_clock_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "CLOCK_BOOTTIME", 7, raising=False)
    monkeypatch.setattr(time, "clock_gettime", lambda clock: 1000.0 + clock)
    assert steady_seconds(SystemClock())() == 1007


def test_a_machine_without_that_clock_gets_the_monotonic_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    clock = SystemClock()
    monkeypatch.setattr(clock, "monotonic", lambda: 5.0)
    assert steady_seconds(clock)() == 5
