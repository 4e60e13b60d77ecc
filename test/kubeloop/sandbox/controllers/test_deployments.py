"""Deployments on the sandbox's clock: conditions and numbers as kube-controller-manager 1.36 leaves them."""

from __future__ import annotations

from typing import Any

import pytest

from kubeloop.clock import FakeClock
from kubeloop.sandbox import DeploymentOptions, Sandbox

DEPLOYMENTS = "deployments.apps"


def deployment(image: str = "nginx:1", replicas: int = 2, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "app", "image": image}]},
            },
            **spec,
        },
    }


@pytest.fixture
def sandbox(clock: FakeClock) -> Any:
    options = DeploymentOptions(ready_after=5)
    with Sandbox(clock=clock, step=True, seed=1, deployments=options) as running:
        running.settle()
        yield running


def status(sandbox: Sandbox) -> dict[str, Any]:
    obj = sandbox.get(DEPLOYMENTS, "web", "default")
    assert obj is not None
    found: dict[str, Any] = obj["status"]
    return found


def numbers(sandbox: Sandbox) -> dict[str, int]:
    return {k: v for k, v in status(sandbox).items() if k not in ("conditions", "terminatingReplicas")}


def conditions(sandbox: Sandbox) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in status(sandbox)["conditions"]}


def later(sandbox: Sandbox, clock: FakeClock, seconds: float) -> None:
    sandbox.settle()
    clock.advance(seconds)
    sandbox.settle()


def sizes(sandbox: Sandbox) -> list[int]:
    return sorted(obj["spec"]["replicas"] for obj in sandbox.list("replicasets.apps"))


def test_it_becomes_available_when_its_pods_are_ready(sandbox: Sandbox, clock: FakeClock) -> None:
    sandbox.apply(deployment())
    sandbox.settle()
    assert numbers(sandbox) == {
        "observedGeneration": 1,
        "replicas": 2,
        "updatedReplicas": 2,
        "unavailableReplicas": 2,
    }
    assert conditions(sandbox) == {
        "Available": ("False", "MinimumReplicasUnavailable"),
        "Progressing": ("True", "ReplicaSetUpdated"),
    }
    later(sandbox, clock, 4.9)
    assert "readyReplicas" not in status(sandbox)
    later(sandbox, clock, 0.1)
    assert numbers(sandbox) == {
        "observedGeneration": 1,
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
    }
    assert conditions(sandbox) == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }


def test_the_revision_is_written_through_the_status(sandbox: Sandbox, clock: FakeClock) -> None:
    sandbox.apply(deployment())
    later(sandbox, clock, 5)
    obj = sandbox.get(DEPLOYMENTS, "web", "default")
    assert obj is not None
    assert obj["metadata"]["annotations"] == {"deployment.kubernetes.io/revision": "1"}
    assert obj["metadata"]["generation"] == 1
    entry = obj["metadata"]["managedFields"][-1]
    assert (entry["manager"], entry["subresource"]) == ("kube-controller-manager", "status")


def test_a_settled_deployment_costs_no_write(sandbox: Sandbox, clock: FakeClock) -> None:
    sandbox.apply(deployment())
    later(sandbox, clock, 5)
    mark = sandbox.log.mark()
    later(sandbox, clock, 3600)
    sandbox.apply(deployment())
    sandbox.settle()
    assert sandbox.log.writes(since=mark, only_effective=True, internal=None) == []


def test_a_new_template_is_rolled_out_without_falling_below_the_minimum(
    sandbox: Sandbox, clock: FakeClock
) -> None:
    sandbox.apply(deployment(replicas=4))
    later(sandbox, clock, 5)
    sandbox.apply(deployment("nginx:2", replicas=4))
    sandbox.settle()
    # 25 % of 4: one more and one fewer at a time.
    assert sizes(sandbox) == [2, 3]
    least = most = 4
    for _ in range(6):
        later(sandbox, clock, 5)
        found = status(sandbox)
        least = min(least, found.get("availableReplicas", 0))
        most = max(most, found.get("replicas", 0))
    assert (least, most) == (3, 5)
    assert sizes(sandbox) == [0, 4]
    assert conditions(sandbox)["Progressing"] == ("True", "NewReplicaSetAvailable")
    images = {pod["spec"]["containers"][0]["image"] for pod in sandbox.list("pods")}
    assert images == {"nginx:2"}


