"""The whole operator as a process of its own on a sandbox in another one, for the benchmarks."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

import urllib3
from harness import ENVIRONMENT

from kubeloop.cache import Deleted, Event, Informer
from kubeloop.client import Client
from webapp_operator.types import WebApp

_MAIN = (sys.executable, "-m", "webapp_operator.cli")
_RECONCILED = re.compile(r"^controller_runtime_reconcile_total\{.*\} (\S+)$", re.MULTILINE)


def create_webapps(client: Client, count: int) -> None:
    """Scaled to zero: their pods would be many times the work for the sandbox, and none of the operator's."""

    def create(number: int) -> None:
        metadata = {"name": f"app-{number}", "namespace": "default"}
        spec = {"image": f"registry.example.com/app-{number}:v1", "replicas": 0}
        app = {"apiVersion": "example.com/v1", "kind": "WebApp", "metadata": metadata, "spec": spec}
        client.create(WebApp.resource, app)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(create, range(count)))


def wait_ready(client: Client, count: int, timeout: float) -> None:
    """Until so many WebApps say that they are ready."""
    ready: set[str] = set()
    enough = threading.Event()

    def look(event: Event[WebApp], initial: bool) -> None:
        del initial
        app = event.object
        if isinstance(event, Deleted) or app.status is None or not app.status.ready:
            ready.discard(app.key)
        else:
            ready.add(app.key)
        if len(ready) >= count:
            enough.set()

    informer = Informer(client, WebApp)
    informer.add_handler(look)
    informer.start()
    try:
        if not enough.wait(timeout):
            raise RuntimeError(f"{len(ready)} of {count} WebApps are ready after {timeout:g} s")
    finally:
        informer.stop()
        informer.join(10)


class OperatorProcess:
    """`webapp-operator` with leader election and endpoints, as in a cluster; stopped as a pod is.

    `program` is what runs in place of its command line.
    """

    def __init__(self, kubeconfig: Path, *flags: str, program: Sequence[str] = _MAIN) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._address = f"127.0.0.1:{free.getsockname()[1]}"
        self._command = [*program, f"--kubeconfig={kubeconfig}", "--leader-elect", *flags]
        self._command += ["--lease-namespace=default", "--log-format=json"]
        self._command += [f"--{kind}-bind-address={self._address}" for kind in ("health", "metrics")]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(60)
        if code and kind is None:
            raise RuntimeError(f"the operator ended with code {code}")

    @property
    def cpu(self) -> float:
        """Seconds that it has worked so far. Linux only: the id of a process' clock is made of its pid."""
        return time.clock_gettime((~self._process.pid << 3) | 2)

    @property
    def resident(self) -> int:
        """Bytes."""
        return resident(self._process.pid)

    def wait_reconciled(self, count: int, timeout: float) -> None:
        """Until it has ended so many reconciles, by its own metrics."""
        deadline = time.monotonic() + timeout
        done = 0.0
        while done < count:
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError(f"{done:g} of {count} reconciles after {timeout:g} s")
            threading.Event().wait(0.5)
            try:
                text = urllib3.request("GET", f"http://{self._address}/metrics", retries=False).data.decode()
            except urllib3.exceptions.HTTPError:
                continue  # it has just been started
            done = sum(float(found) for found in _RECONCILED.findall(text))


def resident(pid: int | None = None) -> int:
    """Bytes that a process (default: this one) has in memory."""
    status = Path(f"/proc/{pid or os.getpid()}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024
