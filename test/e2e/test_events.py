"""Events as people see them: with `kubectl describe` and `kubectl events`, and what they cost (D7)."""

from __future__ import annotations

import copy
import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubeloop.observe.events import BURST

ROOT = Path(__file__).resolve().parents[2]
ROLE = ROOT / "config" / "rbac" / "operator_role.yaml"


def webapp(name: str = "hello", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "WebApp",
        "metadata": {"name": name},
        "spec": {"image": "nginx:1.27", "replicas": 1, **spec},
    }


def strangers_deployment(name: str) -> dict[str, Any]:
    labels = {"app": "strangers"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "nginx"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod},
    }


class Told:
    """What happens in the test's namespace, and what the operator tells about it."""

    def __init__(self, cluster: Any, operator: Any) -> None:
        self.cluster = cluster
        self.operator = operator

    def kubectl(self, *args: str) -> str:
        return str(self.cluster.kubectl("-n", self.cluster.namespace, *args).stdout)

    def events(self, reason: str, name: str = "hello") -> list[dict[str, Any]]:
        """The Events about a WebApp, oldest first."""
        items = json.loads(self.kubectl("get", "events.events.k8s.io", "-o", "json"))["items"]
        found = [e for e in items if e["reason"] == reason and e["regarding"].get("name") == name]
        return sorted(found, key=lambda event: str(event["eventTime"]))

    def wait_for(self, reason: str, name: str = "hello", count: int = 1) -> list[dict[str, Any]]:
        """The Events with this reason, once there are so many."""
        self.cluster.wait(lambda: len(self.events(reason, name)) >= count, 30, f"{count} Events: {reason}")
        return self.events(reason, name)

    def replicas(self, name: str = "hello") -> int | None:
        deployment = self.cluster.get("deployment", name, self.cluster.namespace)
        return None if deployment is None else int(deployment["spec"]["replicas"])

    def meddle(self, name: str = "hello") -> None:
        """Somebody scales the Deployment; wait until that is repaired."""
        self.kubectl("scale", f"deployment/{name}", "--replicas=0")
        self.cluster.wait(lambda: self.replicas(name) == 1, 20, "the repair")

    def reconciled(self, name: str = "hello") -> bool:
        """Whether the status is about the current spec."""
        app = self.cluster.get("webapp", name, self.cluster.namespace) or {}
        generation = app.get("metadata", {}).get("generation")
        return generation is not None and app.get("status", {}).get("observedGeneration") == generation


@pytest.fixture
def told(cluster: Any, start_operator: Callable[..., Any]) -> Told:
    return Told(cluster, start_operator("--metrics-bind-address=127.0.0.1:0"))


def test_a_repair_is_told_and_the_same_again_is_a_series(told: Told) -> None:
    told.cluster.apply(webapp())
    told.cluster.wait(lambda: told.replicas() == 1, 20, "the Deployment")
    told.meddle()
    (event,) = told.wait_for("Repaired")
    app = told.cluster.get("webapp", "hello", told.cluster.namespace)

    assert event["regarding"] == {
        "apiVersion": "example.com/v1",
        "kind": "WebApp",
        "namespace": told.cluster.namespace,
        "name": "hello",
        "uid": app["metadata"]["uid"],
    }
    assert (event["type"], event["action"], event["note"]) == ("Normal", "Apply", "Repaired Deployment hello")
    assert event["reportingController"] == "example.com/webapp-operator"
    assert event["reportingInstance"]
    assert "series" not in event

    for _ in range(3):
        told.meddle()
    told.cluster.wait(lambda: told.events("Repaired")[0].get("series", {}).get("count") == 4, 20, "a series")
    assert len(told.events("Repaired")) == 1
    line = next(
        each for each in told.kubectl("describe", "webapp", "hello").splitlines() if "Repaired" in each
    )
    assert re.fullmatch(
        r" *Normal +Repaired +\S+ \(x4 over \S+\) +example.com/webapp-operator +Repaired Deployment hello",
        line,
    )
    assert "Repaired Deployment hello" in told.kubectl("events", "--for=webapp/hello")


