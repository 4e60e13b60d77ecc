"""How a reconcile can end; the one place where the outcomes are defined.

| a reconcile … | means | what happens next |
| --- | --- | --- |
| returns ``Result(requeue_after=…)`` | all is well for now | looked at again then, or on a change |
| returns ``Result()`` | all is well | looked at again only on a change |
| raises `Blocked` | only somebody else can unblock it | looked at again on a change, or later |
| raises `TerminalError` | trying again cannot help | not retried until the object changes |
| raises the server's 422 (Invalid) | what we ask for is wrong | as terminal, asked again at the resync |
| raises anything else | it failed | retried with exponential backoff |

All but the last reset the backoff of the object.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

RESYNC = timedelta(seconds=300)
"""How often an object is looked at when nothing happens (R0.11)."""


@dataclass(frozen=True, slots=True)
class Result:
    """A successful reconcile, and when to look at the object again (None: when it changes)."""

    requeue_after: timedelta | None = None

    def __post_init__(self) -> None:
        if self.requeue_after is not None and self.requeue_after <= timedelta(0):
            raise ValueError(f"requeue_after must be positive, not {self.requeue_after}")


class TerminalError(Exception):
    """The object cannot be reconciled as it is; no retry until it changes."""


class Blocked(Exception):
    """Nothing can be done until something outside changes; not a failure of this operator."""

    look_again: timedelta = RESYNC


class NotOurs(Blocked):
    """An object of the wanted name belongs to somebody else and was left untouched (D2).

    Cleared by itself: the object is looked at again as soon as that other one changes or goes.
    """

    def __init__(self, child: str, holder: str) -> None:
        self.child = child
        """Kind and name of the object in the way, e.g. ``Deployment default/hello``."""
        self.holder = holder
        """Who has it, as far as the object tells."""
        super().__init__(f"{child} already exists and {holder}; it is left untouched")


class GoingAway(Blocked):
    """A child, or the namespace, is being deleted; it can only be made anew when it is gone."""

    def __init__(self, what: str, why: str = "is being deleted") -> None:
        self.what = what
        super().__init__(f"{what} {why}")


class Contended(Blocked):
    """Somebody else keeps changing a child; it is repaired again, but at a slower pace."""

    def __init__(self, child: str, seconds: float) -> None:
        self.child = child
        self.look_again = timedelta(seconds=seconds)
        super().__init__(
            f"{child} is changed by somebody else again and again; it is repaired more slowly now"
        )


class KeptChanging(Exception):
    """An object changed under each of several tries to write it; tried again with backoff."""
