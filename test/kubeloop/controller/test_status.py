"""When a status is written (D4, D1)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubeloop.controller.status import (
    SentStatus,
    merge_patch,
    plan_status,
    says_the_same,
    with_transition_times,
)
from kubeloop.model import Condition, Conditions, Model

T0 = datetime(2026, 1, 1, tzinfo=UTC)
T1 = T0 + timedelta(hours=1)


def ready(status: str, time: str | None = None, **more: str) -> dict[str, Any]:
    condition = {"type": "Ready", "status": status, **more}
    return {**condition, "lastTransitionTime": time} if time else condition


def test_a_status_that_says_the_same_is_not_written() -> None:
    """controller-runtime#2831: no write for a fresh timestamp alone."""
    live = {"ready": True, "conditions": [ready("True", "2026-01-01T00:00:00Z")]}

    assert plan_status({"ready": True, "conditions": [ready("True")]}, live, None, "u", T1) is None


def test_the_transition_time_moves_only_with_the_status() -> None:
    live = {"conditions": [ready("True", "2026-01-01T00:00:00Z", reason="A")]}

    other_reason = plan_status({"conditions": [ready("True", reason="B")]}, live, None, "u", T1)
    other_status = plan_status({"conditions": [ready("False", reason="B")]}, live, None, "u", T1)

    assert other_reason is not None
    assert other_status is not None
    assert other_reason["conditions"][0]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert other_status["conditions"][0]["lastTransitionTime"] == "2026-01-01T01:00:00Z"


def test_fields_that_the_server_drops_do_not_cause_writes_without_end() -> None:
    """kopf#686: an older CRD prunes the conditions."""
    wanted = {"ready": True, "conditions": [ready("True")]}
    first = plan_status(wanted, {}, None, "u", T0)
    assert first is not None
    kept = {"ready": True}
    sent = SentStatus("u", first, kept)

    assert plan_status(wanted, kept, sent, "u", T1) is None


def test_somebody_elses_edit_of_the_status_is_put_right() -> None:
    wanted = {"ready": True}
    sent = SentStatus("u", wanted, wanted)

    assert plan_status(wanted, {"ready": False}, sent, "u", T1) == {"ready": True}


def test_what_was_sent_for_an_earlier_object_of_the_name_does_not_count() -> None:
    wanted = {"ready": True}
    sent = SentStatus("old", wanted, {})

    assert plan_status(wanted, {}, sent, "new", T1) == wanted


def test_fields_that_are_no_longer_said_are_removed() -> None:
    assert merge_patch({"ready": False}, {"ready": True, "message": "x"}) == {
        "status": {"message": None, "ready": False}
    }


def condition(status: str = "True", time: str | None = "2026-01-01T00:00:00Z", **more: Any) -> Condition:
    return Condition(type="Ready", status=status, last_transition_time=time, **more)


class Health(Model):
    healthy: bool = False
    note: str | None = None
    conditions: Conditions = ()


@pytest.mark.parametrize(
    ("wanted", "live", "same"),
    [
        (Health(healthy=True), Health(healthy=True), True),
        (Health(healthy=True), Health(), False),
        (Health(), Health(note="x"), False),
        (Health(), None, False),
        (Health(), condition(), False),
        (Health(conditions=(condition(time=None),)), Health(conditions=(condition(),)), True),
        (Health(conditions=(condition(),)), Health(conditions=(condition(),)), True),
        (Health(conditions=(condition(time=None),)), Health(conditions=(condition(time=None),)), True),
        (Health(conditions=(condition(time=None),)), Health(conditions=(condition("False"),)), False),
        (Health(conditions=(condition(time=None, reason="A"),)), Health(conditions=(condition(),)), False),
        (Health(conditions=(condition(time=None),)), Health(), False),
        (Health(), Health(conditions=(condition(),)), False),
    ],
)
def test_the_quick_look_sees_every_difference_but_that_of_times(
    wanted: Model, live: object, same: bool
) -> None:
    assert says_the_same(wanted, live) is same


def test_a_message_that_is_too_long_is_cut() -> None:
    """The API allows 32,768 characters; a longer error text must not be an error of its own."""
    full = with_transition_times({"conditions": [ready("True", message="x" * 40_000)]}, {}, T0)
    message = full["conditions"][0]["message"]
    assert (len(message), message[-2:]) == (32_768, "x…")
