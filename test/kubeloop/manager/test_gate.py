"""The gate that every write passes."""

from __future__ import annotations

import pytest

from kubeloop.leader import Fence, NotLeader
from kubeloop.manager import WriteGate
from kubeloop.observe.metrics import Counter


def test_without_an_election_everything_may_be_written() -> None:
    WriteGate().check()


def test_before_the_election_nothing_may() -> None:
    refusals = Counter()
    gate = WriteGate(elected_only=True, refusals=refusals)
    with pytest.raises(NotLeader, match="not elected yet"):
        gate.check()

    assert refusals.value() == 1


def test_then_the_fence_decides_and_refusals_are_counted() -> None:
    now, refusals = [0.0], Counter()
    gate, fence = WriteGate(elected_only=True, refusals=refusals), Fence(lambda: now[0])
    gate.use(fence)
    with pytest.raises(NotLeader):
        gate.check()
    fence.extend(10.0)
    gate.check()
    now[0] = 10.0
    with pytest.raises(NotLeader):
        gate.check()

    assert refusals.value() == 2
