"""The operator with 10,000 settled WebApps: prints one line each for its memory, what it works when nothing
happens, and what looking at every WebApp again costs.

`webapp-operator` runs in a process of its own, with leader election and endpoints, beside a sandbox in
another one. The first one settles all WebApps and goes; a fresh one is measured, as after any restart. Its
resync is set to come once, after the quiet part, and counted as if spread over 300 s. `idle.py [webapps]`
"""

from __future__ import annotations

import sys
import threading
import time

from harness import AtMost, report, sandbox_process
from operating import OperatorProcess, create_webapps, wait_ready

from kubeloop.client import connect, load_config

WEBAPPS = 10_000
IDLE_PERCENT, RESIDENT_MB = 0.2, 90.0
SETTLE, QUIET = 10.0, 60.0
"""Seconds between the last reconcile and the measurement; of the measurement."""
RESYNC = 100.0
USUAL_RESYNC = 300.0


def work(operator: OperatorProcess, until: float) -> tuple[float, float]:
    """CPU seconds and seconds of time until that moment."""
    cpu, began = operator.cpu, time.monotonic()
    threading.Event().wait(until - began)
    return operator.cpu - cpu, time.monotonic() - began


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else WEBAPPS
    with sandbox_process() as kubeconfig:
        client = connect(load_config(str(kubeconfig)), pool_size=6)
        with OperatorProcess(kubeconfig):
            create_webapps(client, count)
            wait_ready(client, count, 120 + count / 10)
            threading.Event().wait(SETTLE)
        client.close()
        with OperatorProcess(kubeconfig, f"--resync={RESYNC}") as operator:
            began = time.monotonic()
            operator.wait_reconciled(count, 120)
            synced = time.monotonic()
            work(operator, synced + SETTLE)
            memory = operator.resident / 1e6
            cpu, seconds = work(operator, synced + SETTLE + QUIET)
            idle = cpu / seconds
            # The resync is spread by a tenth to both sides.
            more, seconds = work(operator, synced + RESYNC * 1.1 + SETTLE)
            resync = max(more - idle * seconds, 0.0)
    label = f"{count:,} WebApps"
    note = f"{label} and Deployments cached; {synced - began:.1f} s from start to the last reconcile"
    report("operator: memory", memory, "MB resident", AtMost(RESIDENT_MB), note=note)
    note = f"{label}, {cpu * 1e3:.0f} ms of CPU in {QUIET:g} s; leads, endpoints on"
    report("operator: idle", idle * 100, "% of a core", AtMost(IDLE_PERCENT), note=note, form=".3f")
    note = (
        f"{resync:.2f} s of CPU for {label}, {resync / count * 1e6:.0f} us each, once in {USUAL_RESYNC:g} s"
    )
    report("operator: resync", resync / USUAL_RESYNC * 100, "% of a core", note=note, form=".3f")


if __name__ == "__main__":
    main()
