"""Reports 14 to 16, and the others about names, owners and finalizers."""

from __future__ import annotations

from typing import Any

import pytest

from kubeloop.controller import Context, Controller, Result
from kubeloop.model import Deployment
from webapp_operator.reconcile import explain
from webapp_operator.types import WebApp

OURS = "webapp.example.com/cleanup"
OTHER = "other.example.com/wait"


def pods(image: str = "nginx:1.27") -> dict[str, Any]:
    return {
        "selector": {"matchLabels": {"app": "x"}},
        "template": {
            "metadata": {"labels": {"app": "x"}},
            "spec": {"containers": [{"name": "web", "image": image}]},
        },
    }


def shared_name(app: WebApp, ctx: Context[WebApp]) -> Result:
    """A reconcile that names its Deployment after a setting of the WebApp."""
    ctx.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": app.spec.service_account_name,
                "namespace": app.namespace,
                "ownerReferences": [app.owner_reference()],
            },
            "spec": pods(app.spec.image),
        }
    )
    return Result()


@pytest.mark.parametrize("latency", [0.0, 0.5], ids=["one after the other", "at the same time"])
def test_two_owners_of_one_name_do_not_fight(stage: Any, latency: float) -> None:
    """cert-manager/cert-manager#2941: two objects that point to one child overwrite each other for ever."""
    controller = Controller(WebApp, shared_name, field_manager="test", on_error=explain)
    operator = stage.operate(controller.owns(Deployment))
    if latency:  # both find the name free, and both reconciles are under way before one is answered
        stage.sandbox.faults.add(verb="patch", resource="deployments", latency=latency)
    stage.make("first", serviceAccountName="shared", image="first:1")
    if not latency:
        stage.pass_time(1)
    stage.make("second", serviceAccountName="shared", image="second:1")
    stage.until(lambda: stage.deployment("shared"))
    owner = stage.deployment("shared")["metadata"]["ownerReferences"][0]["name"]
    stage.pass_time(5)
    mark = stage.sandbox.log.mark()
    loser = {"first": "second", "second": "first"}[owner]
    for number in range(20):
        stage.touch(number, "first")
        stage.touch(number, "second")
        stage.pass_time(60, step=1)

    assert operator.writes(mark) == []
    assert stage.deployment("shared")["metadata"]["ownerReferences"][0]["name"] == owner
    assert stage.condition("Ready", loser)["reason"] == "Conflict"
    assert f"WebApp {owner}" in stage.condition("Ready", loser)["message"]

    # The name becomes free: the other one gets it, without being asked.
    stage.sandbox.delete("webapps.example.com", owner, "default")
    stage.until(
        lambda: (
            stage.deployment("shared").get("metadata", {}).get("ownerReferences", [{}])[0].get("name")
            == loser
        ),
        within=10,
    )


@pytest.mark.parametrize("finalizers", [[], [OTHER]], ids=["ours", "and another's"])
def test_what_was_deleted_while_nobody_looked_is_cleaned_up(stage: Any, finalizers: list[str]) -> None:
    """zalando/postgres-operator#2678: deleted while the operator is down, and the children stay."""
    first = stage.operate()
    stage.make(port=8080)
    stage.ready()
    first.stop()
    if finalizers:
        patch = {"metadata": {"finalizers": [OURS, *finalizers]}}
        stage.sandbox.patch("webapps.example.com", "hello", patch, "default")
    stage.sandbox.delete("webapps.example.com", "hello", "default")
    stage.pass_time(60, step=5)
    assert stage.app()["metadata"]["deletionTimestamp"]
    assert stage.deployment()

    second = stage.operate(name="second")
    stage.pass_time(5)
    if finalizers:
        assert stage.app()["metadata"]["finalizers"] == finalizers
        stage.sandbox.patch("webapps.example.com", "hello", {"metadata": {"finalizers": None}}, "default")
    stage.until(lambda: not stage.app() and not stage.deployment(), within=10)
    stage.pass_time(400, step=5)
    assert stage.sandbox.list("deployments.apps", "default") == []
    assert stage.sandbox.list("replicasets.apps", "default") == []
    assert stage.sandbox.get("services", "hello", "default") is None
    assert [(e.verb, e.resource) for e in second.writes()] == [("patch", "webapps")]


@pytest.mark.parametrize("pause", [0.0, 0.02, 0.05, 0.3])
def test_what_is_deleted_as_soon_as_it_is_created_leaves_no_orphans(stage: Any, pause: float) -> None:
    """zalando/postgres-operator#2678: the same when creation and deletion follow each other (#551)."""
    operator = stage.operate()
    # Every answer takes a while, so that the deletion comes between any two steps of the reconcile.
    stage.sandbox.faults.add(user_agent="operator", verb="patch", latency=0.1)
    for round_ in range(4):
        name = f"short{round_}"
        stage.make(name)
        stage.pass_time(pause + round_ * 0.1, step=0.02)
        stage.sandbox.delete("webapps.example.com", name, "default")
        stage.until(lambda name=name: not stage.app(name), within=30, step=0.05)
    stage.pass_time(120, step=1)

    assert stage.sandbox.list("deployments.apps", "default") == []
    assert stage.sandbox.list("replicasets.apps", "default") == []
    assert len(operator.controller.queue) == 0


