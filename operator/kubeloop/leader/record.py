"""What a coordination.k8s.io/v1 Lease says, read tolerantly and written exactly.

Facts learnt from kube-apiserver 1.36: `leaseDurationSeconds` 0 is refused (kubernetes#91966); a time without
exactly six digits of fraction is refused; a PUT of an object that is gone is a 409 as long as the object
carries its uid, without it the PUT *creates* the object. So leases are written back as they were read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kubeloop.model import Resource

LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")

RELEASED_SECONDS = 1
"""`leaseDurationSeconds` of a released lease: the least that the server accepts, as client-go does."""


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The five fields that election is about; all times are only passed on and never understood."""

    holder: str = ""
    duration: int = 0
    """Seconds; 0 if the Lease does not say."""
    acquire_time: str = ""
    renew_time: str = ""
    transitions: int | None = None
    """None on a Lease that nobody has held yet."""

    @property
    def released(self) -> bool:
        """Nobody holds it, and whoever did has said so.

        An empty holder with a longer duration was not written by a release: somebody cleared the field by
        hand, while the holder may still be at work. That is waited out like any other lease.
        """
        return not self.holder and self.duration <= RELEASED_SECONDS

    @property
    def never_held(self) -> bool:
        """Nobody holds it and nobody ever did: a Lease that was only reserved, or shipped empty."""
        return not self.holder and self.transitions is None

    def claimed(self, identity: str, duration: int, wall: datetime) -> LeaseRecord:
        """This record after `identity` took or renewed it at wall-clock time `wall`.

        Renewing keeps acquireTime and leaseTransitions; taking over counts one transition, also after a
        release; the first holder ever counts none.
        """
        now = micro_time(wall)
        if self.holder == identity:
            # Others tell by the change of the record that we live, so it must change though the clock stands.
            now = _later_than(self.renew_time, wall)
            return replace(self, duration=duration, renew_time=now, transitions=self.transitions or 0)
        transitions = 0 if self.transitions is None else self.transitions + 1
        return LeaseRecord(identity, duration, now, now, transitions)

    @classmethod
    def reserved(cls, duration: int, wall: datetime) -> LeaseRecord:
        """A record that nobody has held yet, and that nobody may take for `duration` seconds."""
        # One more than what a release writes, or it would be taken for one.
        return cls(duration=max(duration, RELEASED_SECONDS + 1), renew_time=micro_time(wall))

    def given_up(self, wall: datetime) -> LeaseRecord:
        """This record after its holder let go of it."""
        now = micro_time(wall)
        return LeaseRecord("", RELEASED_SECONDS, now, now, self.transitions)


def micro_time(moment: datetime) -> str:
    """RFC 3339 in UTC with exactly six digits: `isoformat` leaves them out when they are zero."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _later_than(written: str, wall: datetime) -> str:
    """`wall`, or just after `written` if the clock has not moved on since, give or take a second."""
    try:
        last = datetime.fromisoformat(written)
        # A clock that was set back by more shows a new time anyway, and people want to see that one.
        if timedelta(0) <= last - wall < timedelta(seconds=1):
            return micro_time(last + timedelta(microseconds=1))
    except (ValueError, TypeError, OverflowError):
        return micro_time(wall)  # somebody else's idea of a time
    return micro_time(wall)


def decode(lease: Mapping[str, Any]) -> LeaseRecord:
    """The record of `lease`. Whatever is missing or of a wrong type reads as not set."""
    spec = lease.get("spec")
    if not isinstance(spec, Mapping):
        return LeaseRecord()
    return LeaseRecord(
        holder=_text(spec.get("holderIdentity")),
        duration=_number(spec.get("leaseDurationSeconds")) or 0,
        acquire_time=_text(spec.get("acquireTime")),
        renew_time=_text(spec.get("renewTime")),
        transitions=_number(spec.get("leaseTransitions")),
    )


def encode(record: LeaseRecord, lease: Mapping[str, Any]) -> dict[str, Any]:
    """`lease` with `record` in it; all other fields (labels, strategy, preferredHolder) are as they were."""
    ours = {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.duration,
        "acquireTime": record.acquire_time or None,
        "renewTime": record.renew_time or None,
        "leaseTransitions": record.transitions,
    }
    theirs = {key: value for key, value in (lease.get("spec") or {}).items() if key not in ours}
    return {**lease, "spec": theirs | {key: value for key, value in ours.items() if value is not None}}


def new_lease(namespace: str, name: str) -> dict[str, Any]:
    """A Lease that does not exist yet, with nothing in it."""
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"namespace": namespace, "name": name},
    }


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
