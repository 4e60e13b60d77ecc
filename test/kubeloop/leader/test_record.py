"""Leases, read and written."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

from kubeloop.leader.record import LeaseRecord, decode, encode, micro_time, new_lease

WALL = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_times_have_six_digits_and_a_z_always() -> None:
    """go-anchors 6.12; kubernetes-client/python leaves zero microseconds out, and the server refuses that."""
    assert micro_time(WALL) == "2026-01-02T03:04:05.000000Z"
    assert micro_time(WALL + timedelta(microseconds=70)) == "2026-01-02T03:04:05.000070Z"
    assert micro_time(WALL.astimezone(timezone(timedelta(hours=5)))) == "2026-01-02T03:04:05.000000Z"


def test_a_record_survives_being_written_and_read() -> None:
    record = LeaseRecord().claimed("a", 15, WALL)
    assert decode(encode(record, new_lease("ns", "n"))) == record
    assert encode(record, new_lease("ns", "n"))["spec"] == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-02T03:04:05.000000Z",
        "renewTime": "2026-01-02T03:04:05.000000Z",
        "leaseTransitions": 0,
    }


@pytest.mark.parametrize(
    "lease",
    [{}, {"spec": None}, {"spec": []}, {"spec": {"holderIdentity": 7, "leaseDurationSeconds": "15"}}],
)
def test_whatever_is_missing_or_nonsense_reads_as_not_set(lease: dict[str, object]) -> None:
    assert decode(lease) == LeaseRecord()
    assert decode(lease).released


def test_only_an_empty_holder_with_the_least_duration_is_released() -> None:
    held = LeaseRecord().claimed("a", 15, WALL)
    assert not held.released
    assert held.given_up(WALL).released
    assert held.given_up(WALL).duration == 1
    assert not LeaseRecord("", 15).released
    assert not LeaseRecord.reserved(1, WALL).released


def test_encoding_changes_nothing_but_our_fields_and_not_its_argument() -> None:
    lease = {"metadata": {"uid": "u"}, "spec": {"preferredHolder": None, "strategy": "x", "renewTime": "old"}}
    written = encode(LeaseRecord("a", 15), lease)
    assert written["spec"] == {
        "preferredHolder": None,
        "strategy": "x",
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
    }
    assert lease["spec"]["renewTime"] == "old"


@pytest.mark.parametrize("nonsense", ["", "yesterday", "2026-01-02", "9999-12-31T23:59:59.999999Z"])
def test_a_renewal_copes_with_any_time_that_somebody_else_wrote(nonsense: str) -> None:
    renewed = LeaseRecord("a", 15, nonsense, nonsense, 3).claimed("a", 15, WALL)
    assert renewed.renew_time == micro_time(WALL)
    assert renewed.acquire_time == nonsense


def test_a_new_lease_has_a_name_and_says_nothing() -> None:
    assert new_lease("ns", "leader") == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": "ns", "name": "leader"},
    }


@pytest.mark.parametrize(
    ("record", "never_held"),
    [
        (LeaseRecord(), True),
        (LeaseRecord("", 15), True),
        (LeaseRecord("a", 15), False),
        (LeaseRecord("", 1, transitions=0), False),
        (LeaseRecord("a", 15, transitions=0), False),
    ],
)
def test_a_lease_was_never_held_if_it_has_neither_holder_nor_transitions(
    record: LeaseRecord, never_held: bool
) -> None:
    assert record.never_held is never_held


@pytest.mark.parametrize(("before", "after"), [(None, 0), (0, 1), (7, 8)])
@pytest.mark.parametrize("holder", ["", "b"])
def test_taking_over_is_a_transition_but_for_the_first_holder_ever(
    holder: str, before: int | None, after: int
) -> None:
    taken = LeaseRecord(holder, 40, "then", "later", before).claimed("a", 15, WALL)
    now = micro_time(WALL)
    assert taken == LeaseRecord("a", 15, now, now, after)


@pytest.mark.parametrize(("before", "after"), [(None, 0), (0, 0), (7, 7)])
def test_renewing_changes_the_time_and_the_duration_only(before: int | None, after: int) -> None:
    renewed = LeaseRecord("a", 40, "then", "2020-01-01T00:00:00.000000Z", before).claimed("a", 15, WALL)
    assert renewed == LeaseRecord("a", 15, "then", micro_time(WALL), after)


@pytest.mark.parametrize(
    ("moved", "written"),
    [
        (timedelta(microseconds=1), timedelta(microseconds=1)),
        (timedelta(0), timedelta(microseconds=1)),
        (timedelta(microseconds=-999_999), timedelta(microseconds=1)),
        (timedelta(seconds=-1), timedelta(seconds=-1)),
        (timedelta(days=-1), timedelta(days=-1)),
    ],
    ids=str,
)
def test_a_renewal_is_never_written_with_the_time_of_the_one_before(
    moved: timedelta, written: timedelta
) -> None:
    """A clock that stands, or was set back by less than a second, is helped on."""
    renewed = LeaseRecord("a", 15, renew_time=micro_time(WALL)).claimed("a", 15, WALL + moved)
    assert renewed.renew_time == micro_time(WALL + written)


def test_a_reservation_has_no_holder_and_is_no_release() -> None:
    assert LeaseRecord.reserved(15, WALL) == LeaseRecord("", 15, "", micro_time(WALL), None)
    assert LeaseRecord.reserved(1, WALL).duration == 2
    assert LeaseRecord.reserved(2, WALL).duration == 2


def test_giving_up_keeps_the_count_of_transitions() -> None:
    now = micro_time(WALL)
    assert LeaseRecord("a", 15, "then", "later", 7).given_up(WALL) == LeaseRecord("", 1, now, now, 7)


@pytest.mark.parametrize("duration", [0, 1])
def test_no_holder_and_hardly_a_duration_is_a_release(duration: int) -> None:
    assert LeaseRecord("", duration).released
    assert not LeaseRecord("", 2).released
    assert not LeaseRecord("a", duration).released


def test_each_field_is_read_from_its_place() -> None:
    spec = {
        "holderIdentity": "b",
        "leaseDurationSeconds": 40,
        "acquireTime": "then",
        "renewTime": "later",
        "leaseTransitions": 7,
    }
    assert decode({"spec": spec}) == LeaseRecord("b", 40, "then", "later", 7)
    for field, value in spec.items():
        assert decode({"spec": {**spec, field: True}}) == decode({"spec": {**spec, field: None}})
        assert decode({"spec": {field: value}}) != LeaseRecord()


@pytest.mark.parametrize("lease", [{}, {"spec": None}, {"spec": {}}])
def test_what_is_not_set_is_left_out_of_a_written_lease(lease: dict[str, object]) -> None:
    assert encode(LeaseRecord(), lease) == {"spec": {"holderIdentity": "", "leaseDurationSeconds": 0}}
    assert encode(LeaseRecord("a", 15, "then", "later", 0), lease) == {
        "spec": {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "then",
            "renewTime": "later",
            "leaseTransitions": 0,
        }
    }


def test_times_are_written_in_utc_wherever_the_process_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        written = micro_time(WALL)
    time.tzset()
    assert written == "2026-01-02T03:04:05.000000Z"