def test_a_finalizer_is_never_proposed_for_an_object_that_is_being_deleted(stage: Any) -> None:
    """kubernetes-sigs/cluster-api#8949: "no new finalizers can be added if the object is being deleted"."""
    operator = stage.operate()
    stage.make()
    stage.ready()
    patch = {"metadata": {"finalizers": [OTHER, OURS, "third.example.com/x"]}}
    stage.sandbox.patch("webapps.example.com", "hello", patch, "default")
    stage.pass_time(1)
    mark = stage.sandbox.log.mark()
    stage.sandbox.delete("webapps.example.com", "hello", "default")
    stage.pass_time(1)
    stage.sandbox.delete("deployments.apps", "hello", "default")
    for number in range(10):
        stage.touch(number)
        stage.pass_time(60, step=1)
    stage.cut("webapps", "deployments")
    stage.pass_time(60, step=1)

    assert stage.app()["metadata"]["finalizers"] == [OTHER, "third.example.com/x"]
    assert [(e.verb, e.resource, e.subresource, e.status) for e in operator.writes(mark)] == [
        ("patch", "webapps", "", 200)
    ]
    assert stage.deployment() == {}
    stage.sandbox.patch("webapps.example.com", "hello", {"metadata": {"finalizers": None}}, "default")
    stage.until(lambda: not stage.app())
    assert all(outcome.error is None for _, outcome in operator.outcomes)


@pytest.mark.parametrize("held", [True, False], ids=["held by a finalizer", "orphaned"])
def test_a_child_of_an_earlier_object_of_the_name_is_neither_adopted_nor_fought(
    stage: Any, held: bool
) -> None:
    """knative/serving#7556: created anew while the old child still has the old UID."""
    operator = stage.operate()
    stage.make()
    stage.ready()
    old = stage.deployment()["metadata"]["uid"]
    if held:
        patch = {"metadata": {"finalizers": ["example.com/slow"]}}
        stage.sandbox.patch("deployments.apps", "hello", patch, "default")
        stage.pass_time(1)
    stage.sandbox.delete("webapps.example.com", "hello", "default", propagation="" if held else "Orphan")
    stage.until(lambda: not stage.app())
    stage.make(image="nginx:1.28")
    stage.pass_time(200, step=1)
    mark = stage.sandbox.log.mark()
    stage.pass_time(60, step=1)

    live = stage.deployment()
    assert live["metadata"]["uid"] == old
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1.27"
    assert operator.writes(mark) == []
    assert operator.controller.queue.failures("default/hello") == 0
    assert "Deployment default/hello" in stage.condition("Ready")["message"]
    assert len(operator.writes(resource="deployments")) == 1

    if held:
        stage.sandbox.patch("deployments.apps", "hello", {"metadata": {"finalizers": None}}, "default")
    else:
        stage.sandbox.delete("deployments.apps", "hello", "default")
    stage.ready()
    assert stage.deployment()["metadata"]["uid"] != old


@pytest.mark.parametrize("blind", ["watch silent", "answers lost", "stale lists"])
def test_a_cache_that_lags_makes_no_duplicates(stage: Any, blind: str) -> None:
    """argoproj/argo-rollouts#243: generateName and a stale cache give duplicates."""
    faults = stage.sandbox.faults
    if blind == "watch silent":
        faults.add(verb="watch", resource="deployments", after=0, silence_after=0)
        faults.add(verb="watch", resource="replicasets", silence_after=0)
    elif blind == "answers lost":
        faults.add(verb="patch", resource="deployments", lose_answer=True, probability=0.5)
    else:
        faults.add(verb=("list", "watch"), resource="deployments", stale=20)
    first = stage.operate()
    for name in ("a", "b", "c"):
        stage.make(name)
    for number in range(20):
        for name in ("a", "b", "c"):
            stage.touch(number, name)
        stage.pass_time(1)
    first.stop()
    second = stage.operate(name="second")
    stage.pass_time(120, step=1)
    faults.clear()
    stage.pass_time(200, step=1)

    names = sorted(each["metadata"]["name"] for each in stage.sandbox.list("deployments.apps", "default"))
    assert names == ["a", "b", "c"]
    assert len(stage.sandbox.list("replicasets.apps", "default")) == 3
    stage.ready("a", "b", "c")
    assert not [e for e in (*first.writes(), *second.writes()) if e.verb in ("create", "delete")]


def test_a_restart_keeps_the_replicas_that_an_autoscaler_chose(stage: Any) -> None:
    """jaegertracing/jaeger-operator#963: an operator's restart resets what an autoscaler has set.

    Autoscalers act on the WebApp's scale (D5); what a WebApp says is applied.
    """
    first = stage.operate()
    stage.make(replicas=1)
    stage.ready()
    stage.sandbox.patch(
        "webapps.example.com", "hello", {"spec": {"replicas": 5}}, "default", subresource="scale"
    )
    stage.until(lambda: stage.deployment()["spec"]["replicas"] == 5)
    stage.ready()
    first.stop()
    second = stage.operate(name="second")
    stage.pass_time(700, step=5)

    assert second.writes() == []
    assert stage.deployment()["spec"]["replicas"] == 5
    assert stage.app()["spec"]["replicas"] == 5


def test_a_field_that_is_not_said_belongs_to_whoever_sets_it(stage: Any) -> None:
    """jaegertracing/jaeger-operator#963: the same for a controller that leaves the replicas unset."""

    def make() -> Controller[WebApp]:
        return Controller(WebApp, shared_name, field_manager="test").owns(Deployment)

    first = stage.operate(make())
    stage.make(serviceAccountName="hello")
    stage.until(stage.deployment)
    patch = {"spec": {"replicas": 7}}
    stage.sandbox.patch("deployments.apps", "hello", patch, "default", subresource="scale")
    stage.pass_time(30)
    first.stop()
    second = stage.operate(make(), name="second")
    stage.sandbox.patch("webapps.example.com", "hello", {"spec": {"image": "nginx:1.28"}}, "default")
    stage.pass_time(30)

    live = stage.deployment()["spec"]
    assert live["replicas"] == 7
    assert live["template"]["spec"]["containers"][0]["image"] == "nginx:1.28"
    assert len(second.writes(resource="deployments")) == 1
