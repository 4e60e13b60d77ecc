"""Assertions that wait on the sandbox's clock and explain themselves."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from kubeloop.clock import FakeClock
from kubeloop.sandbox import DeploymentOptions, Sandbox


def deployment(replicas: int = 3) -> dict[str, Any]:
    labels = {"app": "hello"}
    pod = {"containers": [{"name": "web", "image": "nginx"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "hello", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def test_a_rollout_of_minutes_takes_no_time() -> None:
    options = DeploymentOptions(ready_after=120)
    with Sandbox(clock=FakeClock(), step=True, deployments=options) as sandbox:
        sandbox.apply(deployment())
        begin = time.monotonic()
        found = sandbox.expect("deployment", "hello").to_have_available(3, within=600)
        assert time.monotonic() - begin < 5
        assert found["status"]["availableReplicas"] == 3
        assert sandbox.clock.monotonic() >= 120
        sandbox.expect("deploy", "hello").to_have_condition("Available")
        sandbox.expect("Deployment", "hello").to_have(status={"readyReplicas": 3}, spec={"replicas": 3})


def test_a_failure_tells_what_was_there_instead(sandbox: Sandbox) -> None:
    sandbox.apply(deployment(1))
    sandbox.settle()
    with pytest.raises(AssertionError) as caught:
        sandbox.expect("deployments.apps", "hello").to_have_available(3, within=30)
    first, *requests = str(caught.value).splitlines()
    assert first.startswith(
        "deployment default/hello never had 3 available replicas within 30 s; last status {"
    )
    assert '"availableReplicas": 1' in first
    assert any("deployments/status default/hello -> 200" in line for line in requests), requests
    with pytest.raises(
        AssertionError, match=r"never had status\.readyReplicas 3, spec\.replicas 3 within 1 s"
    ):
        sandbox.expect("deployment", "hello").to_have(
            status={"readyReplicas": 3}, spec={"replicas": 3}, within=1
        )
    with pytest.raises(AssertionError, match="never went away within 1 s"):
        sandbox.expect("deployment", "hello").to_be_gone(within=1)


def test_what_is_not_there_is_said_to_be_so(sandbox: Sandbox) -> None:
    with pytest.raises(AssertionError, match="configmap default/x never was there within 2 s; it does not"):
        sandbox.expect("cm", "x").to_exist(within=2)
    with pytest.raises(ValueError, match=r"serves no 'gizmo', but .*webapp"):
        sandbox.expect("gizmo", "x")
    sandbox.expect("webapp", "x").to_be_gone()


def test_what_is_tested_can_be_driven_while_waiting(sandbox: Sandbox, api: Any) -> None:
    """An operator without a thread of its own: its step is called again and again."""
    api.create("a")
    rounds: list[float] = []

    def operator() -> None:
        rounds.append(sandbox.clock.monotonic())
        if len(rounds) == 3:
            sandbox.patch(
                "webapps.example.com", "a", {"status": {"ready": True}}, "default", subresource="status"
            )

    expected = sandbox.expect("webapp", "a", drive=operator)
    expected.to_satisfy(lambda obj: obj.get("status", {}).get("ready") is True, "was ready")
    assert len(rounds) == 3
    with pytest.raises(AssertionError, match="webapp default/a never was blue within 1 s"):
        expected.to_satisfy(lambda obj: obj["spec"].get("color") == "blue", "was blue", within=1)


def test_on_the_machines_clock_it_waits_for_events() -> None:
    with Sandbox() as sandbox:
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
        writer = threading.Timer(0.05, sandbox.create, [obj])
        writer.start()
        sandbox.expect("configmap", "a").to_exist(within=5)
        writer.join()
        with pytest.raises(AssertionError, match=r"within 0\.1 s"):
            sandbox.expect("configmap", "b").to_exist(within=0.1)


def test_a_still_clock_is_moved_for_controllers_with_threads() -> None:
    with Sandbox(clock=FakeClock(), deployments=DeploymentOptions(ready_after=5)) as sandbox:
        sandbox.apply(deployment(2))
        sandbox.expect("deployment", "hello").to_have_available(2, within=60)


def test_writes_where_none_were_expected_are_listed(sandbox: Sandbox, api: Any) -> None:
    api.create("a")
    mark = sandbox.log.mark()
    sandbox.log.expect_no_writes(since=mark)
    api.merge(f"{api.WEBAPPS}/a", {"spec": {"replicas": 2}})
    with pytest.raises(AssertionError, match=r"1 writes .*\n  #\d+ patch webapps default/a -> 200 wrote"):
        sandbox.log.expect_no_writes(since=mark, resource="webapps")
