"""What a controller of the sandbox is, and the loop that runs them all.

One loop serves all controllers: on a thread of its own, or step by step (`settle`) for deterministic runs.
Before each reconcile it takes in everything that happened, so that a controller always sees its own writes.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Hashable, Iterable, Iterator, Sequence

from kubeloop.clock import Clock
from kubeloop.sandbox.controllers.client import RefusedError
from kubeloop.sandbox.controllers.graph import Graph
from kubeloop.sandbox.pipeline.backend import Backend
from kubeloop.sandbox.registry import Object
from kubeloop.sandbox.store import Event, Watcher

log = logging.getLogger(__name__)

RETRY_BASE = 0.05
RETRY_CAP = 5.0
"""Seconds before a refused reconcile is tried again: doubling from base to cap."""
MAX_STEPS = 1_000_000
"""Reconciles in one `settle` before it is taken for an endless loop."""


class Controller:
    """Base class: `observe` maps a change to keys, `reconcile` brings one key's object where it should be."""

    name = ""

    def observe(self, event: Event) -> Iterable[Hashable]:
        """The keys to look at because of `event`. Must be quick and pure."""
        raise NotImplementedError

    def reconcile(self, key: Hashable) -> float | None:
        """Act; the result is in how many seconds to look again (None: only when something happens)."""
        raise NotImplementedError


def controllers_of(obj: Object, kind: str) -> Iterator[Hashable]:
    """The (namespace, name) of each controlling owner of that kind."""
    metadata = obj["metadata"]
    for owner in metadata.get("ownerReferences") or ():
        if owner["kind"] == kind and owner.get("controller"):
            yield (metadata["namespace"], owner["name"])


class DoesNotSettleError(AssertionError):
    """The controllers kept on working without time passing."""


class Loop:
    """The work queue of all controllers (deduplicated, by due time) and its thread."""

    def __init__(self, backend: Backend, graph: Graph, controllers: Sequence[Controller]) -> None:
        self._backend = backend
        self._clock: Clock = backend.clock
        self._graph = graph
        self._controllers = controllers
        self._wake = threading.Condition()  # notified by the store on every event
        self._watcher: Watcher | None = None
        self._heap: list[tuple[float, int, int, Hashable]] = []
        self._due: dict[tuple[int, Hashable], float] = {}
        self._failures: dict[tuple[int, Hashable], int] = {}
        self._order = itertools.count()
        self._stopping = False
        self._thread: threading.Thread | None = None

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Run on a thread until `stop`."""
        self._attach()
        self._thread = threading.Thread(target=self._run, name="sandbox-controllers", daemon=True)
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """End the thread, waiting up to `timeout` seconds for it."""
        with self._wake:
            self._stopping = True
            self._wake.notify_all()
        if self._watcher is not None:
            self._watcher.close()
        if self._thread is not None:
            self._thread.join(timeout)

    def settle(self) -> None:
        """Work until nothing is due now. Raises `DoesNotSettleError`. Not together with `start`."""
        self._attach()
        for _ in range(MAX_STEPS):
            if not self._step():
                return
        raise DoesNotSettleError(
            f"controllers still have work after {MAX_STEPS} steps: {list(self._due)[:5]}"
        )

    def next_due(self) -> float | None:
        """When (monotonic seconds) the next planned look is; None: nothing is planned."""
        return min(self._due.values(), default=None)

    # -- working ---------------------------------------------------------------------------------

    def _attach(self) -> None:
        if self._watcher is None:
            events, self._watcher = self._backend.store.watch_all(self._wake)
            for event in events:
                self._take(event)

    def _run(self) -> None:
        while not self._stopping:
            if self._step():
                continue
            watcher = self._watcher
            with self._wake:
                if self._stopping or watcher is None or watcher.pending():
                    continue
                due = self.next_due()
                left = None if due is None else due - self._clock.monotonic()
                if left is None or left > 0:
                    self._clock.wait(self._wake, left)

    def _step(self) -> bool:
        """Take in all events and do at most one reconcile; whether there was one."""
        assert self._watcher is not None
        for event in self._watcher.take():
            self._take(event)
        now = self._clock.monotonic()
        while self._heap and self._heap[0][0] <= now:
            due, _, index, key = heapq.heappop(self._heap)
            if self._due.get((index, key)) != due:
                continue  # planned anew in the meantime
            del self._due[(index, key)]
            self._reconcile(index, key, now)
            return True
        return False

    def _take(self, event: Event) -> None:
        self._graph.take(event)
        now = self._clock.monotonic()
        for index, controller in enumerate(self._controllers):
            for key in controller.observe(event):
                self._plan(index, key, now)

    def _plan(self, index: int, key: Hashable, due: float) -> None:
        known = self._due.get((index, key))
        if known is not None and known <= due:
            return
        self._due[(index, key)] = due
        heapq.heappush(self._heap, (due, next(self._order), index, key))

    def _reconcile(self, index: int, key: Hashable, now: float) -> None:
        controller = self._controllers[index]
        try:
            again = controller.reconcile(key)
        except RefusedError as refused:
            failures = self._failures[(index, key)] = self._failures.get((index, key), 0) + 1
            delay = min(RETRY_CAP, RETRY_BASE * 2 ** min(failures - 1, 20))
            log.debug("%s: %s: %s; again in %.2f s", controller.name, key, refused, delay)
            # A conflict means that the world moved on: look at it again at once, but not for ever.
            self._plan(index, key, now if refused.code == 409 and failures < 10 else now + delay)
            return
        except Exception as error:
            # A fault of the sandbox: kept for the test to see; the other objects are served on.
            log.exception("sandbox fault in %s for %s", controller.name, key)
            self._backend.faults.append(error)
            return
        self._failures.pop((index, key), None)
        if again is not None:
            self._plan(index, key, now + again)
