"""Leases, read and written."""

from __future__ import annotations

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
