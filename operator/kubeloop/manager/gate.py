"""The gate that every write of the process passes: is this process allowed to write, at this moment?"""

from __future__ import annotations

from collections.abc import Callable

from kubeloop.leader import Fence, NotLeader
from kubeloop.observe.metrics import Counter


class WriteGate:
    """Give `check` to the client as its fence. Open for a process that takes part in no election.

    The client exists before the election (whose fence decides) does, so the fence is put in later; with
    `elected_only` nothing may be written until then.
    """

    def __init__(self, *, elected_only: bool = False, refusals: Counter | None = None) -> None:
        self._refusals = refusals or Counter()
        self._check: Callable[[], None] = _not_yet if elected_only else _always

    def use(self, fence: Fence) -> None:
        """From now on `fence` decides."""
        self._check = fence.check

    def check(self) -> None:
        """Raise `NotLeader` unless this process may write."""
        try:
            self._check()
        except NotLeader:
            self._refusals.inc()
            raise


def _always() -> None:
    return None


def _not_yet() -> None:
    raise NotLeader("not elected yet")
