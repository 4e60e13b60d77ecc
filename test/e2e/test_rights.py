"""config/rbac grants no right to write that the operator could do without (its sufficiency is proved by every
other test here, as they all run with exactly these rights).

Reading is left out: get, list and watch of a kind belong together, whichever of them a run happens to need.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ROLE = ROOT / "config" / "rbac" / "operator_role.yaml"
READING = {"get", "list", "watch"}
ELSEWHERE = {"events"}
"""Events are written by a running operator only; that they are is tested where it runs."""


def role() -> dict[str, Any]:
    documents = yaml.safe_load_all(ROLE.read_text())
    found: dict[str, Any] = next(each for each in documents if each["kind"] == "ClusterRole")
    return found


def writing_rights() -> list[tuple[str, str]]:
    rules = [rule for rule in role()["rules"] if not ELSEWHERE & set(rule["resources"])]
    return [
        (resource, verb)
        for rule in rules
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb not in READING
    ]


def without(resource: str, verb: str) -> dict[str, Any]:
    stripped = copy.deepcopy(role())
    for rule in stripped["rules"]:
        if resource in rule["resources"]:
            rule["verbs"] = [each for each in rule["verbs"] if each != verb]
    stripped["rules"] = [rule for rule in stripped["rules"] if rule["verbs"]]
    return stripped


@pytest.fixture
def full_rights(cluster: Any) -> Iterator[None]:
    yield
    replace_role(cluster, role())


def replace_role(cluster: Any, wanted: dict[str, Any]) -> None:
    cluster.kubectl("replace", "-f", "-", input=json.dumps(wanted))


def once(cluster: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "operator", "--once", "--kubeconfig", str(cluster.operator_kubeconfig)]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [*command, "--namespace", cluster.namespace],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def webapp(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "WebApp",
        "metadata": {"name": "hello"},
        "spec": {"image": "nginx:1.27", "replicas": 1, **spec},
    }


def prepare(cluster: Any, resource: str, verb: str) -> None:
    """Make a situation in which the operator needs this right."""
    if (resource, verb) == ("services", "delete"):
        cluster.apply(webapp(port=80))
        assert once(cluster).returncode == 0
        patch = json.dumps([{"op": "remove", "path": "/spec/port"}])
        cluster.kubectl("-n", cluster.namespace, "patch", "webapp", "hello", "--type=json", "-p", patch)
        return
    cluster.apply(webapp(port=80))
    if (resource, verb) == ("deployments", "delete"):
        uid = cluster.get("webapp", "hello", cluster.namespace)["metadata"]["uid"]
        owner = {"apiVersion": "example.com/v1", "kind": "WebApp", "name": "hello", "uid": uid}
        labels = {"made-by": "an-older-version"}
        cluster.apply(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "hello", "ownerReferences": [{**owner, "controller": True}]},
                "spec": {
                    "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {"containers": [{"name": "app", "image": "nginx"}]},
                    },
                },
            }
        )


@pytest.mark.usefixtures("full_rights")
@pytest.mark.parametrize(("resource", "verb"), writing_rights())
def test_no_right_can_be_spared(cluster: Any, resource: str, verb: str) -> None:
    prepare(cluster, resource, verb)
    replace_role(cluster, without(resource, verb))
    done = once(cluster)

    assert done.returncode == 1, f"converged without {verb} on {resource}:\n{done.stdout}"
    assert "Forbidden" in done.stdout + done.stderr
