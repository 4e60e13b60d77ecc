"""The process: informers, election, workers; and back again in one bounded stop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kubeloop.cache import Informer
from kubeloop.client import Client
from kubeloop.clock import Clock, StopEvent, SystemClock
from kubeloop.controller import Controller, Outcome, RunningController
from kubeloop.controller.worker import Report
from kubeloop.manager.gate import WriteGate
from kubeloop.manager.history import History
from kubeloop.manager.http import HttpServer
from kubeloop.manager.telemetry import Telemetry
from kubeloop.model import KubeObject
from kubeloop.observe import fields
from kubeloop.observe.events import EventRecorder

if TYPE_CHECKING:
    from kubeloop.leader import ElectionSettings, LeaderElector, LeaseLock
    from kubeloop.observe.tracing import Tracing

SHUTDOWN_TIMEOUT = 30.0
"""Seconds that a stop may take in all (controller-runtime's GracefulShutdownTimeout)."""

EVENTS_TIMEOUT = 2.0
"""Seconds of it that may go into Events which are still to be written."""

TRACING_TIMEOUT = 2.0
"""Seconds of it that may go into spans which are still to be sent."""

_logger = logging.getLogger("kubeloop.manager")


class Manager:
    """Runs controllers that share their informers: one watch per kind, however many use it.

    `namespaces` empty means all namespaces. With `dry_run` the server checks every write and makes none.
    `tracing` makes a span of each reconcile; those of requests are made by `client`'s transport
    (`Tracing.transport`).
    """

    def __init__(
        self,
        client: Client,
        *,
        namespaces: Sequence[str] = (),
        clock: Clock | None = None,
        dry_run: bool = False,
        workers: int | None = None,
        report: Report | None = None,
        telemetry: Telemetry | None = None,
        events: EventRecorder | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self._client = client
        self._namespaces = tuple(namespaces)
        self.clock: Clock = clock or SystemClock()
        self._dry_run = dry_run
        self._workers = workers
        self._report = report
        self._telemetry = telemetry
        self._events = events
        self._tracing = tracing
        if telemetry is not None and events is not None:
            telemetry.watch_events(events)
        self.informers: dict[type[KubeObject], Informer[Any]] = {}
        self.controllers: list[RunningController] = []
        self.histories: dict[str, History] = {}
        self.elector: LeaderElector | None = None
        self._servers: list[HttpServer] = []
        self._closers: list[Callable[[], None]] = []
        self._running = False
        self._lock = threading.Lock()  # guards the four below
        self._synced = False
        self._elected = False
        self._working = False
        self.stopping = False

    # Before the start

    def add(self, controller: Controller[Any]) -> RunningController:
        """Add a controller before `start`."""
        for kind in controller.kinds:
            if kind not in self.informers:
                self.informers[kind] = informer = Informer(
                    self._client, kind, namespaces=self._namespaces, clock=self.clock
                )
                if self._telemetry is not None:
                    self._telemetry.watch_informer(informer)
        name, telemetry = controller.name, self._telemetry
        meter = telemetry.reconcile_meter(name) if telemetry is not None else None
        self.histories[name] = history = History(self.clock)
        reports: list[Report] = [history.record]
        if meter is not None:
            reports.append(meter.count)
        if self._report is not None:
            reports.append(self._report)
        running = RunningController(
            controller,
            self._client,
            self.informers,
            clock=self.clock,
            dry_run=self._dry_run,
            workers=self._workers,
            report=_all(reports),
            queue_observer=telemetry.queue_observer(name) if telemetry is not None else None,
            on_stuck=meter.stuck if meter is not None else None,
            events=self._events,
            tracing=self._tracing,
        )
        self.controllers.append(running)
        for kind in controller.kinds:
            # After the controller, which then has queued what it may work on.
            self.informers[kind].on_synced(self._on_synced)
        if telemetry is not None:
            telemetry.watch_queue(running)
        return running

    def elect(
        self, lock: LeaseLock, settings: ElectionSettings, gate: WriteGate, on_lost: Callable[[str], None]
    ) -> None:
        """Work only while holding the Lease; `gate` is the fence of the manager's client.

        `on_lost` is called when the lease is lost. It should end the process at once: nothing here stops the
        workers, which may not write any more, but may hang in anything.
        """
        from kubeloop.leader import LeaderElector  # late: only candidates need it

        self.elector = LeaderElector(
            lock,
            settings,
            clock=self.clock,
            on_started=self._on_elected,
            on_lost=on_lost,
            observer=self._telemetry,
        )
        gate.use(self.elector.fence)

    def serve(self, server: HttpServer) -> None:
        """Run this server as long as the manager; it is up before anything else and ends after it."""
        self._servers.append(server)

    def closes(self, *clients: Client) -> None:
        """Close these too, when nothing can use them any more."""
        self._closers += [client.close for client in clients]

    # Life

    def start(self) -> None:
        """Start the informers. Workers come later: `start_workers`."""
        for informer in self.informers.values():
            informer.start()

    def wait_synced(self, stop: StopEvent, timeout: float | None = None) -> bool:
        """Wait until every cache has seen, and every handler handled, what exists; False if stopped before.

        A missing CRD or missing rights do not end the wait: they may be put right at any moment.
        """
        deadline = None if timeout is None else self.clock.monotonic() + timeout
        for informer in self.informers.values():
            left = None if deadline is None else max(deadline - self.clock.monotonic(), 0.0)
            if not informer.wait_synced(timeout=left, stop=stop):
                return False
        return True

    def start_workers(self) -> None:
        """Start reconciling. Only with synced caches: an empty cache would look like missing children. (`run`
        begins when `RunningController.may_begin`.)"""
        for running in self.controllers:
            running.workers.start()

    def waiting_for(self) -> list[str]:
        """What the informers that are not synced are waiting for, in words."""
        return [f"{i.kind_name}: {i.state}" for i in self.informers.values() if not i.has_synced]

    def run(self, stop: StopEvent, *, shutdown_timeout: float = SHUTDOWN_TIMEOUT) -> bool:
        """Run until `stop` is set, then stop; whether everything ended within `shutdown_timeout` seconds."""
        self._running = True
        for server in self._servers:
            server.start()
        if self._events is not None:
            self._events.start()
        self.start()
        try:
            if self.elector is not None:
                self.elector.start()
            if self.wait_synced(stop):
                _logger.info("caches synced", extra=fields(objects=self._sizes()))
                self._begin(synced=True)
                stop.wait()
        finally:
            clean = self.stop(shutdown_timeout)
        return clean

    def stop(self, timeout: float = SHUTDOWN_TIMEOUT) -> bool:
        """Stop workers and informers, then release the lease, then close all, within `timeout` seconds.

        Returns whether all threads have ended. Those that have not are daemons and do not keep the
        process; which objects they are busy with is logged. The lease is not released while one of them may
        still write: a successor then waits until it expires.
        """
        # No thread can be joined for longer than this; more is as good as for ever.
        deadline = self.clock.monotonic() + min(timeout, threading.TIMEOUT_MAX / 2)

        def left() -> float:
            return max(deadline - self.clock.monotonic(), 0.0)

        with self._lock:
            self.stopping = True
        for running in self.controllers:
            running.workers.stop()
        for informer in self.informers.values():
            informer.stop()
        clean = True
        for running in self.controllers:
            if not running.workers.join(left()):
                clean = False
                _logger.warning("reconciles did not end in time", extra=fields(busy=running.queue.busy()))
        for informer in self.informers.values():
            clean &= informer.join(left())
        if self._events is not None:
            # Decoration: a server that hangs over an Event must not hold the lease.
            self._events.stop()
            self._events.join(min(left(), EVENTS_TIMEOUT))
        if self.elector is not None:
            self.elector.stop(release=clean)
            clean &= self.elector.join(left())
        if self._tracing is not None:
            self._tracing.stop()
            self._tracing.join(min(left(), TRACING_TIMEOUT))
        for server in self._servers:
            server.stop()
        for server in self._servers:
            clean &= server.join(left())
        for close in (self._client.close, *self._closers):
            close()
        return clean

    def _on_elected(self) -> None:
        self._begin(elected=True)

    def _on_synced(self, _: str | None) -> None:
        if self._running and all(running.may_begin for running in self.controllers):
            self._begin(synced=True)

    def _begin(self, *, synced: bool = False, elected: bool = False) -> None:
        """Start the workers once caches are synced and this process leads, whichever comes last."""
        with self._lock:
            self._synced |= synced
            self._elected |= elected
            may = self._synced and (self._elected or self.elector is None)
            if not may or self._working or self.stopping:
                return
            self._working = True
            self.start_workers()

    def _sizes(self) -> dict[str, int]:
        return {kind.resource.kind: len(informer.store) for kind, informer in self.informers.items()}


def _all(reports: Sequence[Report]) -> Report:
    def report(key: str, outcome: Outcome) -> None:
        for each in reports:
            each(key, outcome)

    return report
