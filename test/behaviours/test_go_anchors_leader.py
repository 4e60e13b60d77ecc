"""Behaviours 11 to 13: leader election and the end of a process."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest

from kubeloop.leader import ElectionSettings, LeaseLock
from kubeloop.leader.elector import LeaderElector
from kubeloop.manager.manager import SHUTDOWN_TIMEOUT

LEASES = "leases.coordination.k8s.io"
MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def put_lease(stage: Any, **spec: Any) -> None:
    meta = {"name": "operator", "namespace": "default"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}
    stage.sandbox.apply(lease, manager="somebody")


def spec(stage: Any) -> dict[str, Any]:
    found: dict[str, Any] = stage.sandbox.get(LEASES, "operator", "default")["spec"]
    return found


@pytest.mark.parametrize("renewed", ["1999-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"])
@pytest.mark.parametrize("duration", [4, 15, 40])
def test_a_lease_is_waited_out_from_when_it_was_seen(stage: Any, renewed: str, duration: int) -> None:
    """Behaviour 11: expiry is judged on the own monotonic clock, by the record's duration, from when the
    record was seen to change; the remote renewTime says nothing, so even a dead lease is waited out."""
    put_lease(stage, holderIdentity="gone", leaseDurationSeconds=duration, renewTime=renewed)
    stage.pass_time(100, step=10)  # nobody looked meanwhile, so it does not count
    operator = stage.operate(elect=True)
    took = stage.until(lambda: operator.leads, within=60, step=0.1)

    assert duration <= took <= duration + 2.5


def test_each_sign_of_life_starts_the_wait_anew(stage: Any) -> None:
    """Behaviour 11: only a change of the record counts, whatever it says."""
    put_lease(stage, holderIdentity="alive", leaseDurationSeconds=15, leaseTransitions=1)
    operator = stage.operate(elect=True)
    for number in range(10):
        stage.pass_time(12, step=0.5)
        assert not operator.leads
        stage.sandbox.patch(LEASES, "operator", {"spec": {"leaseTransitions": number + 2}}, "default")
    took = stage.until(lambda: operator.leads, within=60)
    assert 14 <= took <= 18


@pytest.mark.parametrize("blocked", ["hanging request", "lease thread"])
def test_a_renewal_that_hangs_ends_the_term_before_the_lease(stage: Any, blocked: str) -> None:
    """Behaviour 11: the renew deadline lies before the end of the lease, even if the renewing thread hangs or
    gets no turn: nothing has to run for the fence to close."""
    operator = stage.operate(elect=True)
    stage.until(lambda: operator.leads)
    standby = stage.operate(name="standby", elect=True)
    stage.pass_time(5, step=0.05)
    gate = threading.Event()
    elector = operator.manager.elector
    if blocked == "hanging request":
        stage.sandbox.faults.add(user_agent="operator", resource="leases", silence=True)
    else:
        real = elector._lock.perform
        elector._lock.perform = lambda action: (gate.wait(30), real(action))[1]
    last = spec(stage)["renewTime"]
    closed = opened = None
    for _ in range(600):
        stage.pass_time(0.05, step=0.05)
        if closed is None and not operator.leads:
            closed = stage.time
        if opened is None and standby.leads:
            opened = stage.time
            break
    gate.set()

    assert closed is not None
    assert opened is not None
    assert 2.5 <= opened - closed <= 8, "the leader stops well before the next one starts"
    assert spec(stage)["renewTime"] != last
    assert operator.lost
    assert "not renewed in time" in operator.lost[0] or blocked == "lease thread"


def test_the_elections_requests_have_a_timeout_of_half_the_deadline(stage: Any) -> None:
    """Behaviour 11: requests time out after max(1 s, deadline / 2): one that hangs must not cost the term."""
    timeouts: list[float] = []
    inner = stage.sandbox.transport()

    class Timed:
        stream, close = inner.stream, inner.close

        def request(self, method: str, target: str, **rest: Any) -> Any:
            timeouts.append(rest["timeout"])
            return inner.request(method, target, **rest)

    for deadline, most in ((10.0, 5.0), (1.5, 1.0)):
        del timeouts[:]
        settings = ElectionSettings("a", 15, deadline, deadline / 5, trust_absence=True)
        lock = LeaseLock(Timed(), "default", f"timed{deadline:g}", clock=stage.clock)
        elector = LeaderElector(lock, settings, clock=stage.clock)
        elector.start()
        stage.pass_time(5)
        elector.stop()
        stage.pass_time(1)
        assert elector.join(5)
        assert timeouts
        assert 0 < max(timeouts) <= most


def test_transitions_count_takeovers_and_nothing_else(stage: Any) -> None:
    """Behaviour 12: leaseTransitions is 0 on create, unchanged by renewals and a release, one more after a
    takeover, also after that of a released lease; times have six digits and a Z, always."""
    seen: list[tuple[str, int]] = []

    def note(what: str) -> None:
        record = spec(stage)
        seen.append((what, record["leaseTransitions"]))
        for name in ("renewTime", "acquireTime"):
            assert MICRO_TIME.fullmatch(record[name]), record[name]

    one = stage.operate(name="one", elect=True)
    stage.until(lambda: one.leads)
    note("created")
    acquired = spec(stage)["acquireTime"]
    for _ in range(8):  # at whole seconds too, where the fraction is zero
        stage.pass_time(2.0)
        note("renewed")
    assert spec(stage)["acquireTime"] == acquired
    one.stop()
    note("released")
    two = stage.operate(name="two", elect=True)
    stage.until(lambda: two.leads, within=3)
    note("taken over")
    stage.sandbox.faults.add(user_agent="two", resource="leases", refuse=True)
    three = stage.operate(name="three", elect=True)
    stage.until(lambda: three.leads, within=30)
    note("taken over")

    counts = dict(seen)
    assert {count for what, count in seen if what == "renewed"} == {0}
    assert (counts["created"], counts["released"]) == (0, 0)
    assert [count for what, count in seen if what == "taken over"] == [1, 2]


@pytest.mark.parametrize("moment", ["before the look", "between look and write"])
def test_a_release_does_not_clear_another_holder(stage: Any, moment: str) -> None:
    """Behaviour 12: a release reads the record anew and must not clear another holder's."""
    operator = stage.operate(elect=True)
    stage.until(lambda: operator.leads)
    theft = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 15}}
    if moment == "before the look":
        stage.sandbox.patch(LEASES, "operator", theft, "default")
    else:
        lock, stolen = operator.manager.elector._lock, []
        lock_perform = lock.perform

        def perform(action: Any) -> Any:
            # After what was read, just before what is written on the strength of it.
            if type(action).__name__ == "Update" and not stolen:
                stolen.append(action)
                stage.sandbox.patch(LEASES, "operator", theft, "default")
            return lock_perform(action)

        lock.perform = perform
    operator.stop()

    assert spec(stage)["holderIdentity"] == "thief"
    assert spec(stage)["leaseDurationSeconds"] == 15


