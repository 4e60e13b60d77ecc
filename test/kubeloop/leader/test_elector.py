"""The threads of an election, on a clock that the test moves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kubeloop.clock import FakeClock
from kubeloop.leader import ElectionSettings, LeaderElector, LeaseLock

FOREIGN = {"spec": {"holderIdentity": "b", "leaseDurationSeconds": 15, "leaseTransitions": 7}}
FREE: dict[str, Any] = {"spec": {}}


class Process:
    """One elector with everything that it told."""

    def __init__(self, server: Any, clock: FakeClock, identity: str = "a", **options: Any) -> None:
        self.clock = clock
        self.told: list[str] = []
        self.metrics: list[object] = []
        options = {"on_started": lambda: self.told.append("started"), "on_lost": self.told.append} | options
        self.elector = LeaderElector(
            LeaseLock(server, "ns", "leader", clock=clock, agent="test"),
            ElectionSettings(identity),
            clock=clock,
            observer=self,
            **options,
        )

    def leading(self, leads: bool) -> None:
        self.metrics.append(leads)

    def slow_path(self) -> None:
        self.metrics.append("slow path")

    def new_leader(self, holder: str) -> None:
        self.metrics.append(holder)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def eventually(clock: FakeClock) -> Callable[[Callable[[], object]], None]:
    """Wait, in real time and without moving the clock, until something is so."""

    def wait(condition: Callable[[], object]) -> None:
        patience = threading.Event()
        for _ in range(2000):
            if condition():
                return
            clock.advance(0)  # whoever began to wait while time moved looks at it again
            patience.wait(0.005)
        raise AssertionError("it never came to that")

    return wait


@pytest.fixture
def process(server: Any, clock: FakeClock) -> Iterator[Callable[..., Process]]:
    processes: list[Process] = []

    def start(identity: str = "a", **options: Any) -> Process:
        processes.append(Process(server, clock, identity, **options))
        processes[-1].elector.start()
        return processes[-1]

    yield start
    server.before = server.after = lambda _method, _timeout: None
    for each in processes:
        each.elector.stop(release=False)
    for each in processes:
        assert each.elector.join(5)


@pytest.fixture
def pass_time(clock: FakeClock, server: Any) -> Callable[[float], None]:
    """Move the clock in small steps, and give the threads a moment after each."""

    def move(seconds: float) -> None:
        patience = threading.Event()
        for _ in range(round(seconds / 0.5)):
            clock.advance(0.5)
            before = -1
            while before != len(server.requests):
                before = len(server.requests)
                patience.wait(0.004)

    return move


def hang(server: Any) -> threading.Event:
    """From now on no request is answered until the event is set."""
    gate = threading.Event()

    def wait(_method: str, _timeout: float) -> None:
        gate.wait(20)
        raise TimeoutError("timed out")

    server.before = wait
    return gate


def test_the_first_candidate_leads_and_renews_with_one_request_each(
    server: Any, process: Any, eventually: Any, pass_time: Any
) -> None:
    server.write(FREE)
    a = process()
    eventually(lambda: a.told == ["started"])
    assert a.elector.may_write()
    assert server.holder() == "a"
    server.requests.clear()
    pass_time(20)
    eventually(lambda: len(server.requests) >= 9)
    assert set(server.requests) == {"PUT"}
    assert a.elector.may_write()
    assert a.metrics == [False, "", "a", True]


def test_a_standby_writes_nothing_and_takes_over_after_a_kill(
    server: Any, process: Any, eventually: Any, pass_time: Any
) -> None:
    server.write(FOREIGN)
    a = process()
    eventually(lambda: "GET" in server.requests)
    pass_time(13)
    assert set(server.requests) == {"GET"}
    assert not a.elector.may_write()
    pass_time(3)
    eventually(lambda: a.told == ["started"])
    assert server.spec["leaseTransitions"] == 8


def test_a_hanging_renewal_closes_the_fence_and_is_announced_at_the_deadline(
    server: Any, clock: FakeClock, process: Any, eventually: Any
) -> None:
    """kubernetes-client/python (python-peers L1): work went on for as long as the server was mute."""
    server.write(FREE)
    a = process()
    eventually(lambda: a.told)
    gate = hang(server)
    try:
        clock.advance(9.9)
        assert a.elector.may_write()
        clock.advance(0.1)
        assert not a.elector.may_write()
        eventually(lambda: len(a.told) == 2)
        assert "not renewed in time" in a.told[1]
        assert a.elector.lost == a.told[1]
        assert a.metrics[-1] is False
    finally:
        gate.set()
    # The answer that comes now changes nothing.
    assert a.elector.join(5)
    assert not a.elector.may_write()
    assert len(a.told) == 2


def test_a_refused_connection_is_announced_too(
    server: Any, process: Any, eventually: Any, pass_time: Any
) -> None:
    """python-peers L2: the error left the loop and on_stopped_leading was never called."""
    server.write(FREE)
    a = process()
    eventually(lambda: a.told)

    def refuse(_method: str, _timeout: float) -> None:
        raise ConnectionRefusedError("no")

    server.before = refuse
    pass_time(9)
    assert a.elector.may_write()
    assert "no" in a.elector.describe()
    pass_time(1)
    eventually(lambda: len(a.told) == 2)
    assert not a.elector.may_write()
    assert a.elector.join(5)


def test_a_stolen_lease_is_announced_at_the_next_renewal_and_left_alone(
    server: Any, process: Any, eventually: Any, pass_time: Any
) -> None:
    """bug-reports C9."""
    server.write(FREE)
    a = process()
    eventually(lambda: a.told)
    server.edit(holderIdentity="thief")
    pass_time(2)
    eventually(lambda: a.told[1:] == ["the Lease was taken by thief"])
    assert not a.elector.may_write()
    assert a.elector.join(5)
    assert server.holder() == "thief"
    assert a.metrics[-3:] == ["slow path", "thief", False]
    a.elector.stop()
    assert len(a.told) == 2


def test_a_stop_releases_the_lease_and_a_standby_takes_over_without_time_passing(
    server: Any, process: Any, eventually: Any
) -> None:
    """Hand-over in less than a second: the standby watches for it."""
    server.write(FREE)
    a = process("a")
    eventually(lambda: a.told)
    server.watches.clear()
    b = process("b")
    eventually(lambda: server.watches and b.elector.view.holder == "a")
    a.elector.stop()
    assert not a.elector.may_write()
    assert a.elector.join(5)
    eventually(lambda: b.told == ["started"])
    assert server.holder() == "b"
    assert server.spec["leaseTransitions"] == 1
    assert a.told == ["started"]
    assert a.elector.lost == ""
    assert a.metrics[-2:] == [False, ""]


def test_without_the_right_to_watch_a_standby_looks_every_retry_period(
    server: Any, process: Any, eventually: Any, pass_time: Any
) -> None:
    server.can_watch = False
    server.write(FOREIGN)
    b = process("b")
    eventually(lambda: b.elector.view.holder == "b" and server.requests)
    server.edit(holderIdentity="", leaseDurationSeconds=1)
    pass_time(2)
    eventually(lambda: b.told == ["started"])


def test_a_stop_without_release_leaves_the_lease(server: Any, process: Any, eventually: Any) -> None:
    server.write(FREE)
    a = process()
    eventually(lambda: a.told)
    a.elector.stop(release=False)
    assert a.elector.join(5)
    assert server.holder() == "a"
    assert a.told == ["started"]


def test_a_stop_during_a_hanging_renewal_still_closes_the_fence_at_once(
    server: Any, clock: FakeClock, process: Any, eventually: Any
) -> None:
    server.write(FREE)
    a = process()
    eventually(lambda: a.told)
    waiting = threading.Event()
    gate = threading.Event()

    def wait(_method: str, _timeout: float) -> None:
        waiting.set()
        gate.wait(20)

    server.before = wait
    clock.advance(2)
    assert waiting.wait(5)
    a.elector.stop()
    assert not a.elector.may_write()
    gate.set()
    assert a.elector.join(5)
    assert server.holder() == ""
    assert a.told == ["started"]


def test_a_standby_stops_at_once(server: Any, process: Any, eventually: Any) -> None:
    server.write(FOREIGN)
    a = process()
    eventually(lambda: server.requests)
    a.elector.stop()
    assert a.elector.join(5)
    assert a.told == []
    assert server.holder() == "b"
    assert server.closed == 1


def test_a_leader_that_cannot_start_its_work_gives_up(server: Any, process: Any, eventually: Any) -> None:
    """kubernetes/client-go#1155: or it would sit on the lease."""

    def fail() -> None:
        raise RuntimeError("no workers")

    server.write(FREE)
    a = process(on_started=fail)
    eventually(lambda: a.told)
    assert "no workers" in a.told[0]
    assert not a.elector.may_write()
    assert a.elector.join(5)


