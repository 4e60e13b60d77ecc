"""Reports 11 to 13, and the others about loops and backoff."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kubeloop.client import ApiError
from kubeloop.controller import Context, Controller, Result
from kubeloop.model import Deployment
from webapp_operator.flags import parse
from webapp_operator.reconcile import webapp_controller
from webapp_operator.types import WebApp

CONTROLLED = ("webapps", "deployments", "services")
TWENTY = [f"app{n:02}" for n in range(20)]


def test_settled_objects_cost_no_write(stage: Any) -> None:
    """kubernetes-sigs/controller-runtime#2831: each reconcile writes a status, which triggers the next.

    Twenty settled WebApps, two minutes with resyncs, a relist of everything and news that mean nothing.
    """
    operator = stage.operate(webapp_controller(resync=timedelta(seconds=40)))
    for name in TWENTY:
        stage.make(name, port=8080)
    stage.ready(*TWENTY)
    stage.pass_time(1)
    before = {name: stage.app(name) for name in TWENTY}
    mark, seen = stage.sandbox.log.mark(), len(operator.outcomes)
    stage.pass_time(50, step=1)
    stage.make_noise()
    stage.sandbox.compact()
    stage.cut(*CONTROLLED)
    stage.pass_time(10, step=1)
    for name in TWENTY[:5]:
        stage.sandbox.patch("deployments.apps", name, {"metadata": {"labels": {"team": "b"}}}, "default")
        status = {"status": {"collisionCount": 1}}
        stage.sandbox.patch("deployments.apps", name, status, "default", subresource="status")
        stage.touch(1, name)
    stage.pass_time(60, step=1)

    assert operator.writes(mark, events=True) == []
    assert len(operator.outcomes) - seen >= 2 * len(TWENTY), "there were no resyncs"
    assert all(informer.lists >= 2 for informer in operator.manager.informers.values()), "there was no relist"
    for name in TWENTY:
        assert stage.app(name)["status"] == before[name]["status"]


@pytest.mark.parametrize(
    ("change", "most"),
    [
        pytest.param({"metadata": {"annotations": {"touched": "%d"}}}, 13, id="touched"),
        pytest.param({"spec": {"args": ["%d"]}}, 17, id="spec changed"),
    ],
)
def test_events_do_not_bypass_the_backoff_of_a_failing_object(
    stage: Any, change: dict[str, Any], most: int
) -> None:
    """kubernetes/kubernetes#112325: retried far too often while it is touched, then parked for 16 minutes.

    A quota forbids the Deployment for 30 s in which the WebApp changes 50 times. Differs from client-go
    (docs/design/backoff.md): 0.1 to 60 s instead of 5 ms to 1000 s, jittered; a changed spec is tried within
    5 s of the failure.
    """
    quota = {
        "kind": "Status",
        "code": 403,
        "reason": "Forbidden",
        "message": 'deployments.apps "hello" is forbidden: exceeded quota: few',
    }
    operator = stage.operate()
    with stage.sandbox.faults.add(verb="patch", resource="deployments", status=403, body=quota):
        stage.make()
        for number in range(50):
            text = json.dumps(change).replace("%d", str(number))
            stage.sandbox.patch("webapps.example.com", "hello", json.loads(text), "default")
            stage.pass_time(0.6, step=0.05)
        attempts = [s.at for s in operator.wire.of("patch", "deployments")]
    failures = operator.controller.queue.failures("default/hello")
    assert 6 <= len(attempts) <= most, attempts
    assert failures == len(attempts)
    assert "exceeded quota" in stage.condition("Ready")["message"]
    longest = max(b - a for a, b in itertools.pairwise(attempts))
    assert longest > 3

    stage.until(lambda: stage.phase() == "Ready", within=61)
    assert operator.controller.queue.failures("default/hello") == 0


def test_a_child_of_an_older_version_is_replaced_by_one_delete(stage: Any) -> None:
    """prometheus-operator/prometheus-operator#4519: a StatefulSet deleted on each sync, since its selector
    cannot be changed and a finalizer keeps it."""
    app = stage.make()
    stage.sandbox.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": "hello",
                "namespace": "default",
                "finalizers": ["example.com/slow"],
                "ownerReferences": [
                    {
                        "apiVersion": "example.com/v1",
                        "kind": "WebApp",
                        "name": "hello",
                        "uid": app["metadata"]["uid"],
                        "controller": True,
                    }
                ],
            },
            "spec": {
                "selector": {"matchLabels": {"release": "old"}},
                "template": {
                    "metadata": {"labels": {"release": "old"}},
                    "spec": {"containers": [{"name": "web", "image": "nginx:1.0"}]},
                },
            },
        }
    )
    stage.until(lambda: stage.sandbox.list("replicasets.apps", "default"), what="the old ReplicaSet")
    old = stage.deployment()["metadata"]["uid"]
    operator = stage.operate()
    for number in range(20):
        stage.touch(number)
        stage.pass_time(30, step=1)

    deletes = [e for e in operator.writes() if e.verb == "delete"]
    assert [(e.resource, e.name) for e in deletes] == [("deployments", "hello")]
    assert stage.deployment()["metadata"]["deletionTimestamp"]
    assert stage.phase() == "Pending"
    assert "Deployment default/hello is being" in stage.condition("Ready")["message"]
    applies = [e for e in operator.writes(resource="deployments") if e.verb == "patch"]
    assert len(applies) == 1

    stage.sandbox.patch("deployments.apps", "hello", {"metadata": {"finalizers": None}}, "default")
    stage.ready()
    assert stage.deployment()["metadata"]["uid"] != old
    (remaining,) = stage.sandbox.list("replicasets.apps", "default")
    assert remaining["metadata"]["ownerReferences"][0]["uid"] == stage.deployment()["metadata"]["uid"]
    assert len([e for e in operator.writes() if e.verb == "delete"]) == 1


@pytest.mark.parametrize("events", ["written", "refused", "unanswered"])
def test_a_lasting_failure_costs_few_events_and_no_event_costs_a_reconcile(stage: Any, events: str) -> None:
    """kubernetes/kubernetes#47366: event spam. Five minutes of failures, each with another text."""
    attempts = itertools.count()

    def fail(app: WebApp, ctx: Context[WebApp]) -> Result:
        number = next(attempts)
        ctx.event("Broken", f"the disk is full for the {number}th time", warning=True)
        if app.name == "works":
            return Result()
        raise OSError(f"failure {number}")

    operator = stage.operate(Controller(WebApp, fail, field_manager="test"))
    if events == "refused":
        stage.sandbox.faults.add(resource="events", status=500)
    elif events == "unanswered":
        stage.sandbox.faults.add(resource="events", silence=True)
    stage.make()
    stage.make("works")
    for number in range(300):
        for name in ("hello", "works"):
            stage.touch(number, name)
        stage.pass_time(1, step=0.5)

    written = [e for e in operator.writes(events=True) if e.resource == "events"]
    assert 2 <= len(written) <= 60, "about 25 for an object, and one more in five minutes"
    tries = [outcome for key, outcome in operator.outcomes if key == "default/hello"]
    assert 8 <= len(tries) <= 25, "Events must neither cause nor delay reconciles"
    assert all(isinstance(outcome.error, OSError) for outcome in tries)
    worked = [outcome.error for key, outcome in operator.outcomes if key == "default/works"]
    assert worked == [None] * len(worked)
    assert len(worked) >= 300
    assert operator.unwell() == ""


