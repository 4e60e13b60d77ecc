"""Who leads, as one candidate knows it: for people, never for decisions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class View:
    """What is known of the Lease. Replaced as a whole, so any thread may read it."""

    identity: str
    """Our own."""
    holder: str | None = None
    """Empty: nobody; None: not known (no Lease, or no answer yet)."""
    acquired: str = ""
    """Since when the holder leads, as it wrote itself, by its own clock."""
    changed: float = 0.0
    """When the record was last seen to change, on our steady clock."""
    transitions: int = 0
    """How often the lease has gone from one holder to another."""
    problem: str = ""
    """What stands in the way of looking at the Lease or renewing it."""

    def describe(self, now: float, *, leads: bool, lost: str) -> str:
        """One sentence; `now` is the steady clock."""
        age = f"{max(now - self.changed, 0.0):.1f} s ago"
        since = f" since {self.acquired}" if self.acquired else ""
        if lost:
            text = f"{self.identity} (this process) lost the lease: {lost}"
        elif leads:
            text = f"{self.identity} (this process) leads{since}, renewed {age}"
        elif self.holder:
            text = f"{self.holder} leads{since}, last seen renewing {age}; this process stands by"
        elif self.holder == "":
            text = f"nobody leads (seen {age}); this process stands by"
        else:
            text = "it is not known who leads; this process stands by"
        return f"{text} ({self.problem})" if self.problem and not lost else text
