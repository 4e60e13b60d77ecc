"""The reports about what a status says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kubeloop.sandbox import DeploymentOptions
from webapp_operator.reconcile import webapp_controller


def statuses(stage: Any, operator: Any) -> list[dict[str, Any]]:
    """Note every status that is written from now on, whatever it says."""
    found: list[dict[str, Any]] = []
    real = operator.wire.inner.request

    def request(method: str, target: str, **rest: Any) -> Any:
        answer = real(method, target, **rest)
        if method == "PATCH" and "/status" in target:
            found.append(stage.app()["status"])
        return answer

    operator.wire.inner.request = request
    return found


@pytest.mark.parametrize("why", ["slow", "never", "lost"])
def test_nothing_is_called_ready_before_it_is(make_stage: Callable[..., Any], why: str) -> None:
    """zalando/postgres-operator#2338: the status flips to Running on a resync though no replica is ready."""
    options = DeploymentOptions(ready_after=10_000 if why == "slow" else 0.2)
    stage = make_stage(deployments=options)
    operator = stage.operate(webapp_controller(resync=timedelta(seconds=30)))
    written = statuses(stage, operator)
    stage.make(image="doesnotexist:1" if why == "never" else "nginx:1.27")
    if why == "lost":
        stage.ready()
        del written[:]
        # All pods go and cannot come back: the new image cannot be pulled, and the old pods are deleted.
        stage.sandbox.patch("webapps.example.com", "hello", {"spec": {"image": "doesnotexist:2"}}, "default")
        stage.pass_time(1)
        for pod in stage.sandbox.list("pods", "default"):
            stage.sandbox.delete("pods", pod["metadata"]["name"], "default")
    seen = len(operator.outcomes)
    for number in range(10):
        stage.pass_time(35, step=1)
        stage.touch(number)
        stage.cut("deployments", "webapps")
    assert len(operator.outcomes) - seen >= 10, "there were no resyncs"

    assert written
    for status in written:
        ready = next(c for c in status["conditions"] if c["type"] == "Ready")
        assert (status["phase"], status["ready"], ready["status"]) != ("Ready", True, "True")
        assert status["phase"] in ("Pending", "Provisioning", "Failed")
        assert status["ready"] is False
        assert ready["status"] == "False"
    if why != "lost":
        assert stage.app()["status"]["availableReplicas"] == 0


BAD = {
    "needs another field": ({"readinessPath": "/healthz"}, "readinessPath"),
    "given twice over": ({"envFrom": [{}]}, "envFrom[0]"),
    "contradicts itself": (
        {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}},
        "exceeds its limit",
    ),
    "only the server knows": ({"resources": {"limits": {"no such/thing/at all": "1"}}}, "thing"),
    "refers to nothing": ({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "nope"}}}]}, "nope"),
}


@pytest.mark.parametrize("which", BAD)
def test_an_invalid_spec_is_explained_in_the_status(stage: Any, which: str) -> None:
    """CrunchyData/postgres-operator#3163: an invalid spec, and nothing about it in the status."""
    spec, word = BAD[which]
    operator = stage.operate()
    stage.make("good")
    stage.make(**spec)
    stage.until(lambda: stage.phase() == "Failed", within=5)
    mark = stage.sandbox.log.mark()
    for number in range(10):
        stage.touch(number)
        stage.pass_time(20, step=1)

    status = stage.app()["status"]
    assert status["observedGeneration"] == stage.app()["metadata"]["generation"]
    degraded, ready = stage.condition("Degraded"), stage.condition("Ready")
    assert (degraded["status"], ready["status"]) == ("True", "False")
    assert word in degraded["message"]
    assert word in ready["message"]
    assert operator.writes(mark, resource="webapps", name="hello") == []
    assert len(operator.writes(mark, name="hello")) <= 12, "only what a touch asks for"
    assert stage.deployment() == {}
    stage.ready("good")

    fields = dict.fromkeys(("readinessPath", "envFrom", "resources", "env"))
    stage.sandbox.patch("webapps.example.com", "hello", {"spec": fields}, "default")
    stage.ready()
    assert stage.condition("Degraded")["status"] == "False"