@pytest.mark.parametrize("verb", ["patch", "list", "watch"])
def test_an_absurd_retry_after_is_survived(stage: Any, verb: str) -> None:
    """kube-rs/kube#1772: a huge delay panics the scheduler; Python's waits raise OverflowError."""
    resource = "deployments" if verb == "patch" else "webapps"
    fault = stage.sandbox.faults.add(
        verb=verb, resource=resource, status=429, retry_after=1_000_000_000_000, count=2
    )
    if verb == "list":
        stage.sandbox.faults.add(verb="watch", resource="webapps", status=422, count=1)
    operator = stage.operate()
    stage.make()
    took = stage.until(lambda: stage.phase() == "Ready", within=200)

    assert fault.fired == 2
    assert took >= 10, "a server that asks for time gets some"
    assert operator.unwell() == ""
    assert operator.thread.is_alive()


def test_an_absurd_requeue_kills_no_worker(stage: Any) -> None:
    """kube-rs/kube#1772: a huge delay panics the scheduler; here one that a reconcile asks for."""
    waits = [timedelta.max, timedelta(days=365_000), timedelta(microseconds=1)]
    runs: list[str] = []

    def reconcile(app: WebApp, _ctx: Context[WebApp]) -> Result:
        runs.append(app.name)
        return Result(waits.pop(0) if waits else None)

    operator = stage.operate(Controller(WebApp, reconcile, field_manager="test"))
    for name in ("a", "b", "c"):
        stage.make(name)
        stage.pass_time(1)
    stage.pass_time(60)

    assert sorted(runs) == ["a", "b", "c", "c"]
    assert operator.unwell() == ""


