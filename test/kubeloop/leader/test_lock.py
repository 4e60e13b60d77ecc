"""The core's actions as requests, and their answers as events."""

from __future__ import annotations

from typing import Any

import pytest

from kubeloop.clock import FakeClock
from kubeloop.leader import LeaseLock
from kubeloop.leader.actions import Create, Failed, Read, Refused, Seen, Update, Written
from kubeloop.leader.lock import tells_of_vacancy
from kubeloop.leader.record import new_lease

LEASE = {**new_lease("ns", "leader"), "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}


def test_reading_tells_a_missing_lease_from_a_failure(server: Any, lock: LeaseLock) -> None:
    assert lock.perform(Read(5)) == Seen(None)
    server.write(LEASE)
    assert lock.perform(Read(5)) == Seen(server.lease)

    def fail(method: str, timeout: float) -> None:
        raise ConnectionRefusedError(f"{method} {timeout}")

    server.before = fail
    answer = lock.perform(Read(5))
    assert isinstance(answer, Failed)
    assert "leases.coordination.k8s.io ns/leader" in answer.why


def test_writes_are_carried_out_once_or_refused(server: Any, lock: LeaseLock) -> None:
    assert lock.perform(Create(LEASE, 5)) == Written(server.lease)
    assert lock.perform(Create(LEASE, 5)) == Refused()
    old = server.lease
    assert lock.perform(Update(old, 5)) == Written(server.lease)
    assert lock.perform(Update(old, 5)) == Refused()
    server.write(None)
    assert lock.perform(Update(old, 5)) == Refused()
    assert server.requests == ["POST", "POST", "PUT", "PUT", "PUT"]


def test_an_invalid_lease_is_a_failure_that_says_why(server: Any, lock: LeaseLock) -> None:
    answer = lock.perform(Create({**LEASE, "spec": {"leaseDurationSeconds": 0}}, 5))
    assert isinstance(answer, Failed)
    assert "must be greater than 0" in answer.why
    assert server.lease is None


def test_the_timeout_of_an_action_bounds_its_request_and_nothing_is_repeated(server: Any) -> None:
    """kubernetes-client/python sets no timeout at all and hangs in its renewal."""
    timeouts = []

    def hang(_method: str, timeout: float) -> None:
        timeouts.append(timeout)
        raise TimeoutError("timed out")

    server.before = hang
    lock = LeaseLock(server, "ns", "leader", clock=FakeClock(), agent="test")
    assert isinstance(lock.perform(Update({**LEASE}, 3.5)), Failed)
    assert timeouts == [3.5]


def test_requests_say_that_they_are_the_elections(server: Any, lock: LeaseLock) -> None:
    lock.perform(Read(5))
    assert server.agents == {"test leader-election"}


@pytest.mark.parametrize(
    ("line", "rings"),
    [
        (b'{"type":"DELETED","object":{"spec":{"holderIdentity":"a"}}}', True),
        (b'{"type":"MODIFIED","object":{"spec":{"holderIdentity":"","leaseDurationSeconds":1}}}', True),
        (b'{"type":"ADDED","object":{"spec":{}}}', True),
        (b'{"type":"MODIFIED","object":{"spec":{"holderIdentity":"","leaseDurationSeconds":15}}}', False),
        (b'{"type":"MODIFIED","object":{"spec":{"holderIdentity":"a","leaseDurationSeconds":15}}}', False),
        (b'{"type":"BOOKMARK","object":{}}', False),
        (b'{"type":"ERROR","object":{"kind":"Status"}}', False),
        (b'{"type":"DELETED"}', False),
        (b"[]", False),
        (b"\xff{", False),
    ],
)
def test_only_a_released_or_deleted_lease_rings(line: bytes, rings: bool) -> None:
    assert tells_of_vacancy(line) is rings
