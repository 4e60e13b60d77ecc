"""A reconcile that finds everything as it should be: prints two lines with its CPU time.

The WebApp operator as in production (its manager, informers, metrics and queue), settled on a sandbox in a
process of its own. Then the settled WebApps are reconciled again, one after the other, without a request:
soon after a change, when the objects are at hand, and as at a resync, when each is decoded first.
"""

from __future__ import annotations

import time
from itertools import cycle
from pathlib import Path

from harness import AtMost, best_cpu, report, sandbox_process

from kubeloop.client import Client, RequestInfo, connect, load_config
from kubeloop.clock import StopEvent
from kubeloop.controller import RunningController
from kubeloop.controller.engine import End
from kubeloop.manager import Manager
from kubeloop.manager.telemetry import Telemetry
from webapp_operator.reconcile import webapp_controller
from webapp_operator.types import WebApp

APPS, BATCH, ROUNDS = 200, 1000, 15
TARGET_US = 150.0


def create(client: Client) -> None:
    for number in range(APPS):
        metadata = {"name": f"app-{number}", "namespace": "default"}
        spec = {"image": f"registry.example.com/app-{number}:v1", "replicas": 3}
        app = {"apiVersion": "example.com/v1", "kind": "WebApp", "metadata": metadata, "spec": spec}
        client.create(WebApp.resource, app)


def settle(manager: Manager, running: RunningController) -> list[str]:
    """Work until nothing is left to do; the keys of the WebApps."""
    store = manager.informers[WebApp].store
    deadline = time.monotonic() + 120
    quiet = 0
    while quiet < 3:  # nothing to do for a second and a half, and all are ready
        if running.workers.process_next(0.5):
            continue
        ready = sum(app.status is not None and app.status.ready for app in store.list())
        quiet = quiet + 1 if ready == APPS else 0
        if time.monotonic() > deadline:
            raise RuntimeError(f"{ready} of {APPS} WebApps are ready after two minutes")
    return sorted(store.keys())


class Operator:
    """One life of the operator, without workers: whoever uses it does their work."""

    def __init__(self, kubeconfig: Path) -> None:
        self._telemetry = Telemetry()
        self.requests: list[RequestInfo] = []
        client = connect(load_config(str(kubeconfig)), pool_size=4, observer=self._observe)
        self.manager = Manager(client, telemetry=self._telemetry)
        self.running = self.manager.add(webapp_controller())

    def _observe(self, request: RequestInfo) -> None:
        self.requests.append(request)
        self._telemetry.requested(request)

    def start(self) -> list[str]:
        """Start and settle; the keys of the WebApps."""
        self.manager.start()
        self.manager.wait_synced(StopEvent(), 60)
        return settle(self.manager, self.running)


def engine_alone(operator: Operator, keys: list[str]) -> float:
    """CPU us of a reconcile in the engine."""
    process, turn = operator.running.engine.process, cycle(keys)

    def batch() -> int:
        for _ in range(BATCH):
            outcome = process(next(turn))
            assert outcome.end is End.DONE, outcome
        return BATCH

    return best_cpu(batch, rounds=ROUNDS) * 1e6


def with_queue(operator: Operator, keys: list[str]) -> float:
    """CPU us of a reconcile from the queue, with what a worker does around it."""
    running, turn = operator.running, cycle(keys)

    def batch() -> int:
        for _ in range(BATCH):
            running.queue.add(next(turn))
            running.workers.process_next(0)
        return BATCH

    return best_cpu(batch, rounds=ROUNDS) * 1e6


def measure(kubeconfig: Path) -> None:
    create(connect(load_config(str(kubeconfig)), pool_size=1))
    first = Operator(kubeconfig)
    keys = first.start()
    before = len(first.requests)
    soon = engine_alone(first, keys)
    made = first.requests[before:]
    first.manager.stop(10)

    second = Operator(kubeconfig)
    assert second.start() == keys
    before = len(second.requests)
    resync, whole = engine_alone(second, keys), with_queue(second, keys)
    made += second.requests[before:]
    second.manager.stop(10)
    assert not made, made
    note = f"{APPS} settled WebApps in turn, no request"
    report("no-op reconcile soon after a change", soon, "us CPU", AtMost(TARGET_US), note=note)
    note += f"; with queue, report and metrics {whole:.0f} us"
    report("no-op reconcile at a resync", resync, "us CPU", AtMost(TARGET_US), note=note)


def main() -> None:
    with sandbox_process() as kubeconfig:
        measure(kubeconfig)


if __name__ == "__main__":
    main()
