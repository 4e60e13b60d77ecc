"""`python -m operator --once`: one full pass, a table, an exit code (D8)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
COUNT = 20


def once(cluster: Any, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "operator", "--once", "--kubeconfig", str(cluster.operator_kubeconfig)]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [*command, "--namespace", cluster.namespace, *flags],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def webapp(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "WebApp",
        "metadata": {"name": name},
        "spec": {"image": "nginx:1.27", "replicas": 1, **spec},
    }


def settled(cluster: Any) -> bool:
    apps = cluster.kubectl("-n", cluster.namespace, "get", "wa", "-o", "jsonpath={.items[*].status.ready}")
    return str(apps.stdout).split() == ["true"] * COUNT


@pytest.fixture
def apps(cluster: Any) -> None:
    cluster.apply([webapp(f"app-{n:02}") for n in range(COUNT)])


@pytest.mark.usefixtures("apps")
def test_a_pass_over_twenty_webapps_converges_and_the_next_one_writes_nothing(cluster: Any) -> None:
    first = once(cluster)
    assert first.returncode == 0, first.stdout + first.stderr
    lines = first.stdout.splitlines()
    assert lines[0].split() == ["NAMESPACE", "WEBAPP", "RESULT", "DETAILS"]
    assert sum("created" in line and "Deployment created" in line for line in lines) == COUNT
    assert lines[-1] == f"{COUNT} created: converged"

    for _ in range(5):  # until the Deployments bring no more news that the status has to tell
        if once(cluster).returncode == 0 and settled(cluster):
            break
    mark = cluster.mark()
    last = once(cluster)

    assert last.returncode == 0
    assert last.stdout.splitlines()[-1] == f"{COUNT} unchanged: converged"
    assert cluster.writes(since=mark) == []


@pytest.mark.usefixtures("apps")
def test_a_dry_run_shows_the_diff_and_writes_nothing(cluster: Any) -> None:
    mark = cluster.mark()
    done = once(cluster, "--dry-run")

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"+++ wanted/Deployment/{cluster.namespace}/app-00" in done.stdout
    assert "+  kind: WebApp" in done.stdout or "+    kind: WebApp" in done.stdout
    assert done.stdout.splitlines()[-1] == f"{COUNT} created: converged (dry run: nothing was written)"
    assert cluster.get("deployment", "app-00", cluster.namespace) is None
    assert (cluster.get("webapp", "app-00", cluster.namespace) or {})["metadata"].get("finalizers") is None
    refused = [write for write in cluster.writes(since=mark) if write[5] >= 400]
    assert refused == []


def test_what_did_not_converge_is_explained_and_the_exit_code_says_so(cluster: Any) -> None:
    cluster.apply([webapp("good"), webapp("bad", readinessPath="/")])
    done = once(cluster)

    assert done.returncode == 1
    rows = {line.split()[1]: line for line in done.stdout.splitlines() if line.startswith(cluster.namespace)}
    assert "created" in rows["good"]
    assert "invalid" in rows["bad"]
    assert "requires spec.port" in rows["bad"]
    assert done.stdout.splitlines()[-1] == "1 created, 1 invalid: NOT converged"


def test_nothing_to_do_is_fine(cluster: Any) -> None:
    done = once(cluster)

    assert (done.returncode, done.stdout) == (0, "no WebApps: converged\n")


def test_an_unusable_kubeconfig_is_an_error_of_its_own(cluster: Any, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "operator", "--once", "--kubeconfig", str(tmp_path / "none")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)

    assert done.returncode == 2
    assert "kubeconfig failed to load" in done.stderr
    assert "Traceback" not in done.stderr
    assert cluster.namespace not in done.stdout
