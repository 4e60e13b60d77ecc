"""The work queue between informers and workers.

Contract (client-go's, with controller-runtime's priorities and Go's known faults removed):

- *Deduplication.* A key has at most one entry. Adding it again merges: the higher priority and the
  earlier time win; an immediate add therefore promotes a delayed one and the key runs once, not
  twice (client-go#131).
- *One worker per key.* A key that is being processed is never handed out a second time. If it is
  added meanwhile, it runs exactly once more, after `done`, at the tail.
- *Backoff is kept.* A key that failed waits out its delay; events do not bypass it
  (kubernetes#112325). An *urgent* add (the user changed the spec) shortens the wait to
  `URGENT_SPACING` seconds after the failure.
- *Nobody starves.* A low priority is a head start for the others of at most
  ``-priority * AGING_SECONDS``; an entry that has waited longer goes first, whatever comes in
  (controller-runtime#3496).
- *Shutdown.* Adds are ignored; `get` gives no more work, or, when draining, what is ready; blocked
  callers wake at once. What is left in the queue is dropped: a restarted operator lists everything
  again.

`QueueCore` takes all decisions and is pure; `WorkQueue` adds the lock, the clock and the waiting.
"""

from kubeloop.queue.core import AGING_SECONDS, LOW_PRIORITY, URGENT_SPACING, Item, QueueCore
from kubeloop.queue.workqueue import QueueObserver, QueueStats, WorkQueue

__all__ = [
    "AGING_SECONDS",
    "LOW_PRIORITY",
    "URGENT_SPACING",
    "Item",
    "QueueCore",
    "QueueObserver",
    "QueueStats",
    "WorkQueue",
]
