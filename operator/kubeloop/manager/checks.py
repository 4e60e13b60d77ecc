"""What the probes of a manager look at.

Liveness asks whether a restart would help: has a thread died, or did the election go wrong? Readiness asks
whether the process could do its work, and says what is missing. The API server's troubles are a matter of
readiness: restarting an operator does not mend them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kubeloop.manager.telemetry import silence

if TYPE_CHECKING:
    from kubeloop.manager.manager import Manager

MAX_SILENCE = 330.0
"""Seconds without any news of a kind after which its cache is called stale: two read deadlines of a watch
(150 s each), within which it must have been opened anew, and some slack."""


def liveness(manager: Manager) -> dict[str, Callable[[], str]]:
    """The checks of ``/healthz``."""

    def informers() -> str:
        dead = [i.kind_name for i in manager.informers.values() if i.dead]
        return f"the informer has died: {', '.join(dead)}" if dead else ""

    def workers() -> str:
        if manager.stopping:
            return ""
        dead = [name for running in manager.controllers for name in running.workers.dead]
        return f"workers have died: {', '.join(dead)}" if dead else ""

    def election() -> str:
        return manager.elector.unhealthy() if manager.elector is not None else ""

    return {"informers": informers, "workers": workers, "leaderElection": election}


def readiness(manager: Manager) -> dict[str, Callable[[], str]]:
    """The checks of ``/readyz``. Standbys with warm caches are ready."""

    def caches() -> str:
        """Not synced, or in trouble since: with verb, kind and namespace."""
        waiting = [
            f"{informer.kind_name}: {informer.state}"
            for informer in manager.informers.values()
            if not informer.has_synced or any(scope.error for scope in informer.scopes)
        ]
        return "; ".join(waiting)

    def freshness() -> str:
        stale = {i.kind_name: silence(i) for i in manager.informers.values() if i.has_synced}
        return "; ".join(
            f"{kind}: no news for {age:.0f} s" for kind, age in stale.items() if age > MAX_SILENCE
        )

    def lease() -> str:
        """What keeps the process from looking at the Lease: it could never take over."""
        return manager.elector.view.problem if manager.elector is not None else ""

    def shutdown() -> str:
        return "the process is stopping" if manager.stopping else ""

    return {"caches": caches, "freshness": freshness, "lease": lease, "shutdown": shutdown}
