"""The process: informers, then workers; and back again in one bounded stop."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from kubeloop.cache import Informer
from kubeloop.client import Client
from kubeloop.clock import Clock, StopEvent, SystemClock
from kubeloop.controller import Controller, RunningController
from kubeloop.controller.worker import Report
from kubeloop.model import KubeObject
from kubeloop.observe import fields

SHUTDOWN_TIMEOUT = 30.0
"""Seconds that a stop may take in all (controller-runtime's GracefulShutdownTimeout)."""

_logger = logging.getLogger("kubeloop.manager")


class Manager:
    """Runs controllers that share their informers: one watch per kind, however many use it.

    `namespaces` empty means all namespaces. With `dry_run` the server checks every write and makes none.
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
    ) -> None:
        self._client = client
        self._namespaces = tuple(namespaces)
        self._clock: Clock = clock or SystemClock()
        self._dry_run = dry_run
        self._workers = workers
        self._report = report
        self.informers: dict[type[KubeObject], Informer[Any]] = {}
        self.controllers: list[RunningController] = []

    def add(self, controller: Controller[Any]) -> RunningController:
        """Add a controller before `start`."""
        for kind in _kinds_of(controller):
            if kind not in self.informers:
                self.informers[kind] = Informer(
                    self._client, kind, namespaces=self._namespaces, clock=self._clock
                )
        running = RunningController(
            controller,
            self._client,
            self.informers,
            clock=self._clock,
            dry_run=self._dry_run,
            workers=self._workers,
            report=self._report,
        )
        self.controllers.append(running)
        return running

    def start(self) -> None:
        """Start the informers. Workers come later: `start_workers`."""
        for informer in self.informers.values():
            informer.start()

    def wait_synced(self, stop: StopEvent, timeout: float | None = None) -> bool:
        """Wait until every cache has seen, and every handler handled, what exists; False if stopped before.

        A missing CRD or missing rights do not end the wait: they may be put right at any moment.
        """
        deadline = None if timeout is None else self._clock.monotonic() + timeout
        for informer in self.informers.values():
            left = None if deadline is None else max(deadline - self._clock.monotonic(), 0.0)
            if not informer.wait_synced(timeout=left, stop=stop):
                return False
        return True

    def start_workers(self) -> None:
        """Start reconciling. Only with synced caches: an empty cache would look like missing children."""
        for running in self.controllers:
            running.workers.start()

    def waiting_for(self) -> list[str]:
        """What the informers that are not synced are waiting for, in words."""
        return [f"{i.kind_name}: {i.state}" for i in self.informers.values() if not i.has_synced]

    def run(self, stop: StopEvent, *, shutdown_timeout: float = SHUTDOWN_TIMEOUT) -> bool:
        """Run until `stop` is set, then stop; whether everything ended within `shutdown_timeout` seconds."""
        self.start()
        try:
            if self.wait_synced(stop):
                _logger.info("caches synced", extra=fields(objects=self._sizes()))
                self.start_workers()
                stop.wait()
        finally:
            clean = self.stop(shutdown_timeout)
        return clean

    def stop(self, timeout: float = SHUTDOWN_TIMEOUT) -> bool:
        """Stop workers, then informers, then the connections, all within `timeout` seconds.

        Returns whether all threads have ended. Those that have not are daemons and do not keep the
        process; which objects they are busy with is logged.
        """
        deadline = self._clock.monotonic() + timeout

        def left() -> float:
            return max(deadline - self._clock.monotonic(), 0.0)

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
        self._client.close()
        return clean

    def _sizes(self) -> dict[str, int]:
        return {kind.resource.kind: len(informer.store) for kind, informer in self.informers.items()}


def _kinds_of(controller: Controller[Any]) -> Iterable[type[KubeObject]]:
    return [controller.kind, *controller.owned, *(kind for kind, _ in controller.watched)]
