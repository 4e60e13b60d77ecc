"""Names, labels and buckets of controller-runtime and client-go; closed sets of labels (go-anchors 4.5)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kubeloop.client import Client, RequestInfo
from kubeloop.controller import Change, End, Outcome, TerminalError, Verb
from kubeloop.manager import Manager
from kubeloop.manager.telemetry import QUEUE_SECONDS, RECONCILE_SECONDS, Telemetry
from kubeloop.sandbox import Sandbox
from webapp_operator.reconcile import webapp_controller

HOST = "10.0.0.1:443"


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry(host=HOST, lease="webapp-operator")


@pytest.fixture
def manager(telemetry: Telemetry) -> Iterator[Manager]:
    with Sandbox() as sandbox:
        made = Manager(Client(sandbox.transport()), telemetry=telemetry, workers=3)
        made.add(webapp_controller())
        yield made


def text(telemetry: Telemetry) -> str:
    return telemetry.set.render()[0].decode()


def series(telemetry: Telemetry) -> dict[str, float]:
    return {
        sample.name + str(sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text(telemetry))
        for sample in family.samples
    }


EXPECTED = {
    "workqueue_depth": {"name", "controller", "priority"},
    "workqueue_adds_total": {"name", "controller"},
    "workqueue_queue_duration_seconds_bucket": {"name", "controller", "le"},
    "workqueue_work_duration_seconds_bucket": {"name", "controller", "le"},
    "workqueue_unfinished_work_seconds": {"name", "controller"},
    "workqueue_longest_running_processor_seconds": {"name", "controller"},
    "workqueue_retries_total": {"name", "controller"},
    "controller_runtime_reconcile_total": {"controller", "result"},
    "controller_runtime_reconcile_errors_total": {"controller"},
    "controller_runtime_terminal_reconcile_errors_total": {"controller"},
    "controller_runtime_reconcile_panics_total": {"controller"},
    "controller_runtime_reconcile_timeouts_total": {"controller"},
    "controller_runtime_reconcile_time_seconds_bucket": {"controller", "le"},
    "controller_runtime_max_concurrent_reconciles": {"controller"},
    "controller_runtime_active_workers": {"controller"},
    "rest_client_requests_total": {"code", "method", "host"},
    "leader_election_master_status": {"name"},
    "leader_election_slowpath_total": {"name"},
}


@pytest.mark.usefixtures("manager")
def test_every_series_of_the_go_anchors_is_there_before_anything_happens(telemetry: Telemetry) -> None:
    labels: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text(telemetry)):
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)

    assert {name: labels.get(name) for name in EXPECTED} == EXPECTED
    found = series(telemetry)
    for result in ("success", "error", "requeue", "requeue_after"):
        name = f"controller_runtime_reconcile_total[('controller', 'webapp'), ('result', '{result}')]"
        assert found[name] == 0


def test_buckets_are_those_of_the_anchors() -> None:
    assert (len(RECONCILE_SECONDS), RECONCILE_SECONDS[0], RECONCILE_SECONDS[-1]) == (40, 0.005, 60)
    assert list(RECONCILE_SECONDS) == sorted(set(RECONCILE_SECONDS))
    assert len(QUEUE_SECONDS) == 12
    assert QUEUE_SECONDS[0] == 1e-8
    assert QUEUE_SECONDS[-1] == pytest.approx(1e3)


@pytest.mark.usefixtures("manager")
def test_the_text_follows_the_rules_that_promtool_checks(telemetry: Telemetry) -> None:
    """`promtool check metrics`: help, suffixes by type, base units, no camel case."""
    for family in text_string_to_metric_families(text(telemetry)):
        names = {sample.name for sample in family.samples}
        assert family.documentation, family.name
        assert re.fullmatch(r"[a-z][a-z0-9_]*", family.name)
        assert all(name.endswith("_total") for name in names) == (family.type == "counter"), family.name
        assert family.type in ("counter", "gauge", "histogram")
        assert not re.search(r"_(counter|gauge|histogram|summary)$", family.name)
        assert not re.search(r"_(milliseconds|minutes|hours|kilobytes|megabytes)", family.name)
        if family.type != "histogram":
            assert not any(name.endswith(("_bucket", "_count", "_sum")) for name in names), family.name
            assert not any("le" in sample.labels for sample in family.samples)
        for sample in family.samples:
            assert all(re.fullmatch(r"[a-z_]+", label) for label in sample.labels)


def outcome(end: End = End.DONE, **more: object) -> Outcome:
    return Outcome(end, **more)  # type: ignore[arg-type]


@pytest.mark.usefixtures("manager")
@pytest.mark.parametrize(
    ("what", "result"),
    [
        pytest.param(outcome(), "success", id="done"),
        pytest.param(outcome(requeue_after=timedelta(300)), "requeue_after", id="look again later"),
        pytest.param(outcome(again=True), "requeue", id="overtaken"),
        pytest.param(outcome(End.GONE), "success", id="gone"),
        pytest.param(outcome(End.FAILED, error=OSError("x")), "error", id="failed"),
        pytest.param(outcome(End.TERMINAL, error=TerminalError("x")), "error", id="terminal"),
    ],
)
def test_outcomes_are_counted_by_result(telemetry: Telemetry, what: Outcome, result: str) -> None:
    telemetry.reconcile_meter("webapp").count("default/hello", what)

    assert telemetry.reconciles.value("webapp", result) == 1
    assert telemetry.errors.value("webapp") == (result == "error")
    assert telemetry.terminal_errors.value("webapp") == (what.end is End.TERMINAL)
    assert telemetry.panics.value("webapp") == 0


def test_an_exception_of_a_bug_is_a_panic(telemetry: Telemetry) -> None:
    telemetry.reconcile_meter("webapp").count("k", outcome(End.FAILED, error=TypeError("x")))

    assert (telemetry.panics.value("webapp"), telemetry.errors.value("webapp")) == (1, 1)


def test_writes_are_told_from_what_was_spared_and_repairs_from_the_rest(telemetry: Telemetry) -> None:
    meter = telemetry.reconcile_meter("webapp")
    made = [
        Change(Verb.CREATED, "Deployment", "default/hello"),
        Change(Verb.CHANGED, "Deployment", "default/hello", repair=True),
        Change(Verb.CHANGED, "WebApp", "default/hello", "status"),
    ]
    meter.count("default/hello", outcome(changes=made, spared=2))

    assert telemetry.writes.value("webapp", "Deployment", "", "created") == 1
    assert telemetry.writes.value("webapp", "WebApp", "status", "changed") == 1
    assert telemetry.repairs.value("webapp", "Deployment") == 1
    assert telemetry.spared.value("webapp") == 2


def test_requests_are_counted_without_their_path(telemetry: Telemetry) -> None:
    """controller-runtime#1423."""
    telemetry.requested(RequestInfo("PATCH", 409, 0.1))
    telemetry.requested(RequestInfo("GET", 0, 0.1))
    found = series(telemetry)

    for code, method in (("409", "PATCH"), ("<error>", "GET")):
        labels = f"[('code', '{code}'), ('host', '{HOST}'), ('method', '{method}')]"
        assert found[f"rest_client_requests_total{labels}"] == 1


