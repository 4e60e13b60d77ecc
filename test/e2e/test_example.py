"""The tutorial's WebApp of `examples/` runs as it stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "webapp.py"


def test_it_stays_short() -> None:
    """What the tutorial shows in Rust, complete, in about 110 lines."""
    assert len(EXAMPLE.read_text().splitlines()) <= 120


def test_it_prints_a_crd_that_the_server_takes(cluster: Any) -> None:
    done = subprocess.run([sys.executable, str(EXAMPLE), "crd"], capture_output=True, text=True, check=True)
    crd = yaml.safe_load(done.stdout)
    assert crd["metadata"]["name"] == "webapps.example.com"
    cluster.kubectl(
        "apply", "--server-side", "--dry-run=server", "--force-conflicts", "-f", "-", input=done.stdout
    )


def test_it_makes_a_ready_webapp_and_stops_when_told(cluster: Any) -> None:
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    with subprocess.Popen([sys.executable, str(EXAMPLE)], env=environment, stderr=subprocess.PIPE) as example:
        try:
            cluster.apply(
                {
                    "apiVersion": "example.com/v1",
                    "kind": "WebApp",
                    "metadata": {"name": "small"},
                    "spec": {"image": "nginx:1.27", "replicas": 2},
                }
            )
            cluster.kubectl(
                *("-n", cluster.namespace, "wait", "--for=condition=Ready", "webapp/small", "--timeout=60s")
            )
            cluster.kubectl("-n", cluster.namespace, "delete", "webapp/small", "--timeout=30s")
        finally:
            example.terminate()
            _, log = example.communicate(timeout=20)
    if example.returncode:
        pytest.fail(f"exit code {example.returncode}\n{log.decode()}")
