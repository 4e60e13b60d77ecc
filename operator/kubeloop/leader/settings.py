"""The settings of an election, checked against each other, and the name of a candidate."""

from __future__ import annotations

import math
import socket
from dataclasses import dataclass

JITTER_FACTOR = 1.2
"""client-go's: the renew deadline must leave room for a retry that comes late by that much."""

LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD = 15.0, 10.0, 2.0
"""Seconds; client-go's defaults."""


def new_identity() -> str:
    """`hostname_uuid`, unique to this call: a restarted process must not take itself for its predecessor."""
    import uuid  # late: only who takes part in an election needs it

    return f"{socket.gethostname()}_{uuid.uuid4()}"


@dataclass(frozen=True, slots=True)
class ElectionSettings:
    """How one candidate takes part. Raises ValueError, with the rule that was broken, if they do not fit.

    `lease_duration` is how long others wait without seeing a renewal before they take over, `renew_deadline`
    how long after the start of its last renewal the holder still writes, `retry_period` how often it renews
    and others look (all seconds). The difference of the first two is the time that a write may be on its way,
    and what clocks may run at different speeds: 15 to 10 allows for a factor of 1.5.

    `trust_absence` decides what a Lease that does not exist means. False: perhaps somebody deleted it under a
    leader that does not know yet, so wait a lease duration before the first start. True: nobody leads, as
    client-go and others think; then whoever deletes the Lease can make two leaders for `renew_deadline`.
    """

    identity: str
    lease_duration: float = LEASE_DURATION
    renew_deadline: float = RENEW_DEADLINE
    retry_period: float = RETRY_PERIOD
    trust_absence: bool = False

    def __post_init__(self) -> None:
        lease, renew, retry = self.lease_duration, self.renew_deadline, self.retry_period
        if not self.identity:
            raise ValueError("identity must not be empty")
        for name, value in (("lease duration", lease), ("renew deadline", renew), ("retry period", retry)):
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be more than 0 seconds, not {value:g}")
        if lease != int(lease) or lease > 2**31 - 1:
            raise ValueError(f"lease duration must be whole seconds (a Lease stores no other), not {lease:g}")
        if lease <= renew:
            raise ValueError(
                "lease duration must be longer than the renew deadline: "
                f"{lease:g} s is not more than {renew:g} s"
            )
        if renew <= JITTER_FACTOR * retry:
            raise ValueError(
                f"renew deadline must be longer than {JITTER_FACTOR:g} times the retry period: "
                f"{renew:g} s is not more than {JITTER_FACTOR:g} x {retry:g} s"
            )

    @property
    def lease_seconds(self) -> int:
        """The lease duration as a Lease stores it."""
        return int(self.lease_duration)

    @property
    def request_timeout(self) -> float:
        """Seconds that one request may take: within the deadline there must be time for a second one."""
        return max(1.0, self.renew_deadline / 2)
