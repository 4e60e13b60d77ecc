"""Repairs are made at once, but no fight is fought for ever."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubeloop.controller.pace import BURST, INTERVAL, RepairPace


def test_accidents_are_repaired_at_once() -> None:
    pace = RepairPace()

    assert [pace.take("Deployment", "a", 0.0) for _ in range(BURST)] == [0.0] * BURST


def test_a_fight_is_slowed_down_and_says_until_when() -> None:
    pace = RepairPace()
    for _ in range(BURST):
        pace.take("Deployment", "a", 0.0)

    assert pace.take("Deployment", "a", 0.0) == INTERVAL
    assert pace.take("Deployment", "a", 1.0) == INTERVAL - 1.0
    assert pace.take("Deployment", "a", INTERVAL) == 0.0
    assert pace.take("Deployment", "b", 0.0) == 0.0


@given(st.lists(st.floats(0, 10), max_size=300))
def test_the_number_of_repairs_is_bounded_whatever_the_pace_of_the_attack(pauses: list[float]) -> None:
    pace, now, made = RepairPace(), 0.0, 0
    for pause in pauses:
        now += pause
        made += pace.take("Deployment", "a", now) == 0.0

    assert made <= BURST + now / INTERVAL + 1


def test_peace_fills_the_budget_up_again() -> None:
    pace = RepairPace()
    for _ in range(BURST):
        pace.take("Deployment", "a", 0.0)
    later = BURST * INTERVAL

    assert [pace.take("Deployment", "a", later) for _ in range(BURST)] == [0.0] * BURST
