"""What the elector's core is told and what it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Now:
    """One moment on two clocks."""

    steady: float
    """Seconds on this machine's steady clock: everything is decided by these."""
    wall: datetime
    """What is written into the Lease for people to read: nothing is decided by it."""


# Events: what happened since the last step.


@dataclass(frozen=True, slots=True)
class Tick:
    """Nothing but time passed, or somebody hinted that a look is worth while (`early`)."""

    early: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """The Lease as a consistent read showed it; None if there is none."""

    lease: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Written:
    """The server carried out our write; the Lease as it is now."""

    lease: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """The server did not carry out our write, since the Lease is not what we took it for."""


@dataclass(frozen=True, slots=True)
class Failed:
    """There was no answer, or one that does not help. A write may have been carried out all the same."""

    why: str


@dataclass(frozen=True, slots=True)
class Stop:
    """The candidate gives up. With `release` it lets go of the lease first, if it holds it."""

    release: bool = True


Event = Tick | Seen | Written | Refused | Failed | Stop


# Actions: what to do next. Requests must be given up after `timeout` seconds.


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait until `until` on the steady clock, then step with `Tick`. It is no harm to come earlier."""

    until: float


@dataclass(frozen=True, slots=True)
class Read:
    """Get the Lease, consistently (no resourceVersion)."""

    timeout: float


@dataclass(frozen=True, slots=True)
class Create:
    """Create this Lease."""

    lease: Mapping[str, Any]
    timeout: float


@dataclass(frozen=True, slots=True)
class Update:
    """Replace the Lease by this one, on condition of the uid and resourceVersion that are in it."""

    lease: Mapping[str, Any]
    timeout: float


@dataclass(frozen=True, slots=True)
class Over:
    """Nothing more to do, ever: see the core's phase."""


Action = Sleep | Read | Create | Update | Over
