"""The sandbox: prints one line a figure, beside the real kube-apiserver when its programs are there.

Requests to the sandbox go through the in-process transport on one thread and are counted in CPU time of the
whole process, controllers included (what one core does); the real server runs beside this process, so it is
asked over one kept-alive connection and counted in wall time. Its programs are those of hack/controlplane.sh
($KUBEBUILDER_ASSETS, or what `hack/controlplane.sh build` has built); nothing is built here.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import urllib3
import yaml
from harness import ENVIRONMENT, REPOSITORY, AtLeast, AtMost, report

sys.path.insert(0, str(REPOSITORY / "hack"))

from controlplane import ControlPlane
from controlplane.binaries import find

from kubeloop.sandbox import Sandbox
from webapp_operator.types import WebApp

TIMES, ROUNDS = 2000, 5
OBJECTS, WATCHES = 20_000, 20
START_MS, MEMORY_MIB = 100.0, 500.0
PER_SECOND = {"gets": 15_000.0, "applies": 3_000.0}
"""The targets, of one core."""
NO_TARGETS: Mapping[str, float] = {}
NAME = "/apis/example.com/v1/namespaces/default/webapps/hello"
APPLY = NAME + "?fieldManager=bench&force=true"
APPLY_TYPE = {"Content-Type": "application/apply-patch+yaml"}
Send = Callable[[str, str, bytes | None], int]


def webapp(name: str, image: str) -> bytes:
    """An apply configuration as a user writes it."""
    spec = {"image": image, "replicas": 3}
    head = {"apiVersion": "example.com/v1", "kind": "WebApp"}
    return json.dumps({**head, "metadata": {"name": name}, "spec": spec}).encode()


def rate(action: Callable[[int], object], times: int, clock: Callable[[], float]) -> float:
    """Calls a second, the best of some rounds."""
    best = 0.0
    for _ in range(ROUNDS):
        began = clock()
        for number in range(times):
            action(number)
        best = max(best, times / (clock() - began))
    return best


def requests(
    who: str, send: Send, times: int, clock: Callable[[], float], targets: Mapping[str, float] = NO_TARGETS
) -> None:
    """Gets, applies that change something and applies that change nothing."""
    bodies = [webapp("hello", f"nginx:{number}") for number in (1, 2)]

    def apply(number: int) -> None:
        assert send("PATCH", APPLY, bodies[number % 2]) in (200, 201)

    def no_op(number: int) -> None:
        del number
        assert send("PATCH", APPLY, bodies[0]) == 200

    def get(number: int) -> None:
        del number
        assert send("GET", NAME, None) == 200

    apply(0)
    for what, action in (("gets", get), ("applies", apply), ("applies of what is there", no_op)):
        target = AtLeast(targets[what]) if what in targets else None
        report(f"{who}: {what}", rate(action, times, clock), "/s", target, form=",.0f")


def start_up() -> None:
    """From nothing to the first answer, in a process of its own; and the part after the imports."""
    code = (
        "import time; began = time.perf_counter(); from kubeloop.sandbox import Sandbox; Sandbox\n"
        "imported = time.perf_counter()\n"
        "with Sandbox() as sandbox:\n"
        "    assert sandbox.transport().request('GET', '/api/v1/namespaces/default').status == 200\n"
        "    ready = time.perf_counter()\n"
        "print(ready - imported, ready - began)"
    )
    runs = []
    for _ in range(ROUNDS):
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True)
        runs.append([float(part) for part in done.stdout.split()])
    started, with_imports = (min(times) * 1e3 for times in zip(*runs, strict=True))
    note = f"with imports {with_imports:.0f} ms"
    report("sandbox: start", started, "ms", AtMost(START_MS), note=note, form=",.0f")


def memory() -> None:
    """What many objects and watches take; run as a process of its own."""
    with Sandbox() as sandbox:
        sandbox.apply(WebApp.crd())
        transport = sandbox.transport()
        streams = [
            transport.stream("GET", "/apis/example.com/v1/webapps?watch=true", headers={})
            for _ in range(WATCHES)
        ]
        for number in range(OBJECTS):
            target = NAME.replace("hello", f"app-{number}") + "?fieldManager=bench"
            body = webapp(f"app-{number}", f"registry.example.com/app-{number}:v1")
            assert transport.request("PATCH", target, headers=APPLY_TYPE, body=body).status == 201
            if number % 100 == 0:
                for stream in streams:
                    stream.poll()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        note = f"{OBJECTS:,} objects, {WATCHES} watches"
        report("sandbox: memory", peak, "MiB", AtMost(MEMORY_MIB), note=note, form=",.0f")


def real() -> None:
    """The same requests to the real server."""
    if any(find(program) is None for program in ("etcd", "kube-apiserver")):
        print("kube-apiserver: not there to compare with (hack/controlplane.sh build)", flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        with ControlPlane(Path(folder)) as plane:
            report("kube-apiserver: start", (time.perf_counter() - began) * 1e3, "ms", form=",.0f")
            config = yaml.safe_load(plane.kubeconfig().read_text())
            token = config["users"][0]["user"]["token"]
            authority = config["clusters"][0]["cluster"]["certificate-authority"]
            pool = urllib3.PoolManager(ca_certs=authority, headers={"Authorization": f"Bearer {token}"})

            def send(method: str, target: str, body: bytes | None) -> int:
                headers = {**pool.headers, **(APPLY_TYPE if body else {})}
                return pool.request(method, plane.server + target, body=body, headers=headers).status

            crd = WebApp.crd()
            target = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}"
            assert send("PATCH", target + "?fieldManager=bench", json.dumps(crd).encode()) == 201
            while send("PATCH", APPLY, webapp("hello", "nginx:0")) == 404:
                threading.Event().wait(0.1)  # until the kind is served
            requests("kube-apiserver", send, TIMES // 10, time.perf_counter)


def main() -> None:
    start_up()
    with Sandbox() as sandbox:
        sandbox.apply(WebApp.crd())
        transport = sandbox.transport()

        def send(method: str, target: str, body: bytes | None) -> int:
            headers = APPLY_TYPE if body else {}
            return transport.request(method, target, headers=headers, body=body).status

        requests("sandbox", send, TIMES, time.process_time, PER_SECOND)
    subprocess.run([sys.executable, __file__, "memory"], check=True)
    real()


if __name__ == "__main__":
    memory() if sys.argv[1:] == ["memory"] else main()