@pytest.mark.parametrize("value", ["1e12", "1e308"])
def test_absurd_intervals_are_refused_or_survived(stage: Any, value: str) -> None:
    """kube-rs/kube#1772: a huge delay panics the scheduler; here as flags of the command line."""
    for flag in ("--resync", "--lease-duration", "--renew-deadline", "--retry-period"):
        with pytest.raises(SystemExit) as refused:
            parse([flag, value], {})
        assert refused.value.code == 2
    args = parse(["--shutdown-timeout", value], {})
    operator = stage.operate(elect=True, grace=args.shutdown_timeout)
    stage.make()
    stage.ready()

    assert operator.stop() is True


@pytest.mark.parametrize("moves", ["resourceVersion", "generation"])
def test_an_apply_that_moves_the_version_without_a_change_makes_no_loop(stage: Any, moves: str) -> None:
    """kubernetes/kubernetes#124605: a no-op server-side apply still bumps resourceVersion (as in #95460).

    Here somebody (a webhook, another controller) changes the Deployment on each of our applies.
    """
    operator = stage.operate()
    real, counter = operator.wire.inner.request, itertools.count()

    def request(method: str, target: str, **rest: Any) -> Any:
        answer = real(method, target, **rest)
        if method == "PATCH" and "/deployments/hello" in target:
            number = str(next(counter))
            where = {"metadata": {"annotations": {"n": number}}, "spec": {"minReadySeconds": int(number)}}
            if moves == "resourceVersion":
                where = {"metadata": {"labels": {"n": number}}}
            stage.sandbox.patch("deployments.apps", "hello", where, "default")
        return answer

    operator.wire.inner.request = request
    stage.make()
    stage.ready()
    stage.pass_time(700, step=5)

    applies = operator.writes(resource="deployments")
    assert len(applies) == 1
    assert len(operator.writes(resource="webapps")) <= 5


def test_a_status_whose_fields_the_server_drops_is_not_written_for_ever(
    make_stage: Callable[..., Any],
) -> None:
    """nolar/kopf#686: an endless patch when the server drops the written field."""
    stage = make_stage()
    crd = WebApp.crd()
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    for dropped in ("conditions", "phase"):
        del schema["properties"][dropped]
    crd["spec"]["versions"][0]["additionalPrinterColumns"] = []
    stage.sandbox.apply(crd)
    operator = stage.operate()
    stage.make()
    stage.until(lambda: stage.app().get("status", {}).get("ready"), what="what the server does keep")
    stage.pass_time(1)
    mark = stage.sandbox.log.mark()
    for number in range(10):
        stage.touch(number)
        stage.pass_time(60, step=2)
    assert operator.writes(mark) == []
    operator.stop()

    again = stage.operate(name="restarted")
    stage.pass_time(700, step=5)
    assert again.writes() == []


def test_the_fault_of_the_server_does_not_become_a_loop_of_errors(stage: Any) -> None:
    """kubernetes/kubernetes#112325: the same for an object that can never work: it is not tried forever."""
    operator = stage.operate()
    with stage.sandbox.faults.add(verb="patch", resource="deployments", status=422, message="no"):
        stage.make()
        stage.pass_time(1200, step=2)
        attempts = len(operator.wire.of("patch", "deployments"))
        assert 2 <= attempts <= 6, "a 422 is asked again at the pace of a resync"
    stage.sandbox.patch("webapps.example.com", "hello", {"spec": {"replicas": 1}}, "default")
    stage.until(lambda: stage.phase() == "Ready", within=6)
    assert isinstance(operator.outcomes[0][1].error, ApiError)
    assert Deployment in operator.manager.informers
