"""The operator's process, seen from outside: replicas, signals, probes, metrics.

Times are short, so that failures show within seconds: a lease of three.
"""

from __future__ import annotations

import json
import re
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD = 6, 4, 0.5
LOST_LEASE_EXIT = 3
LISTEN = ("--health-bind-address=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0")


def webapp(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "WebApp",
        "metadata": {"name": name},
        "spec": {"image": "nginx:1.27", "replicas": 1},
    }


def get(port: int, path: str) -> tuple[int, str]:
    """Status and text of a page; 0 while nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


class Replicas:
    """Operators that elect a leader in the test's namespace."""

    def __init__(self, cluster: Any, start_operator: Callable[..., Any]) -> None:
        self.cluster = cluster
        self._start = start_operator
        cluster.allow_election()
        # As a stopped leader leaves it: nobody has to wait for anything.
        released = {
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "leaseTransitions": 1,
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": "2026-01-01T00:00:00.000000Z",
        }
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": released}
        cluster.apply({**lease, "metadata": {"name": "webapp-operator"}})

    def start(self) -> Any:
        return self._start(
            "--leader-elect",
            f"--lease-namespace={self.cluster.namespace}",
            f"--lease-duration={LEASE_DURATION}",
            f"--renew-deadline={RENEW_DEADLINE}",
            f"--retry-period={RETRY_PERIOD}",
            *LISTEN,
        )

    def pair(self) -> tuple[Any, Any]:
        """A leader and a warm standby."""
        both = self.start(), self.start()
        self.cluster.wait(lambda: all(r.lines("caches synced") for r in both), 20, "both to be warm")
        self.cluster.wait(lambda: any(map(leads, both)), 20, "one to lead")
        leader, standby = sorted(both, key=leads, reverse=True)
        return leader, standby

    def holder(self) -> str:
        lease = self.cluster.get("lease", "webapp-operator", self.cluster.namespace) or {"spec": {}}
        return str(lease["spec"].get("holderIdentity") or "")

    def make(self, name: str) -> None:
        """A WebApp, and wait for its Deployment."""
        ns = self.cluster.namespace
        self.cluster.apply(webapp(name))
        self.cluster.wait(lambda: self.cluster.get("deployment", name, ns), 15, f"Deployment {name}")

    def reconciled(self, replica: Any) -> set[str]:
        return {line["name"] for line in replica.lines("reconciled WebApp")}


def leads(replica: Any) -> bool:
    return bool(replica.lines("became leader"))


@pytest.fixture
def replicas(cluster: Any, start_operator: Callable[..., Any]) -> Replicas:
    return Replicas(cluster, start_operator)


class TestElection:
    def test_a_stop_hands_over_before_the_lease_is_over(self, replicas: Replicas) -> None:
        """About a tenth of a second on an idle machine; here only what no waited-out lease could do."""
        leader, standby = replicas.pair()
        replicas.make("one")
        assert replicas.reconciled(standby) == set()
        leader.child.terminate()
        assert leader.child.wait(10) == 0
        left = time.monotonic()
        replicas.cluster.wait(lambda: leads(standby), 5, "the standby to lead")

        assert time.monotonic() - left < LEASE_DURATION
        replicas.make("two")
        assert replicas.reconciled(standby) >= {"two"}

    def test_a_killed_leader_is_replaced_when_its_lease_is_over(self, replicas: Replicas) -> None:
        leader, standby = replicas.pair()
        replicas.make("one")
        leader.child.kill()
        leader.child.wait()
        killed = time.monotonic()
        replicas.cluster.wait(lambda: leads(standby), 20, "the standby to lead")

        assert time.monotonic() - killed < LEASE_DURATION + RETRY_PERIOD + 2
        replicas.make("two")

    def test_a_suspended_leader_writes_nothing_when_it_wakes_up(self, replicas: Replicas) -> None:
        """SIGSTOP, SIGCONT: the deadline is judged by the clock at the moment of writing."""
        cluster = replicas.cluster
        leader, standby = replicas.pair()
        replicas.make("one")
        leader.child.send_signal(signal.SIGSTOP)
        try:
            cluster.wait(lambda: leads(standby), 20, "the standby to lead")
            replicas.make("two")
            cluster.wait(lambda: "two" in replicas.reconciled(standby), 10, "the new leader's work")
        finally:
            leader.child.send_signal(signal.SIGCONT)

        assert leader.child.wait(10) == LOST_LEASE_EXIT
        assert replicas.reconciled(leader) == {"one"}
        assert replicas.holder() == standby.lines("became leader")[0]["identity"]

    def test_a_stolen_lease_ends_the_process(self, replicas: Replicas) -> None:
        """Behaviour 13, kubernetes-client/python#1914: it must not go on beside its successor."""
        leader = replicas.start()
        replicas.cluster.wait(lambda: leads(leader), 15, "the replica to lead")
        replicas.cluster.kubectl(
            "patch",
            "lease",
            "webapp-operator",
            f"--namespace={replicas.cluster.namespace}",
            "--type=merge",
            "--patch",
            json.dumps({"spec": {"holderIdentity": "thief"}}),
        )

        assert leader.child.wait(RENEW_DEADLINE + 5) == LOST_LEASE_EXIT
        assert replicas.holder() == "thief"

    def test_a_standby_answers_its_probes_and_is_measured(self, replicas: Replicas) -> None:
        """Behaviour 15: served by non-leaders."""
        leader, standby = replicas.pair()
        pages = {who: get(who.port("metrics"), "/metrics")[1] for who in (leader, standby)}

        assert get(standby.port("health"), "/readyz") == (200, "ok")
        assert get(standby.port("health"), "/healthz/leaderElection") == (200, "ok")
        assert 'leader_election_master_status{name="webapp-operator"} 1.0' in pages[leader]
        assert 'leader_election_master_status{name="webapp-operator"} 0.0' in pages[standby]


