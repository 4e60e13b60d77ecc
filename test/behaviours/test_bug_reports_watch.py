"""Reports 1 to 5: watches, lists and the cache."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from typing import Any

import pytest

from kubeloop.cache import Event, Informer
from kubeloop.client import Client
from kubeloop.model import DynamicObject, Resource
from kubeloop.sandbox.access import Attributes

MAPS = Resource("", "v1", "configmaps", "ConfigMap")
CONTROLLED = ("webapps", "deployments", "services")


def config_map(name: str, number: int = 0) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"number": str(number)},
    }


@pytest.mark.parametrize("streaming", [True, False], ids=["streaming list", "list"])
@pytest.mark.parametrize("cut", ["end_after", "reset_after"])
def test_a_watch_is_never_resumed_from_a_listed_item(
    stage: Any, make_wire: Any, streaming: bool, cut: str
) -> None:
    """kubernetes-client/python#819: events of last month are replayed after a reconnect.

    The list's last item is the oldest, a deleted object is what a replay would show, and the first watches
    are cut before they say anything.
    """
    sandbox = stage.sandbox
    for name in ("z", "gone", "m", "a"):
        sandbox.create(config_map(name))
    sandbox.delete("configmaps", "gone", "default")
    for number in range(5):
        sandbox.patch("configmaps", "a", config_map("a", number), "default")
    listed = sandbox.backend.store.revision
    # A streaming list is the first watch: spared, until it is done.
    fault = sandbox.faults.add(verb="watch", resource="configmaps", after=int(streaming), count=2, **{cut: 0})
    wire = make_wire()
    informer = Informer[DynamicObject](
        Client(wire, clock=stage.clock), MAPS, clock=stage.clock, streaming=streaming
    )
    seen: list[str] = []

    def note(event: Event[DynamicObject], _initial: bool) -> None:
        seen.append(f"{type(event).__name__} {event.object.name}")

    informer.add_handler(note)
    informer.start()
    try:
        stage.until(lambda: informer.has_synced)
        if streaming:
            stage.cut("configmaps")
        stage.until(lambda: fault.fired == 2)
        stage.pass_time(90)

        resumed = [s for s in wire.of("watch") if "sendInitialEvents" not in s.query]
        assert len(resumed) >= 3
        assert all(int(s.query["resourceVersion"]) >= listed for s in resumed)
        assert seen == ["Added a", "Added m", "Added z"]
        assert informer.lists == 1

        # From then on the newest event or bookmark counts, also while others' objects change.
        sandbox.patch("configmaps", "m", config_map("m", 7), "default")
        for number in range(20):
            stage.make(f"noise{number}")
        stage.pass_time(61)  # a bookmark
        newest = sandbox.backend.store.revision
        stage.cut("configmaps")
        stage.pass_time(1)
        assert int(wire.of("watch")[-1].query["resourceVersion"]) == newest
        assert seen[3:] == ["Modified m"]
    finally:
        informer.stop()
        assert informer.join(5)


TEXTS = [
    "蓝鲸 🐋 – schön",
    "👩‍👩‍👧‍👦 ｆａｍｉｌｙ",
    "line\u2028separator\u0085 \ufeff \U0010ffff",
    "日本語" * 400,
]


@pytest.mark.parametrize("pieces", [1, 3, 4096])
@pytest.mark.parametrize("verb", ["watch", "list"])
def test_text_reaches_the_child_unchanged_however_it_is_cut(stage: Any, verb: str, pieces: int) -> None:
    """kubernetes-client/python#2087: characters were decoded chunk by chunk, and the watch thread died.

    The first apply must be right: later ones may be made from the answers of own writes.
    """
    stage.sandbox.faults.add(verb=verb, pieces=pieces)
    spec = {"env": [{"name": f"T{n}", "value": text} for n, text in enumerate(TEXTS)]}
    if verb == "list":  # what is there at the start comes by lists, if streaming ones are refused
        stage.sandbox.faults.add(verb="watch", status=422, count=len(CONTROLLED))
        stage.make(**spec)
        finalizers = {"metadata": {"finalizers": ["webapp.example.com/cleanup"]}}
        stage.sandbox.patch("webapps.example.com", "hello", finalizers, "default")
        mark = 0
    operator = stage.operate()
    if verb == "watch":
        stage.make()
        stage.ready()
        mark = stage.sandbox.log.mark()
        stage.sandbox.patch("webapps.example.com", "hello", {"spec": spec}, "default")

    def environment() -> list[str]:
        template = stage.deployment().get("spec", {}).get("template")
        containers = template["spec"]["containers"] if template else [{}]
        return [each["value"] for each in containers[0].get("env", ())]

    stage.until(lambda: environment() == TEXTS)
    stage.pass_time(1)
    assert len(operator.writes(mark, resource="deployments")) == 1
    assert operator.unwell() == ""


def test_an_outage_costs_few_requests_and_is_over_within_one_backoff(stage: Any) -> None:
    """kube-rs/kube#577: a request storm while the API server is down.

    Refused for a minute, then 503 for a minute. The backoff is client-go's 0.8 to 30 s, jittered.
    """
    operator = stage.operate()
    stage.make("before")
    stage.ready("before")
    began, faults = stage.time, stage.sandbox.faults
    refused = faults.add(user_agent="operator", refuse=True)
    stage.cut(*CONTROLLED)
    stage.pass_time(60)
    stage.make("during")
    refused.remove()
    unavailable = faults.add(user_agent="operator", status=503)
    stage.pass_time(60)
    attempts = {
        plural: [s.at - began for s in operator.wire.sent if s.plural == plural and s.at >= began]
        for plural in CONTROLLED
    }
    unavailable.remove()
    stage.until(lambda: stage.deployment("during"), within=30.5, what="to be caught up")

    for plural, times in attempts.items():
        assert 5 <= len(times) <= 14, (plural, times)
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert max(gaps) > 10
    assert len({tuple(times[1:6]) for times in attempts.values()}) == 3, "in step: there is no jitter"
    assert operator.unwell() == ""
    assert operator.thread.is_alive()


@pytest.mark.parametrize("denied", [("watch",), ("list", "watch")], ids=["watch", "list and watch"])
def test_a_forbidden_namespace_is_told_and_the_others_work(
    make_stage: Callable[..., Any], caplog: pytest.LogCaptureFixture, denied: tuple[str, ...]
) -> None:
    """kube-rs/kube#1132: looks alive but reacts only when it lists anew; nolar/kopf#1153."""

    def may(asked: Attributes) -> bool:
        return not (asked.resource == "deployments" and asked.namespace == "dark" and asked.verb in denied)

    stage = make_stage(authorizer=may)
    namespaces = ("one", "dark", "two")
    for name in namespaces:
        stage.sandbox.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    caplog.set_level(logging.INFO, "kubeloop")
    for name in namespaces:
        stage.make("early", name)
    operator = stage.operate(namespaces=namespaces)
    for name in namespaces:
        stage.make("late", name)
    stage.pass_time(120)

    apps = [(app, name) for app in ("early", "late") for name in ("one", "two")]
    assert {stage.phase(*each) for each in apps} == {"Ready"}
    stage.sandbox.delete("deployments.apps", "early", "two")
    stage.until(lambda: stage.deployment("early", "two"), within=2, what="to be healed")
    assert operator.writes(namespace="dark") == [], "what is missing in there is not known"
    informer = next(i for i in operator.manager.informers.values() if i.kind_name == "Deployment")
    states = {scope.namespace: scope for scope in informer.scopes}
    assert (states["one"].error, states["two"].error) == (None, None)
    assert "Deployment" in operator.unready()
    assert "deployments.apps in dark: 403" in operator.unready()
    assert "watch" in operator.unready() or "list" in denied
    warnings = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert len(warnings) == 1
    told: Any = warnings[0]
    assert (told.fields["ns"], told.fields["resource"]) == ("dark", "deployments.apps")
    assert any(verb in told.fields["error"] for verb in denied)
    assert "permission" in told.getMessage()
    refused = [e for e in operator.entries(resource="deployments", namespace="dark") if e.status == 403]
    assert 5 < len(refused) < 120 / 2.5 + 20

    stage.sandbox.access.authorizer = None
    stage.until(lambda: all(stage.phase(app, "dark") == "Ready" for app in ("early", "late")), within=10)
    assert operator.unready() == ""


@pytest.mark.parametrize("where", ["at the start", "in between"])
def test_a_429_storm_is_waited_out_as_the_server_asks(stage: Any, where: str) -> None:
    """nolar/kopf#962: after HTTP 429 a resource is not watched any more, by an operator that seems to run."""

    def storm() -> list[Any]:
        rule = {"verb": ("list", "watch"), "status": 429, "retry_after": 2, "count": 20}
        return [stage.sandbox.faults.add(resource=plural, **rule) for plural in CONTROLLED]

    if where == "at the start":
        faults = storm()
        operator = stage.operate()
    else:
        operator = stage.operate()
        stage.pass_time(5)
        faults = storm()
        stage.cut(*CONTROLLED)
    began = stage.time
    stage.pass_time(5)
    stage.make()
    stage.until(lambda: all(fault.fired == 20 for fault in faults), within=20 * 35, step=0.5)
    stage.until(lambda: stage.phase() == "Ready", within=35, step=0.5)

    for plural in CONTROLLED:
        times = [s.at for s in operator.wire.sent if s.plural == plural and s.verb in ("list", "watch")]
        gaps = [b - a for a, b in itertools.pairwise(t for t in times if t >= began)]
        assert min(gaps[:19]) >= 2
    assert operator.unready() == ""