def test_a_slow_start_delays_no_renewal(server: Any, process: Any, eventually: Any, pass_time: Any) -> None:
    gate = threading.Event()
    server.write(FREE)
    a = process(on_started=lambda: gate.wait(20))
    try:
        eventually(a.elector.may_write)
        pass_time(30)
        assert a.elector.may_write()
    finally:
        gate.set()


def test_a_fault_in_the_election_itself_is_a_lost_lease(server: Any, process: Any, eventually: Any) -> None:
    def fail(_method: str, _timeout: float) -> None:
        raise ZeroDivisionError("a bug")

    server.before = fail
    a = process()
    eventually(lambda: a.told)
    assert "a bug" in a.told[0]
    assert a.elector.join(5)


def test_stop_and_join_may_be_called_from_the_callback(server: Any, process: Any, eventually: Any) -> None:
    done = threading.Event()

    def lost(_why: str) -> None:
        a.elector.stop()
        a.elector.join(0.1)
        done.set()

    server.write(FREE)
    a = process(on_lost=lost)
    eventually(a.elector.may_write)
    server.edit(holderIdentity="thief")
    a.clock.advance(2)
    eventually(done.is_set)


def test_health_fails_if_the_process_outlives_its_lease(
    server: Any, clock: FakeClock, process: Any, eventually: Any
) -> None:
    server.write(FREE)
    a = process()
    eventually(lambda: a.told)
    assert a.elector.unhealthy() == ""
    gate = hang(server)
    try:
        clock.advance(35)
        assert a.elector.unhealthy() == ""
        clock.advance(0.5)
        assert a.elector.unhealthy() == "the lease was not renewed for 36 s, and the process has not ended"
        assert a.elector.unhealthy(timeout=100) == ""
    finally:
        gate.set()


