"""Behaviour 15: metrics and probes."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kubeloop.controller import Context, Controller, Result
from kubeloop.manager.checks import liveness, readiness
from kubeloop.manager.health import Health
from kubeloop.manager.http import HttpServer, Reply, Routes
from webapp_operator.types import WebApp

ZERO = """
workqueue_depth{controller="webapp",name="webapp",priority="0"}
workqueue_adds_total{controller="webapp",name="webapp"}
workqueue_queue_duration_seconds_count{controller="webapp",name="webapp"}
workqueue_work_duration_seconds_count{controller="webapp",name="webapp"}
workqueue_unfinished_work_seconds{controller="webapp",name="webapp"}
workqueue_longest_running_processor_seconds{controller="webapp",name="webapp"}
workqueue_retries_total{controller="webapp",name="webapp"}
controller_runtime_reconcile_total{controller="webapp",result="success"}
controller_runtime_reconcile_total{controller="webapp",result="error"}
controller_runtime_reconcile_total{controller="webapp",result="requeue"}
controller_runtime_reconcile_total{controller="webapp",result="requeue_after"}
controller_runtime_reconcile_errors_total{controller="webapp"}
controller_runtime_terminal_reconcile_errors_total{controller="webapp"}
controller_runtime_reconcile_panics_total{controller="webapp"}
controller_runtime_reconcile_timeouts_total{controller="webapp"}
controller_runtime_reconcile_time_seconds_count{controller="webapp"}
controller_runtime_active_workers{controller="webapp"}
leader_election_master_status{name="operator"}
leader_election_slowpath_total{name="operator"}
"""
RECONCILE = ".005 .01 .025 .05 .1 .15 .2 .25 .3 .35 .4 .45 .5 .6 .7 .8 .9 1 1.25 1.5 1.75 2 2.5 3 3.5 4 4.5 5"
RECONCILE_SECONDS = [*map(float, RECONCILE.split()), 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60]


def values(page: str) -> dict[str, float]:
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in page.splitlines()
        if line and not line.startswith("#")
    }


def buckets(page: str, name: str) -> list[float]:
    (family,) = [f for f in text_string_to_metric_families(page) if f.name == name]
    return [float(s.labels["le"]) for s in family.samples if s.name.endswith("_bucket")][:-1]


def test_every_series_is_there_with_zero_before_anything_happens(stage: Any) -> None:
    """Behaviour 15: exact names, labels and buckets of client-go and controller-runtime, all from zero on."""
    stage.sandbox.faults.add(user_agent="operator", refuse=True)
    operator = stage.operate(elect=True)
    page = operator.metrics()
    found = values(page)

    assert {name: found.get(name) for name in ZERO.split()} == dict.fromkeys(ZERO.split(), 0.0)
    assert found['controller_runtime_max_concurrent_reconciles{controller="webapp"}'] == 2
    assert buckets(page, "controller_runtime_reconcile_time_seconds") == RECONCILE_SECONDS
    for name in ("workqueue_queue_duration_seconds", "workqueue_work_duration_seconds"):
        assert buckets(page, name) == [pytest.approx(10.0**power) for power in range(-8, 4)]


def test_depth_follows_priorities_and_ends_with_the_queue(stage: Any) -> None:
    """Behaviour 15: the depth is right after a change of priority and after the shutdown."""
    gate = threading.Event()

    def reconcile(_app: WebApp, _ctx: Context[WebApp]) -> Result:
        gate.wait(30)
        return Result()

    for number in range(6):
        stage.make(f"app{number}")
    operator = stage.operate(Controller(WebApp, reconcile, field_manager="test"), workers=1)

    def depths() -> dict[str, float]:
        name = 'workqueue_depth{controller="webapp",name="webapp",priority="%s"}'
        found = values(operator.metrics())
        return {priority: found[name % priority] for priority in ("0", "-100")}

    assert depths() == {"0": 0, "-100": 5}
    for number in range(1, 4):
        stage.touch(1, f"app{number}")
    stage.settle()
    # One of those that were touched may be the one that is being reconciled, and waits for that to end.
    assert depths() in ({"0": 3, "-100": 2}, {"0": 2, "-100": 3})
    operator.stop_event.set()
    stage.settle()
    assert depths() == {"0": 0, "-100": 0}
    gate.set()
    stage.settle()
    assert depths() == {"0": 0, "-100": 0}


def test_requests_are_counted_by_host_without_any_path(stage: Any) -> None:
    """Behaviour 15: rest_client_requests_total has code, method and host, and never a path."""
    operator = stage.operate()
    with stage.sandbox.faults.add(user_agent="operator", verb="patch", reset=True, count=1):
        stage.make()
        stage.ready()
    names = [name for name in values(operator.metrics()) if name.startswith("rest_client_requests_total")]

    labels = {tuple(sorted(json.loads(_as_json(name)))) for name in names}
    assert labels == {("code", "host", "method")}
    assert all('host="api.test"' in name and "/" not in name for name in names)
    assert any('code="<error>"' in name for name in names)
    assert any('code="201"' in name for name in names)


def _as_json(name: str) -> str:
    inside = name[name.index("{") + 1 : -1]
    pairs = [each.split("=", 1) for each in inside.split(",")]
    return json.dumps({key: value.strip('"') for key, value in pairs})


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def look(operator: Any, *paths: str) -> list[tuple[int, str]]:
    """What the endpoints of an operator say at these paths."""
    manager, telemetry = operator.manager, operator.telemetry
    routes = Health("/healthz", liveness(manager)).routes()
    routes.add(Health("/readyz", readiness(manager)).routes())
    routes.add(Routes({"/metrics": lambda _: Reply(*telemetry.set.render())}))
    server = HttpServer("test", ("127.0.0.1", 0), routes)
    server.start()
    try:
        return [get(server.port, path) for path in paths]
    finally:
        server.stop()
        assert server.join(5)


def test_probes_and_metrics_are_up_before_the_caches_and_on_standbys(stage: Any) -> None:
    """Behaviour 15: metrics are served by non-leaders too, and the probes are up before the caches sync."""
    leader = stage.operate(name="leader", elect=True)
    stage.until(lambda: leader.leads)
    fault = stage.sandbox.faults.add(user_agent="standby", resource="webapps", refuse=True)
    standby = stage.operate(name="standby", elect=True)
    alive, ready, why, metrics = look(standby, "/healthz", "/readyz", "/readyz?verbose", "/metrics")
    assert alive == (200, "ok")
    assert ready[0] == 500
    assert "webapps" in why[1]
    assert metrics[0] == 200
    assert values(metrics[1])['leader_election_master_status{name="operator"}'] == 0
    assert values(metrics[1])['kubeloop_informer_synced{resource="webapps.example.com"}'] == 0
    fault.remove()
    stage.until(lambda: standby.synced, within=35)

    assert look(standby, "/readyz") == [(200, "ok")]
    assert not standby.leads
    assert values(leader.metrics())['leader_election_master_status{name="operator"}'] == 1
