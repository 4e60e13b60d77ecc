"""Events are one kind of object under two names. The real server's answers: corpus, builtins/event."""

from __future__ import annotations

from typing import Any

from kubeloop.sandbox.builtins.events import NewEventStrategy, to_core, to_new

EVENT: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "e", "namespace": "n"},
    "involvedObject": {"kind": "Book", "name": "b", "namespace": "n"},
    "reason": "Read",
    "message": "to the end",
    "type": "Normal",
    "count": 2,
    "source": {"component": "reader"},
    "firstTimestamp": "2001-02-03T04:05:06Z",
    "lastTimestamp": "2001-02-03T04:05:07Z",
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}


def test_an_event_comes_back_from_the_other_group_unchanged() -> None:
    there = to_new(EVENT)
    assert there["regarding"] == EVENT["involvedObject"]
    assert there["note"] == "to the end"
    assert there["deprecatedCount"] == 2
    assert to_core(there) == EVENT


def test_the_new_group_wants_the_new_fields_only() -> None:
    causes = NewEventStrategy().validate_create(to_new(EVENT))
    assert {(cause.field, cause.message) for cause in causes} == {
        ("eventTime", "Required value"),
        ("firstTimestamp", 'Invalid value: "": needs to be unset'),
        ("lastTimestamp", 'Invalid value: "": needs to be unset'),
        ("count", 'Invalid value: "": needs to be unset'),
        ("source", 'Invalid value: "": needs to be unset'),
    }


def test_only_the_series_of_a_new_event_changes() -> None:
    time = "2001-02-03T04:05:06.000000Z"
    new = to_new(
        {**EVENT, "eventTime": time, "reportingComponent": "a/b", "reportingInstance": "i", "action": "Go"}
    )
    series = {"series": {"count": 2, "lastObservedTime": time}}
    strategy = NewEventStrategy()
    assert not strategy.validate_update({**new, **series}, new)
    assert [c.field for c in strategy.validate_update({**new, "note": "other"}, new)] == ["message"]
    short = strategy.validate_update({**new, "series": {"count": 1}}, new)
    assert [c.field for c in short] == ["series.count", "series.lastObservedTime"]
