"""The process around controllers.

Start: HTTP endpoints, then informers (each its own thread), then the election. Workers start when every
cache is synced *and* this process leads, whichever comes last; a standby has warm caches and writes nothing,
because every write asks the gate. Losing the lease closes the gate at that moment and ends the process
without grace (`LOST_LEASE_EXIT`).

Stop, under one deadline: no more work is taken, waits for a retry and watches end at once, and reconciles in
progress go on to their end. When nothing can write any more the lease is released, so that a standby takes
over within a second; endpoints and connections are closed last. A second signal ends the process at once
(`FORCED_EXIT`). Nothing is lost by a stop or a crash at any point: a restarted operator lists everything
again.
"""

from kubeloop.manager.gate import WriteGate
from kubeloop.manager.manager import SHUTDOWN_TIMEOUT, Manager
from kubeloop.manager.signals import FORCED_EXIT, stop_on_signals

__all__ = ["FORCED_EXIT", "LOST_LEASE_EXIT", "SHUTDOWN_TIMEOUT", "Manager", "WriteGate", "stop_on_signals"]

LOST_LEASE_EXIT = 3
"""Exit code of a process that lost its lease and so must start anew."""