def test_going_back_reuses_the_old_replica_set(sandbox: Sandbox, clock: FakeClock) -> None:
    for image in ("nginx:1", "nginx:2", "nginx:1"):
        sandbox.apply(deployment(image))
        for _ in range(4):
            later(sandbox, clock, 5)
    assert len(sandbox.list("replicasets.apps")) == 2
    obj = sandbox.get(DEPLOYMENTS, "web", "default")
    assert obj is not None
    assert obj["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"


def test_recreate_ends_the_old_pods_first(sandbox: Sandbox, clock: FakeClock) -> None:
    sandbox.apply(deployment(strategy={"type": "Recreate"}))
    later(sandbox, clock, 5)
    sandbox.apply(deployment("nginx:2", strategy={"type": "Recreate"}))
    sandbox.settle()
    images = [pod["spec"]["containers"][0]["image"] for pod in sandbox.list("pods")]
    assert images == ["nginx:2", "nginx:2"]
    assert "availableReplicas" not in status(sandbox)
    later(sandbox, clock, 5)
    assert status(sandbox)["availableReplicas"] == 2


@pytest.mark.parametrize("replicas", [0, 1, 5])
def test_it_is_scaled(sandbox: Sandbox, clock: FakeClock, replicas: int) -> None:
    sandbox.apply(deployment(replicas=2))
    later(sandbox, clock, 5)
    sandbox.patch(DEPLOYMENTS, "web", {"spec": {"replicas": replicas}}, "default", subresource="scale")
    later(sandbox, clock, 5)
    assert status(sandbox).get("availableReplicas", 0) == replicas
    assert len(sandbox.list("pods")) == replicas


def test_an_image_that_is_not_there_never_becomes_ready(sandbox: Sandbox, clock: FakeClock) -> None:
    sandbox.apply(deployment("doesnotexist:1", progressDeadlineSeconds=60))
    later(sandbox, clock, 30)
    (pod, _) = sandbox.list("pods")
    assert pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "ImagePullBackOff"
    assert conditions(sandbox)["Progressing"] == ("True", "ReplicaSetUpdated")
    later(sandbox, clock, 60)
    assert conditions(sandbox) == {
        "Available": ("False", "MinimumReplicasUnavailable"),
        "Progressing": ("False", "ProgressDeadlineExceeded"),
    }


def test_a_deleted_pod_is_replaced(sandbox: Sandbox, clock: FakeClock) -> None:
    sandbox.apply(deployment(replicas=1))
    later(sandbox, clock, 5)
    (pod,) = sandbox.list("pods")
    sandbox.delete("pods", pod["metadata"]["name"], "default")
    sandbox.settle()
    (new,) = sandbox.list("pods")
    assert new["metadata"]["name"] != pod["metadata"]["name"]
    assert "availableReplicas" not in status(sandbox)
    later(sandbox, clock, 5)
    assert status(sandbox)["availableReplicas"] == 1


def test_min_ready_seconds_delay_availability(sandbox: Sandbox, clock: FakeClock) -> None:
    sandbox.apply(deployment(replicas=1, minReadySeconds=10))
    later(sandbox, clock, 5)
    assert (status(sandbox)["readyReplicas"], status(sandbox).get("availableReplicas")) == (1, None)
    later(sandbox, clock, 10)
    assert status(sandbox)["availableReplicas"] == 1


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_everything_goes_with_it(sandbox: Sandbox, clock: FakeClock, propagation: str) -> None:
    sandbox.apply(deployment())
    later(sandbox, clock, 5)
    sandbox.delete(DEPLOYMENTS, "web", "default", propagation=propagation)
    sandbox.settle()
    for resource in (DEPLOYMENTS, "replicasets.apps", "pods"):
        assert sandbox.list(resource) == []


def test_a_seed_repeats_a_whole_run() -> None:
    def run() -> list[tuple[str, str]]:
        clock = FakeClock()
        with Sandbox(clock=clock, step=True, seed=7) as sandbox:
            sandbox.apply(deployment())
            for _ in range(3):
                later(sandbox, clock, 1)
            return [(pod["metadata"]["name"], pod["metadata"]["uid"]) for pod in sandbox.list("pods")]

    assert run() == run() != []
