"""Leader election on a Lease: of several processes at most one may write.

The contract
------------
* **At most one.** `LeaderElector.fence` is open in at most one of the processes that use the same Lease,
  whatever their wall clocks say, as long as their clocks run at about the same speed (a factor of 1.5 with
  the defaults). Ask it before each write: ``Client(transport, fence=elector.fence.check)``.
* **The fence closes by itself**, `renew_deadline` after the start of the newest successful renewal, by the
  clock of whoever asks. A hanging request, a thread that hogs the interpreter or a stopped process cannot
  keep it open, and once closed it stays closed.
* **Losing** is announced once (`on_lost`), by the deadline at the latest, also while a request hangs. There
  is no second term: the process has to end and start anew, since nobody knows what its threads still do.
* **Stopping** closes the fence, looks who holds the lease now, and releases it if it is still this process;
  a standby takes over within a fraction of a second. Stop the workers first.
* **The Lease is shared property.** Labels, annotations, strategy and preferredHolder stay as they are. Of
  somebody else's record one thing is believed: for how long it is to be waited for.
* **Needs** get, create and update on leases; with watch, a standby learns of a release at once instead of
  within a retry period. It has a connection of its own, so that a full pool cannot delay a renewal.
* All candidates should have the same settings.

`ElectorCore` takes all decisions and is pure; `LeaderElector` adds the threads, `LeaseLock` the requests.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubeloop.leader.core import ElectorCore, Phase
    from kubeloop.leader.elector import HEALTH_TIMEOUT, ElectionObserver, LeaderElector
    from kubeloop.leader.fence import Fence, NotLeader, steady_seconds
    from kubeloop.leader.lock import LeaseLock
    from kubeloop.leader.settings import ElectionSettings, new_identity
    from kubeloop.leader.view import View

__all__ = [
    "HEALTH_TIMEOUT",
    "ElectionObserver",
    "ElectionSettings",
    "ElectorCore",
    "Fence",
    "LeaderElector",
    "LeaseLock",
    "NotLeader",
    "Phase",
    "View",
    "new_identity",
    "steady_seconds",
]

# Imported when first used: every process asks the fence, but not every process is a candidate.
_HOME_OF = {
    "HEALTH_TIMEOUT": "elector",
    "ElectionObserver": "elector",
    "ElectionSettings": "settings",
    "ElectorCore": "core",
    "Fence": "fence",
    "LeaderElector": "elector",
    "LeaseLock": "lock",
    "NotLeader": "fence",
    "Phase": "core",
    "View": "view",
    "new_identity": "settings",
    "steady_seconds": "fence",
}


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
