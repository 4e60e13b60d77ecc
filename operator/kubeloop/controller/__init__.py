"""Controllers: from "something about this object may have changed" to "the world is as it says".

The contract for a reconcile function:

- *Level-triggered.* It is told which object to look at, never what happened. Events may be merged, missed or
  repeated; what counts is the object as it is now.
- *One at a time per object*, and any number of objects at once. Another object's failure never delays it.
- *Read your writes.* What it reads through its context is at least as new as what this operator last wrote
  (D3).
- *Free when nothing changed.* `Context.apply` and `Context.set_status` send a request only if something
  drifted or says something new (D1).
- *Never harm what is not ours.* A child that somebody else controls is left untouched (D2).
- *Finalizer.* With one, Apply runs only after it is in place and the object goes only after Cleanup has
  succeeded (R0.16 to R0.18).

How a reconcile may end is defined in one place, `kubeloop.controller.result`. At shutdown workers finish the
reconcile they are in and take no more.
"""

from kubeloop.controller.context import Context
from kubeloop.controller.definition import Controller
from kubeloop.controller.drift import applied_generation
from kubeloop.controller.engine import End, Engine, Outcome
from kubeloop.controller.result import RESYNC, Blocked, Contended, GoingAway, NotOurs, Result, TerminalError
from kubeloop.controller.wiring import RunningController
from kubeloop.controller.worker import WorkerPool
from kubeloop.controller.writer import Change, Verb

__all__ = [
    "RESYNC",
    "Blocked",
    "Change",
    "Contended",
    "Context",
    "Controller",
    "End",
    "Engine",
    "GoingAway",
    "NotOurs",
    "Outcome",
    "Result",
    "RunningController",
    "TerminalError",
    "Verb",
    "WorkerPool",
    "applied_generation",
]
