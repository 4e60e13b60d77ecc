"""A reconcile that finds everything as it should be: prints one line with its CPU time.

The WebApp operator as in production (its manager, informers, metrics and queue), settled on a sandbox in a
process of its own. Then the settled WebApps are reconciled again, one after the other, without a request.
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


def measure(kubeconfig: Path) -> None:
    telemetry = Telemetry()
    requests: list[RequestInfo] = []

    def observe(request: RequestInfo) -> None:
        requests.append(request)
        telemetry.requested(request)

    config = load_config(str(kubeconfig))
    client = connect(config, pool_size=4, observer=observe)
    manager = Manager(client, telemetry=telemetry)
    running = manager.add(webapp_controller())
    create(connect(config, pool_size=1))
    manager.start()
    manager.wait_synced(StopEvent(), 60)
    keys = settle(manager, running)
    before = len(requests)
    turn = cycle(keys)

    def engine_alone() -> int:
        for _ in range(BATCH):
            outcome = running.engine.process(next(turn))
            assert outcome.end is End.DONE, outcome
        return BATCH

    def with_queue() -> int:
        for _ in range(BATCH):
            running.queue.add(next(turn))
            running.workers.process_next(0)
        return BATCH

    alone, whole = (best_cpu(batch, rounds=ROUNDS) * 1e6 for batch in (engine_alone, with_queue))
    made = len(requests) - before
    assert made == 0, requests[before:]
    note = f"{APPS} settled WebApps in turn, {made} requests; with queue, report and metrics {whole:.0f} us"
    report("no-op reconcile", alone, "us CPU", AtMost(TARGET_US), note=note)
    manager.stop(10)


def main() -> None:
    with sandbox_process() as kubeconfig:
        measure(kubeconfig)


if __name__ == "__main__":
    main()
