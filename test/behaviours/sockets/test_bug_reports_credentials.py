"""Reports 6 to 8, and the others about credentials and configuration. Over sockets, in real time."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from kubeloop.client import load_config
from kubeloop.clock import StopEvent
from kubeloop.controller import Context, Controller, Result
from kubeloop.manager import Manager
from kubeloop.manager.checks import liveness
from kubeloop.model import Deployment, Resource
from kubeloop.sandbox import User
from webapp_operator.flags import parse
from webapp_operator.process import build_manager
from webapp_operator.reconcile import webapp_controller
from webapp_operator.types import WebApp

MAPS = Resource("", "v1", "configmaps", "ConfigMap")
ROBOT = User("system:serviceaccount:default:operator")


@pytest.mark.parametrize("verb", ["patch", "list", "watch"])
def test_a_refused_token_closes_no_watch(make_live: Any, run: Any, tmp_path: Path, verb: str) -> None:
    """nolar/kopf#980: re-authentication closes the session under the watchers, and they die; /healthz is 200.

    The token is renewed and the old one revoked, as it happens to service accounts.
    """
    live = make_live(tokens={"one": ROBOT, "two": ROBOT})
    (tmp_path / "token").write_text("one")
    path = live.changed(user={"tokenFile": str(tmp_path / "token")})
    client = live.client(load_config(str(path)))
    manager = Manager(client)
    manager.add(webapp_controller())
    run(manager)
    live.until(lambda: manager.wait_synced(StopEvent(), 0))
    watches = sum(informer.watches for informer in manager.informers.values())

    live.sandbox.access.revoke("one")
    (tmp_path / "token").write_text("two")
    if verb != "patch":  # the watches end by themselves, and the first to meet the refusal are they
        for watcher in live.sandbox.backend.store.watchers():
            if watcher.key == ("example.com", "webapps"):
                watcher.close()
        if verb == "list":
            live.sandbox.compact()
    live.make()
    live.until(lambda: live.sandbox.get("deployments.apps", "hello", "default"))
    live.sandbox.expect("webapp", "hello").to_have(status={"ready": True})

    refused = [e for e in live.sandbox.log.entries() if e.status == 401]
    assert refused
    assert len(refused) < 15
    assert {check() for check in liveness(manager).values()} == {""}
    if verb == "patch":
        assert sum(informer.watches for informer in manager.informers.values()) == watches


def test_a_dead_watch_fails_liveness(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """nolar/kopf#980: the same from the other side: a watch thread that is truly dead does not look alive."""
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    operator = stage.operate()
    assert operator.unwell() == ""
    informer = operator.manager.informers[Deployment]
    informer._reflectors[0].core.on_watch_ended = None  # a bug of ours
    stage.cut("deployments")
    stage.settle()

    assert operator.unwell() == "the informer has died: Deployment"


def test_every_request_in_a_cluster_says_who_asks(make_live: Any, run: Any) -> None:
    """kubernetes-client/python#2584: a release sends no Authorization header in-cluster.

    The whole operator as its command line builds it, election and Events included; the server knows one
    token, and calls everybody else nobody.
    """
    live = make_live(tls=True, tokens={"robot": ROBOT})
    released = {"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 1}
    meta = {"name": "webapp-operator", "namespace": "default"}
    live.sandbox.create(
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": released}
    )
    config = live.in_cluster()
    args = parse(["--health-bind-address=0", "--metrics-bind-address=0"], {})
    stop = StopEvent()
    manager = build_manager(config, args, stop)
    run(manager, stop)
    live.clients.append(manager._events._client)  # its process would end before it would be closed
    live.make()
    live.until(lambda: live.sandbox.get("deployments.apps", "hello", "default"))
    live.sandbox.patch("deployments.apps", "hello", {"spec": {"replicas": 9}}, "default")
    live.until(lambda: live.sandbox.log.entries(resource="events"), what="an Event about the repair")
    stop.set()
    live.sandbox.expect("lease", "webapp-operator").to_have(spec={"holderIdentity": ""})

    entries = [e for e in live.sandbox.log.entries() if not e.user_agent.startswith("sandbox-test")]
    assert {e.user for e in entries} == {ROBOT.name}
    assert {(e.verb, e.resource) for e in entries} >= {
        ("watch", "webapps"),
        ("patch", "webapps"),
        ("patch", "deployments"),
        ("update", "leases"),
        ("create", "events"),
    }


def test_a_plugins_credential_is_fetched_anew_when_it_is_refused(
    make_live: Any, run: Any, tmp_path: Path
) -> None:
    """tomplus/kubernetes_asyncio#257: an exec plugin's credential is never refreshed (python#741).

    An hour of a cloud's tokens: each is revoked, and only the plugin knows the next.
    """
    live = make_live(tokens={f"token{n}": ROBOT for n in range(4)})
    answer, runs = tmp_path / "answer", tmp_path / "runs"
    plugin = tmp_path / "plugin"
    plugin.write_text(
        f'#!/bin/sh\n"exec" "{sys.executable}" "-S" "$0" "$@"\n'
        f"open({str(runs)!r}, 'a').write('x')\nprint(open({str(answer)!r}).read())\n"
    )
    plugin.chmod(0o755)

    def give(number: int) -> None:
        status = {"token": f"token{number}"}
        answer.write_text(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "status": status}))

    give(0)
    user = {"exec": {"command": "./plugin", "apiVersion": "client.authentication.k8s.io/v1"}}
    client = live.client(load_config(str(live.changed(user=user))))
    seen: list[str] = []

    def reconcile(app: WebApp, _ctx: Context[WebApp]) -> Result:
        client.get(WebApp.resource, app.name, app.namespace)
        seen.append(app.name)
        return Result()

    manager = Manager(client)
    manager.add(Controller(WebApp, reconcile, field_manager="test"))
    run(manager)
    for number in range(1, 4):
        live.make(f"app{number}")
        live.until(lambda number=number: f"app{number}" in seen)
        give(number)
        live.sandbox.access.revoke(f"token{number - 1}")
    live.make("last")
    live.until(lambda: "last" in seen)

    assert runs.read_text() == "xxxx", "once at the start, and once for each token that was refused"