def test_objects_come_and_go_and_the_series_stay_the_same(telemetry: Telemetry, manager: Manager) -> None:
    """controller-runtime#1423: no object's name is in /metrics, and the number of series is constant."""
    before = series(telemetry).keys()
    meter = telemetry.reconcile_meter("webapp")
    queue = manager.controllers[0].queue
    for n in range(300):
        key = f"ns-{n % 20}/very-special-{n}"
        queue.add(key, priority=-100 if n % 2 else 0)
        queue.get(timeout=0)
        meter.count(key, outcome(changes=[Change(Verb.CREATED, "Deployment", key)]))
        queue.done(key)

    assert series(telemetry).keys() == before
    assert "very-special" not in text(telemetry)


def test_a_queue_is_measured_when_somebody_looks(telemetry: Telemetry, manager: Manager) -> None:
    queue = manager.controllers[0].queue
    queue.add("default/a")
    queue.add("default/b", priority=-100)
    depth = "workqueue_depth[('controller', 'webapp'), ('name', 'webapp'), ('priority', '{}')]"
    found = series(telemetry)
    assert (found[depth.format(0)], found[depth.format(-100)]) == (1, 1)
    queue.shut_down()
    found = series(telemetry)

    assert (found[depth.format(0)], found[depth.format(-100)]) == (0, 0)
    assert found["controller_runtime_max_concurrent_reconciles[('controller', 'webapp')]"] == 3


def test_without_an_election_there_are_no_series_of_one() -> None:
    assert "leader_election" not in text(Telemetry())


def test_the_leader_gauge_follows_the_election(telemetry: Telemetry) -> None:
    name = "leader_election_master_status[('name', 'webapp-operator')]"
    values = []
    for leads in (True, False):
        telemetry.leading(leads)
        values.append(series(telemetry)[name])
    telemetry.slow_path()
    telemetry.new_leader("another-pod")

    assert values == [1, 0]
    assert series(telemetry)["leader_election_slowpath_total[('name', 'webapp-operator')]"] == 1
    assert "another-pod" not in text(telemetry)