def test_a_standby_and_a_stopped_leader_are_healthy(
    server: Any, clock: FakeClock, process: Any, eventually: Any
) -> None:
    server.write(FOREIGN)
    a = process()
    hang(server).set()
    clock.advance(1000)
    assert a.elector.unhealthy() == ""
    server.before = lambda _method, _timeout: None
    server.write(FREE)
    eventually(a.elector.may_write)
    a.elector.stop()
    clock.advance(1000)
    assert a.elector.unhealthy() == ""


def test_it_says_in_a_sentence_who_leads(
    server: Any, clock: FakeClock, process: Any, eventually: Any
) -> None:
    spec = {**FOREIGN["spec"], "acquireTime": "2026-01-01T00:00:00.000000Z"}
    server.write({"spec": spec})
    a = process()
    assert "it is not known who leads" in a.elector.describe() or "stands by" in a.elector.describe()
    eventually(lambda: a.elector.view.holder == "b")
    clock.advance(1)
    assert a.elector.describe() == (
        "b leads since 2026-01-01T00:00:00.000000Z, last seen renewing 1.0 s ago; this process stands by"
    )
    server.edit(holderIdentity="", leaseDurationSeconds=1)
    eventually(a.elector.may_write)
    assert a.elector.describe().startswith("a (this process) leads since 2026-01-01T00:00:01")
    server.edit(holderIdentity="thief")
    clock.advance(2)
    eventually(lambda: a.elector.lost)
    assert a.elector.describe() == "a (this process) lost the lease: the Lease was taken by thief"