class TestSignals:
    def test_a_stop_takes_no_time_while_watches_are_open(
        self, cluster: Any, start_operator: Callable[..., Any]
    ) -> None:
        """zalando-incubator/kopf#142: an idle watch must not hold the process."""
        operator = start_operator()
        cluster.wait(lambda: operator.lines("caches synced"), 15, "the caches")
        told = time.monotonic()
        operator.child.terminate()

        assert operator.child.wait(10) == 0
        assert time.monotonic() - told < 3
        assert "Traceback" not in operator.log.read_text()

    def test_a_stop_before_anything_could_start_is_clean(
        self, cluster: Any, start_operator: Callable[..., Any]
    ) -> None:
        operator = start_operator(*LISTEN)
        cluster.wait(lambda: operator.lines("starting"), 15, "the start")
        operator.child.send_signal(signal.SIGINT)

        assert operator.child.wait(10) == 0


class TestEndpoints:
    def test_probes_and_metrics_are_served(self, cluster: Any, start_operator: Callable[..., Any]) -> None:
        operator = start_operator(*LISTEN)
        cluster.wait(lambda: operator.lines("caches synced"), 15, "the caches")
        health, metrics = operator.port("health"), operator.port("metrics")
        cluster.apply(webapp("hello"))
        cluster.wait(lambda: operator.lines("reconciled WebApp"), 15, "the reconcile")

        assert get(health, "/healthz") == (200, "ok")
        assert get(health, "/readyz?verbose")[1].endswith("healthz check passed\n")
        assert get(health, "/metrics")[0] == 404
        page = get(metrics, "/metrics")[1]
        assert 'controller_runtime_reconcile_total{controller="webapp",result="requeue_after"}' in page
        assert re.search(r'kubeloop_informer_objects\{resource="webapps.example.com"\} 1.0', page)
        # The status page of that port names objects, the metrics never do.
        assert "hello" not in page
        assert "hello" in get(metrics, "/statusz")[1]


class TestMissingDefinition:
    def test_readyz_names_the_kind_and_work_begins_when_it_comes(
        self, bare_cluster: Any, start_on: Callable[..., Any]
    ) -> None:
        """controller-runtime#2589: wait patiently, say what is missing, begin when it comes."""
        cluster = bare_cluster
        operator = start_on(cluster, *LISTEN)
        cluster.wait(lambda: operator.lines("listening"), 15, "the endpoints")
        health = operator.port("health")
        cluster.wait(lambda: "webapps" in get(health, "/readyz?verbose")[1], 15, "the kind on readyz")
        status, text = get(health, "/readyz?verbose")

        assert status == 500
        assert re.search(r"\[-\]caches failed: .*WebApp: .*(list|watch)", text)
        assert get(health, "/readyz")[1].startswith("[-]caches failed: reason withheld")
        assert get(health, "/healthz") == (200, "ok")
        cluster.install()
        cluster.wait(lambda: get(health, "/readyz") == (200, "ok"), 60, "readiness")
        assert operator.child.poll() is None