def test_a_lost_lease_is_told_at_once_whatever_the_workers_do(stage: Any) -> None:
    """Behaviour 13: losing the lease does not wait for anything. The process then ends with code 3 through
    os._exit, as threads cannot be killed: test/e2e/test_process.py."""
    operator = stage.operate(elect=True)
    stage.until(lambda: operator.leads)
    stage.sandbox.faults.add(user_agent="operator", resource="deployments", verb="patch", silence=True)
    for number in range(4):
        stage.make(f"app{number}")
    stage.pass_time(1)
    assert len(operator.controller.queue.busy()) == 2
    stage.sandbox.patch(LEASES, "operator", {"spec": {"holderIdentity": "thief"}}, "default")
    took = stage.until(lambda: operator.lost, within=5, step=0.05)

    assert took <= 2.1  # the next renewal
    assert len(operator.controller.queue.busy()) == 2, "they hang still"


def test_a_stop_ends_workers_then_caches_then_the_lease(stage: Any) -> None:
    """Behaviour 13: SIGTERM waits for reconciles up to 30 s in all, and releases the lease only after the
    last of them; a second signal does not wait: test/kubeloop/manager/test_signals.py."""
    assert SHUTDOWN_TIMEOUT == 30.0
    operator = stage.operate(elect=True)
    stage.until(lambda: operator.leads)
    stage.sandbox.faults.add(user_agent="operator", verb="patch", latency=2)
    for number in range(8):
        stage.make(f"app{number}")
    stage.pass_time(3)
    busy = operator.controller.queue.busy()
    assert busy
    mark = stage.sandbox.log.mark()
    operator.stop_event.set()
    stage.pass_time(12)
    operator.thread.join(5)

    assert operator.clean is True
    written = operator.writes(mark, events=True)
    assert [e.resource for e in written if e.resource != "events"][-1] == "leases"
    assert {f"default/{e.name}" for e in written if e.resource in ("webapps", "deployments")} <= set(busy)
    assert spec(stage)["holderIdentity"] == ""
    assert stage.sandbox.log.entries(since=written[-1].number, user_agent="operator") == []
