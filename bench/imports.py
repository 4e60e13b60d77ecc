"""Importing what the operator needs: prints one line with its CPU time beside that of the bare Python client.

What it needs is not guessed: the whole operator is run until it has settled a WebApp on a sandbox, with
election and endpoints, and tells which modules it has by then. None of the client's generated API or models
may be there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import ENVIRONMENT, AtMost, report, sandbox_process
from operating import OperatorProcess, create_webapps, wait_ready

from kubeloop.client import connect, load_config

ROUNDS = 9
TARGET = 1.3
BARE = "from kubernetes import client, config"
TYPED = ("kubernetes.client.models.", "kubernetes.client.api.")
TELLING = """
import json, pathlib, sys
before = set(sys.modules)
from webapp_operator.cli import main
code = main(sys.argv[2:])
names = [name for name in sys.modules if name not in before and name != "__mp_main__"]
pathlib.Path(sys.argv[1]).write_text(json.dumps(names))
sys.exit(code)
"""
TIMED = """
import sys, time
before = time.process_time()
{}
print(time.process_time() - before)
"""


def needed() -> list[str]:
    """Names of modules, in the order in which a running operator came to have them."""
    with sandbox_process() as kubeconfig, tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "modules.json"
        client = connect(load_config(str(kubeconfig)), pool_size=4)
        create_webapps(client, 1)
        with OperatorProcess(kubeconfig, program=(sys.executable, "-c", TELLING, str(told))):
            wait_ready(client, 1, 60)
        client.close()
        return [str(name) for name in json.loads(told.read_text())]


def seconds(code: str) -> float:
    """CPU seconds of `code` in a fresh process, whose own start is not counted."""
    command = [sys.executable, "-c", TIMED.format(code)]
    done = subprocess.run(command, env=ENVIRONMENT, check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> None:
    names = needed()
    typed = [name for name in names if name.startswith(TYPED)]
    assert not typed, f"generated modules are loaded: {typed}"
    ours = f"for name in {names!r}: __import__(name)"
    pairs = [(seconds(ours), seconds(BARE)) for _ in range(ROUNDS)]
    whole, bare = (min(times) for times in zip(*pairs, strict=True))
    note = f"{whole * 1e3:.0f} ms for {len(names)} modules, bare client {bare * 1e3:.0f} ms; no typed API"
    report("imports beside the bare client's", whole / bare, "x", AtMost(TARGET), note=note, form=".2f")


if __name__ == "__main__":
    main()
