"""The elector's decisions: when to look, when to claim, when to renew, and when it is over."""

from __future__ import annotations

import enum
import math
import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubeloop.leader.actions import (
    Action,
    Create,
    Event,
    Failed,
    Now,
    Over,
    Read,
    Refused,
    Seen,
    Sleep,
    Stop,
    Tick,
    Update,
    Written,
)
from kubeloop.leader.record import LeaseRecord, decode, encode, new_lease
from kubeloop.leader.settings import ElectionSettings

STANDBY_JITTER = 0.25
"""Standbys look every retry period, or up to this part of it earlier, so that they spread."""

RELEASE_TRIES = 3
"""Rounds of reading and writing that a release makes before it leaves the lease to expire."""

_REMEMBERED = 16  # own writes with a lost answer that a later read may still show


class Phase(enum.Enum):
    """Where a candidate is. It only ever moves down this list: who lost does not come back."""

    STANDBY = "standby"
    LEADING = "leading"
    RELEASING = "releasing"
    LOST = "lost"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Sight:
    """A state of the Lease and since when, by our own clock, it has not changed."""

    record: LeaseRecord | None
    """None: there is no Lease."""
    since: float


class ElectorCore:
    """Not thread-safe; no clock, I/O or thread. `step` is told what happened and says what to do next.

    Invariants, from which it follows that no two candidates lead at once as long as their clocks run at
    speeds whose ratio is below lease_duration / renew_deadline:

    1. *Leading* means that the newest write of ours that the server confirmed was sent at `renewed`, and that
       it is not yet `renewed` + renew_deadline. The answer's arrival never counts.
    2. A claim is always an update of exactly the Lease that was read (uid, resourceVersion), and that read
       showed it released, written by ourselves, or unchanged for its own duration by our own clock, measured
       from when we first saw it so. Between that read and the claim nobody else can have led.
    3. A Lease that is missing is no proof that nobody leads. So it is created *reserved* (never held, own
       duration) and waited out; only a leader, while it leads, makes itself the holder of a Lease that is
       missing or reserved. (Setting `trust_absence` gives this up.)
    4. No timestamp of a record is ever read, only whether the record changed.
    5. A record counts as ours only if it is, byte for byte, one that we sent, that was not refused, and that
       can have been carried out since. Our name alone proves nothing.
    6. The phase only moves forward.
    """

    def __init__(
        self, namespace: str, name: str, settings: ElectionSettings, rng: random.Random | None = None
    ) -> None:
        self.settings = settings
        self.phase = Phase.STANDBY
        self.renewed = -math.inf
        """When the last write that the server confirmed was sent."""
        self.why = ""
        """Why the lease was lost, or what stands in the way of a request."""
        self.sight: Sight | None = None
        """The newest known state of the Lease."""
        self.slow_paths = 0
        """How often a leader had to read the Lease, because it could not just renew what it remembered."""
        self._namespace = namespace
        self._name = name
        self._rng = rng or random.Random()
        # Claims of ours that the Lease may show: the record, and the resourceVersion that it replaces.
        self._sent: deque[tuple[LeaseRecord, str]] = deque(maxlen=_REMEMBERED)
        self._under_way: tuple[LeaseRecord, str] | None = None
        self._started = -math.inf  # when the newest request was sent
        self._next = -math.inf  # no new attempt before
        self._remembered: Mapping[str, Any] | None = None  # the Lease as our last write left it
        self._look = False  # read before the next write, at once
        self._release_by = math.inf
        self._release_tries = 0

    @property
    def until(self) -> float:
        """When leading ends unless a renewal is confirmed before."""
        return self.renewed + self.settings.renew_deadline

    def step(self, now: Now, event: Event) -> Action:
        """What to do next, given what happened. After an action that is a request, its outcome is due."""
        if self.phase is Phase.LEADING and now.steady >= self.until:
            self._lose(f"not renewed in time: {self.why or 'the answer came too late'}")
        if self.phase in (Phase.LOST, Phase.STOPPED):
            return Over()
        if isinstance(event, Stop):
            self._stop(now.steady, release=event.release)
            event = Tick()
        match event:  # the outcome of the request under way, if there was one
            case Seen(lease):
                self.why = ""
                self._observe(now.steady, lease)
            case Written(lease):
                self._confirmed(now.steady, lease)
            case Refused():
                self.why = "the Lease was changed by somebody else"
                if self._under_way is not None and self._under_way in self._sent:
                    self._sent.remove(self._under_way)
                # From memory: look at once what happened. After a look: somebody was faster, wait.
                self._look = self._remembered is not None
                self._remembered = None
            case Failed(why):
                self.why = why
            case Tick(early):
                if early and self.phase is Phase.STANDBY:
                    self._next = now.steady
        lease = event.lease if isinstance(event, Seen) else None
        match self.phase:
            case Phase.STANDBY:
                return self._stand_by(now, lease, read=isinstance(event, Seen))
            case Phase.LEADING:
                return self._lead(now, lease, read=isinstance(event, Seen))
            case Phase.RELEASING:
                return self._release(now, lease, read=isinstance(event, Seen))
            case Phase.LOST | Phase.STOPPED:
                return Over()

    def _stand_by(self, now: Now, lease: Mapping[str, Any] | None, *, read: bool) -> Action:
        if not read:
            return self._sleep_or_read(now)
        if lease is None:
            if self.settings.trust_absence:
                return self._claim(now, None)
            return self._reserve(now)
        free_at = self._free_at()
        if free_at <= now.steady:
            return self._claim(now, lease)
        # Look again the moment it expires, not up to a retry period later.
        self._next = min(self._next, free_at)
        return Sleep(self._next)

    def _lead(self, now: Now, lease: Mapping[str, Any] | None, *, read: bool) -> Action:
        if read:
            # A deleted Lease may have been created anew by a standby, which then waits: it is still ours.
            if lease is None or self._is_ours() or decode(lease).never_held:
                return self._claim(now, lease)
            holder = decode(lease).holder
            self._lose(f"the Lease was taken by {holder}" if holder else "the Lease was cleared by somebody")
            return Over()
        if self._look:
            return self._read(now)
        if now.steady >= self._next and self._remembered is not None:
            self._attempt(now.steady)
            return self._claim(now, self._remembered)
        return self._sleep_or_read(now)

    def _release(self, now: Now, lease: Mapping[str, Any] | None, *, read: bool) -> Action:
        if read and lease is not None and self._is_ours():
            record = decode(lease).given_up(now.wall)
            self._started = now.steady
            return Update(encode(record, lease), self._limit(now.steady))
        # Not ours any more (a successor's lease must not be cleared), or no time left for another try.
        if read or self._release_tries >= RELEASE_TRIES or now.steady >= self._release_by:
            self.phase = Phase.STOPPED
            return Over()
        self._release_tries += 1
        return self._read(now)

    def _sleep_or_read(self, now: Now) -> Action:
        if now.steady >= self._next:
            self._attempt(now.steady)
            return self._read(now)
        return Sleep(min(self._next, self.until) if self.phase is Phase.LEADING else self._next)

    def _attempt(self, now: float) -> None:
        """A new attempt begins: the next one is due a retry period after it."""
        spread = 1.0 if self.phase is Phase.LEADING else 1 - STANDBY_JITTER * self._rng.random()
        self._next = now + self.settings.retry_period * spread

    def _read(self, now: Now) -> Read:
        self._look = False
        self._remembered = None
        self._under_way = None
        self._started = now.steady
        if self.phase is Phase.LEADING:
            self.slow_paths += 1
        return Read(self._limit(now.steady))

    def _reserve(self, now: Now) -> Action:
        self._under_way = None
        record = LeaseRecord.reserved(self.settings.lease_seconds, now.wall)
        return Create(encode(record, new_lease(self._namespace, self._name)), self._limit(now.steady))

    def _claim(self, now: Now, lease: Mapping[str, Any] | None) -> Action:
        """Write ourselves into the Lease; None: into a new one."""
        before = LeaseRecord() if lease is None else decode(lease)
        record = before.claimed(self.settings.identity, self.settings.lease_seconds, now.wall)
        self._under_way = record, _version(lease)
        self._sent.append(self._under_way)
        self._started = now.steady
        if lease is None:
            return Create(encode(record, new_lease(self._namespace, self._name)), self._limit(now.steady))
        return Update(encode(record, lease), self._limit(now.steady))

    def _confirmed(self, now: float, lease: Mapping[str, Any]) -> None:
        self._observe(now, lease)
        if self.phase is Phase.RELEASING:
            self.phase = Phase.STOPPED
        if self.phase not in (Phase.STANDBY, Phase.LEADING) or not self._is_ours():
            return  # a reservation
        self._remembered = lease
        self.renewed = self._started
        self.why = ""
        if now < self.until:
            self.phase = Phase.LEADING
            self._next = self._started + self.settings.retry_period
        # Else the answer took too long to lead by it; the Lease is ours, so the next attempt renews it.

    def _observe(self, now: float, lease: Mapping[str, Any] | None) -> None:
        record = None if lease is None else decode(lease)
        # Only a change of these fields is a sign of life of the holder; an edited label is not.
        if self.sight is None or self.sight.record != record:
            self.sight = Sight(record, now)
        # Whatever replaces another resourceVersion than this can never be carried out any more. To go on
        # expecting it would mean to take a record that only looks like it for ours.
        version = _version(lease)
        for claim in [claim for claim in self._sent if claim[0] != record and claim[1] != version]:
            self._sent.remove(claim)

    def _is_ours(self) -> bool:
        record = self.sight.record if self.sight is not None else None
        return record is not None and any(claim[0] == record for claim in self._sent)

    def _free_at(self) -> float:
        """When the Lease may be claimed if it does not change until then."""
        if self.sight is None or self.sight.record is None:
            return math.inf
        record = self.sight.record
        if record.released or self._is_ours():
            return -math.inf
        # A holder that does not say how long its lease is gets as long as we would.
        return self.sight.since + (record.duration if record.duration > 0 else self.settings.lease_duration)

    def _limit(self, now: float) -> float:
        limit = self.settings.request_timeout
        if self.phase is Phase.LEADING:
            return min(limit, self.until - now)
        if self.phase is Phase.RELEASING:
            return min(limit, max(self._release_by - now, 0.1))
        return limit

    def _lose(self, why: str) -> None:
        self.phase = Phase.LOST
        self.why = why

    def _stop(self, now: float, *, release: bool) -> None:
        if self.phase not in (Phase.STANDBY, Phase.LEADING):
            return
        # A standby whose claim went unanswered may hold the lease without knowing.
        self.phase = Phase.RELEASING if release and self._sent else Phase.STOPPED
        self._release_by = now + self.settings.request_timeout


def _version(lease: Mapping[str, Any] | None) -> str:
    """The resourceVersion of a Lease; empty for one that does not exist."""
    return str((lease.get("metadata") or {}).get("resourceVersion") or "") if lease is not None else ""
