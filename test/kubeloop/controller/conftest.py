"""A controller without threads: its engine is called by hand, its caches show just what a test lets them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kubeloop.cache import Informer
from kubeloop.client import Client
from kubeloop.clock import FakeClock
from kubeloop.controller import Outcome, RunningController
from kubeloop.model import Deployment, KubeObject, Service
from kubeloop.sandbox import Sandbox
from webapp_operator.reconcile import webapp_controller
from webapp_operator.types import WebApp

AGENT = "controller-test"
NAMESPACE = "team"
RESOURCES: dict[type[KubeObject], str] = {
    WebApp: "webapps.example.com",
    Deployment: "deployments.apps",
    Service: "services",
}


class World:
    """The sandbox, stepped by hand, and the WebApp controller on caches that are never watched."""

    def __init__(self, crd: dict[str, Any] | None = None) -> None:
        self.clock = FakeClock()
        self.sandbox = Sandbox(clock=self.clock, step=True)
        self.sandbox.start()
        self.sandbox.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        self.sandbox.create(crd or WebApp.crd())
        self.sandbox.settle()
        self.client = Client(self.sandbox.transport(), clock=self.clock, user_agent=AGENT)
        self.restart()

    def restart(self) -> None:
        """A new process: nothing remembered, nothing cached yet."""
        self.informers: dict[type[KubeObject], Informer[Any]] = {
            kind: Informer(self.client, kind, clock=self.clock) for kind in RESOURCES
        }
        self.running = RunningController(webapp_controller(), self.client, self.informers, clock=self.clock)

    def create(self, name: str = "hello", finalizers: list[str] | None = None, **spec: Any) -> dict[str, Any]:
        """A WebApp made by its user; the cache does not know it yet."""
        metadata: dict[str, Any] = {"name": name, "namespace": NAMESPACE}
        if finalizers:
            metadata["finalizers"] = finalizers
        spec = {"image": "nginx:1.27", "replicas": 3, **spec}
        return self.sandbox.create(
            {"apiVersion": "example.com/v1", "kind": "WebApp", "metadata": metadata, "spec": spec}
        )

    def see(self, kind: type[KubeObject] = WebApp, name: str = "hello") -> None:
        """The watch brings the cache up to date about one object."""
        store = self.informers[kind].store
        found = self.live(kind, name)
        known = store.get(f"{NAMESPACE}/{name}")
        if known is not None and (found is None or found["metadata"]["uid"] != known.uid):
            store.forget(known.key, uid=known.uid)
        if found is not None:
            store.write_through(found)

    def see_all(self, name: str = "hello") -> None:
        """The same for all kinds."""
        for kind in RESOURCES:
            self.see(kind, name)

    def live(self, kind: type[KubeObject], name: str = "hello") -> dict[str, Any] | None:
        """What the server has."""
        return self.sandbox.get(RESOURCES[kind], name, NAMESPACE)

    def process(self, name: str = "hello") -> Outcome:
        """One reconcile."""
        return self.running.engine.process(f"{NAMESPACE}/{name}")

    def settled(self, name: str = "hello", **spec: Any) -> None:
        """A WebApp that was reconciled, and whose caches are up to date."""
        self.create(name, **spec)
        self.see(WebApp, name)
        outcome = self.process(name)
        assert outcome.error is None
        self.see_all(name)

    def mark(self) -> int:
        """A point in the request log."""
        return self.sandbox.log.mark()

    def requests(self, since: int = 0) -> list[tuple[str, str]]:
        """The controller's requests: verb, and resource with subresource."""
        return [
            (entry.verb, f"{entry.resource}/{entry.subresource}".rstrip("/"))
            for entry in self.sandbox.log.entries(since=since, user_agent=AGENT)
        ]


@pytest.fixture
def world_with_older_crd() -> Iterator[World]:
    """The same where the installed CRD knows only some of the status' fields."""
    crd = WebApp.crd()
    status = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    known = ("availableReplicas", "ready", "observedGeneration", "replicas", "selector")
    status["properties"] = {name: status["properties"][name] for name in known}
    crd["spec"]["versions"][0]["additionalPrinterColumns"] = []
    made = World(crd)
    yield made
    made.sandbox.stop()
    made.sandbox.check()


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.sandbox.stop()
    made.sandbox.check()
