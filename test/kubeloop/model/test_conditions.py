"""Conditions keep their transition times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeloop.model import Condition, find_condition, format_time, is_true, set_condition, set_conditions

T0 = datetime(2026, 1, 1, tzinfo=UTC)
T1 = T0 + timedelta(seconds=5)


def ready(status: str, reason: str = "Because", message: str = "") -> Condition:
    return Condition.model_validate({"type": "Ready", "status": status, "reason": reason, "message": message})


def test_a_new_condition_gets_the_present_time() -> None:
    (condition,) = set_condition((), ready("True"), T0)

    assert condition.last_transition_time == "2026-01-01T00:00:00Z"


def test_a_new_reason_keeps_the_time_and_a_new_status_moves_it() -> None:
    """D4: stable lastTransitionTime."""
    first = set_condition((), ready("False", "A"), T0)
    second = set_condition(first, ready("False", "B", "more"), T1)
    third = set_condition(second, ready("True", "C"), T1)

    assert second[0].last_transition_time == format_time(T0)
    assert second[0].reason == "B"
    assert third[0].last_transition_time == format_time(T1)


def test_nothing_new_gives_back_the_same_tuple() -> None:
    first = set_condition((), ready("True"), T0)

    assert set_condition(first, ready("True"), T1) is first


def test_other_conditions_and_their_order_stay() -> None:
    other = Condition(type="Other", status="Unknown", last_transition_time="x")
    conditions = set_conditions((other,), [ready("True"), Condition(type="Z", status="False")], T0)
    conditions = set_condition(conditions, ready("False"), T1)

    assert [condition.type for condition in conditions] == ["Other", "Ready", "Z"]
    assert conditions[0] is other
    assert find_condition(conditions, "Nope") is None
    assert not is_true(conditions, "Ready")
    assert not is_true(conditions, "Nope")


def test_a_condition_that_lost_its_time_gets_one() -> None:
    (condition,) = set_condition((ready("True"),), ready("True"), T1)

    assert condition.last_transition_time == format_time(T1)


def test_a_message_is_cut_to_what_the_api_allows() -> None:
    """metav1.Condition allows 32768 characters, and so does our CRD."""
    (condition,) = set_condition((), ready("True", message="x" * 40000), T0)

    assert condition.message == "x" * 32767 + "…"


def test_times_are_written_in_utc_and_need_a_zone() -> None:
    assert format_time(datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))) == "2026-01-01T00:00:00Z"
    with pytest.raises(ValueError, match="time zone"):
        format_time(datetime(2026, 1, 1))


@given(st.lists(st.tuples(st.sampled_from(["True", "False", "Unknown"]), st.sampled_from("AB")), max_size=12))
def test_the_time_is_always_that_of_the_last_change_of_status(history: list[tuple[str, str]]) -> None:
    conditions: tuple[Condition, ...] = ()
    changed, previous = T0, None
    for step, (status, reason) in enumerate(history):
        now = T0 + timedelta(seconds=step)
        changed = now if status != previous else changed
        previous = status
        conditions = set_condition(conditions, ready(status, reason), now)
        assert conditions[0].last_transition_time == format_time(changed)
        assert len(conditions) == 1