def test_a_trouble_is_a_warning_and_being_well_is_no_news(told: Told) -> None:
    told.cluster.apply([strangers_deployment("taken"), webapp("taken"), webapp("fine")])
    (event,) = told.wait_for("Conflict", "taken")
    told.cluster.wait(lambda: told.reconciled("fine"), 20, "the other one")

    assert event["type"] == "Warning"
    app = told.cluster.get("webapp", "taken", told.cluster.namespace)
    conditions = {each["type"]: each for each in app["status"]["conditions"]}
    # The same words in both places.
    assert (event["reason"], event["note"]) == (conditions["Ready"]["reason"], conditions["Ready"]["message"])
    assert "Warning" in told.kubectl("describe", "webapp", "taken")
    assert "No events found" in told.cluster.kubectl(
        "-n", told.cluster.namespace, "events", "--for=webapp/fine"
    ).stderr + told.kubectl("describe", "webapp", "fine").replace("Events:  <none>", "No events found")


def test_one_object_costs_a_bounded_number_of_events_whatever_happens_to_it(told: Told) -> None:
    """kubernetes#47366: trouble whose text is another one each time; it leaves room for others."""
    changes = BURST + 10
    mark = told.cluster.mark()
    for n in range(changes):
        told.cluster.apply(webapp(env=[{"name": f"={n}", "value": "x"}]))
        told.cluster.wait(told.reconciled, 20, "the next trouble")
    told.cluster.apply(webapp("other", env=[{"name": "=", "value": "x"}]))
    told.wait_for("InvalidSpec", "other")

    events = told.events("InvalidSpec")
    assert len({event["note"] for event in events}) == len(events)
    # One of `other`, and perhaps one more token in this time.
    written = [write for write in told.cluster.all_writes(mark, "operator") if write[1] == "events"]
    assert len(events) < len(written) <= BURST + 2


class TestWithoutTheRight:
    @pytest.fixture
    def no_right(self, cluster: Any) -> Iterator[Callable[[], None]]:
        """The role of config/rbac without its rule for Events; call it to give the right back."""
        role = next(each for each in yaml.safe_load_all(ROLE.read_text()) if each["kind"] == "ClusterRole")
        stripped = copy.deepcopy(role)
        stripped["rules"] = [rule for rule in role["rules"] if "events" not in rule["resources"]]

        def replace(wanted: dict[str, Any]) -> None:
            cluster.kubectl("replace", "-f", "-", input=json.dumps(wanted))

        replace(stripped)
        yield lambda: replace(role)
        replace(role)

    def test_work_goes_on_the_log_says_so_once_and_the_metrics_count(
        self, no_right: Callable[[], None], told: Told
    ) -> None:
        told.cluster.apply(webapp())
        told.cluster.wait(lambda: told.replicas() == 1, 20, "the Deployment")
        for _ in range(3):
            told.meddle()
        told.cluster.wait(lambda: failed(told.operator) >= 3, 20, "the refusals to be counted")

        (line,) = told.operator.lines("events cannot be written, going on without")
        assert line["severity"] == "WARNING"
        assert "Forbidden" in line["error"]
        assert told.operator.lines("reconcile error") == []
        assert told.reconciled()
        assert told.events("Repaired") == []
        no_right()

        def well_again() -> bool:
            told.meddle()
            return bool(told.events("Repaired"))

        told.cluster.wait(well_again, 20, "Events, now that they are allowed")


def failed(operator: Any) -> float:
    """How many Events the operator could not write, by its metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{operator.port('metrics')}/metrics", timeout=5) as answer:
        page = answer.read().decode()
    found = re.search(r'^kubeloop_events_total\{outcome="failed"\} (\S+)$', page, re.MULTILINE)
    assert found is not None
    return float(found[1])
