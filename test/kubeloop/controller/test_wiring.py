"""A whole controller with its threads and informers on the in-process sandbox (R0.15, R0.22, R0.23)."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from kubeloop.client import AlreadyExists, Api, Client
from kubeloop.clock import StopEvent
from kubeloop.controller import Context, Controller, Outcome, Result
from kubeloop.manager import Manager
from kubeloop.model import Deployment, PartialObjectMetadata, Resource, Service, metadata_only
from kubeloop.sandbox import Sandbox
from webapp_operator.reconcile import webapp_controller
from webapp_operator.types import WebApp

AGENT = "wiring-test"
TIMEOUT = 15.0


class Running:
    """A manager with one controller on a sandbox; reports wake whoever waits."""

    def __init__(self, sandbox: Sandbox, controller: Controller[Any], transport: Any = None) -> None:
        self.sandbox = sandbox
        self._changed = threading.Condition()
        self.outcomes: list[tuple[str, Outcome]] = []
        client = Client(transport or sandbox.transport(), user_agent=AGENT)
        self.manager = Manager(client, report=self._report)
        self.controller = self.manager.add(controller)
        self.manager.start()
        assert self.manager.wait_synced(StopEvent(), TIMEOUT)
        self.manager.start_workers()

    def _report(self, key: str, outcome: Outcome) -> None:
        with self._changed:
            self.outcomes.append((key, outcome))
            self._changed.notify_all()

    def until(self, holds: Callable[[], object]) -> None:
        """Wait until `holds` does; asked again after each reconcile."""
        with self._changed:
            assert self._changed.wait_for(holds, TIMEOUT), self.outcomes[-5:]

    def quiet(self) -> None:
        """Wait until nothing is due."""
        assert self.controller.queue.wait_quiet(0.2, TIMEOUT)

    def writes(self, since: int = 0) -> list[tuple[str, str]]:
        found = self.sandbox.log.writes(since=since, user_agent=AGENT)
        return [(entry.resource, entry.subresource) for entry in found]


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as made:
        made.create(WebApp.crd())
        crd = "customresourcedefinitions.apiextensions.k8s.io"
        while not made.get(crd, WebApp.crd_name())["status"].get("acceptedNames"):  # type: ignore[index]
            threading.Event().wait(0.01)
        yield made


@pytest.fixture
def start(sandbox: Sandbox) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def run(controller: Controller[Any], transport: Any = None) -> Running:
        started.append(Running(sandbox, controller, transport))
        return started[-1]

    yield run
    for each in started:
        assert each.manager.stop(10.0)


def create(sandbox: Sandbox, name: str = "hello", **spec: Any) -> None:
    sandbox.create(
        {
            "apiVersion": "example.com/v1",
            "kind": "WebApp",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"image": "nginx:1.27", "replicas": 2, **spec},
        }
    )


def deployment(sandbox: Sandbox, name: str = "hello") -> dict[str, Any] | None:
    return sandbox.get("deployments.apps", name, "default")


def test_events_of_a_child_wake_its_owner_until_all_is_well(sandbox: Sandbox, start: Any) -> None:
    """R0.22."""
    run = start(webapp_controller())
    create(sandbox)
    run.until(
        lambda: (sandbox.get("webapps.example.com", "hello", "default") or {}).get("status", {}).get("ready")
    )
    uid = (deployment(sandbox) or {})["metadata"]["uid"]

    sandbox.delete("deployments.apps", "hello", "default", propagation="Background")

    run.until(lambda: (deployment(sandbox) or {"metadata": {"uid": uid}})["metadata"]["uid"] != uid)


def test_a_settled_operator_stays_silent_through_relists_and_status_noise(
    sandbox: Sandbox, start: Any
) -> None:
    """D1: writes that change nothing of ours, and a watch that has to begin anew."""
    run = start(webapp_controller())
    create(sandbox)
    run.until(
        lambda: (sandbox.get("webapps.example.com", "hello", "default") or {}).get("status", {}).get("ready")
    )
    writes = -1
    while writes != (writes := len(run.writes())):  # the Deployment's last words may come late
        run.quiet()
    mark = sandbox.log.mark()
    sandbox.patch("deployments.apps", "hello", {"metadata": {"annotations": {"a": "b"}}}, "default")
    sandbox.patch("webapps.example.com", "hello", {"metadata": {"labels": {"a": "b"}}}, "default")
    run.quiet()

    assert run.writes(mark) == []


def test_one_failing_object_never_stops_another(sandbox: Sandbox, start: Any) -> None:
    """R0.15."""

    def reconcile(app: WebApp, _ctx: Context[WebApp]) -> Result:
        if app.name == "bad":
            raise SystemExit("even this")
        return Result()

    run = start(Controller(WebApp, reconcile, field_manager="test", workers=1))
    create(sandbox, "bad")
    for n in range(5):
        create(sandbox, f"good{n}")
    run.until(lambda: {f"default/good{n}" for n in range(5)} <= {key for key, _ in run.outcomes})
    run.until(lambda: sum(key == "default/bad" for key, _ in run.outcomes) >= 2)


def test_a_slow_object_is_never_reconciled_twice_at_a_time(sandbox: Sandbox, start: Any) -> None:
    """R0.23."""
    release, entered = threading.Event(), threading.Semaphore(0)
    inside: list[int] = [0]

    def reconcile(_app: WebApp, _ctx: Context[WebApp]) -> Result:
        inside[0] += 1
        assert inside[0] == 1
        entered.release()
        release.wait(TIMEOUT)
        inside[0] -= 1
        return Result()

    run = start(Controller(WebApp, reconcile, field_manager="test", workers=4))
    create(sandbox)
    assert entered.acquire(timeout=TIMEOUT)
    for n in range(10):
        last = sandbox.patch("webapps.example.com", "hello", {"spec": {"replicas": n}}, "default")
    store = run.manager.informers[WebApp].store
    while store.version_of("default/hello") < int(last["metadata"]["resourceVersion"]):
        threading.Event().wait(0.01)
    release.set()
    run.until(lambda: len(run.outcomes) >= 2)
    run.quiet()

    assert len(run.outcomes) == 2
    assert all(outcome.error is None for _, outcome in run.outcomes)


def test_a_conflict_clears_when_the_foreign_object_goes(sandbox: Sandbox, start: Any) -> None:
    """D2: the foreign Deployment has no owner reference that would lead to the WebApp."""
    run = start(webapp_controller())
    sandbox.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "hello", "namespace": "default"},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "x", "image": "x"}]},
                },
            },
        }
    )
    create(sandbox)
    run.until(lambda: any("left untouched" in str(outcome.error) for _, outcome in run.outcomes))
    sandbox.delete("deployments.apps", "hello", "default", propagation="Background")

    run.until(lambda: (deployment(sandbox) or {"metadata": {}})["metadata"].get("ownerReferences"))


def test_a_deleted_object_is_forgotten(sandbox: Sandbox, start: Any) -> None:
    run = start(webapp_controller())
    create(sandbox)
    run.until(lambda: deployment(sandbox))
    run.quiet()
    sandbox.delete("webapps.example.com", "hello", "default")
    run.until(lambda: sandbox.get("webapps.example.com", "hello", "default") is None)
    run.quiet()

    assert len(run.controller.queue) == 0


def test_another_controller_of_the_process_hears_of_what_the_first_one_wrote(
    sandbox: Sandbox, start: Any
) -> None:
    """Echoes of own writes wake nobody, but only for the controller that wrote."""
    heard: list[str] = []

    def listen(child: Deployment) -> list[str]:
        heard.append(child.name)
        return []

    writer = webapp_controller()
    run = start(writer)
    second = Controller(WebApp, lambda _app, _ctx: Result(), field_manager="other", name="second")
    run.manager.add(second.watches(Deployment, listen))
    create(sandbox)
    run.until(lambda: deployment(sandbox))
    run.quiet()

    assert "hello" in heard


def test_ten_objects_in_a_storm_converge(sandbox: Sandbox, start: Any) -> None:
    """R0.24: whatever was merged or missed, the last state counts."""
    run = start(webapp_controller())
    for n in range(10):
        create(sandbox, f"app{n}")
    for replicas in (5, 1, 7, 3):
        for n in range(10):
            sandbox.patch("webapps.example.com", f"app{n}", {"spec": {"replicas": replicas}}, "default")

    run.until(
        lambda: all(
            (deployment(sandbox, f"app{n}") or {"spec": {}})["spec"].get("replicas") == 3 for n in range(10)
        )
    )


def test_an_unreadable_object_is_told_about_and_can_still_be_deleted(sandbox: Sandbox, start: Any) -> None:
    """D4: with another schema installed, a spec may be stored that the class cannot read."""
    crd = WebApp.crd()
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crds = "customresourcedefinitions.apiextensions.k8s.io"
    crd["spec"]["versions"][0]["subresources"].pop("scale")
    sandbox.apply(crd)
    run = start(webapp_controller())
    create(sandbox)
    run.until(lambda: deployment(sandbox))
    run.quiet()
    sandbox.patch("webapps.example.com", "hello", {"spec": {"image": 7}}, "default")
    run.until(lambda: any("cannot be read" in str(outcome.error) for _, outcome in run.outcomes))
    run.quiet()
    app = sandbox.get("webapps.example.com", "hello", "default") or {}
    assert app["status"]["phase"] == "Failed"
    assert "spec.image" in app["status"]["conditions"][0]["message"]

    sandbox.delete("webapps.example.com", "hello", "default")

    run.until(lambda: sandbox.get("webapps.example.com", "hello", "default") is None)
    assert sandbox.get(crds, WebApp.crd_name()) is not None


SECRETS = Resource("", "v1", "secrets", "Secret")


def test_secrets_that_are_owned_wake_their_owner_though_only_their_metadata_is_known(
    sandbox: Sandbox, start: Any
) -> None:
    def reconcile(app: WebApp, ctx: Context[WebApp]) -> Result:
        if ctx.get(metadata_only(SECRETS), f"{app.name}-key") is None:
            secret = {
                "metadata": {
                    "name": f"{app.name}-key",
                    "namespace": app.namespace,
                    "ownerReferences": [app.owner_reference()],
                },
                "stringData": {"key": "sesame"},
            }
            with suppress(AlreadyExists):  # the cache has yet to hear of it
                Api(ctx.client, SECRETS).create(secret)
        return Result()

    controller = Controller(WebApp, reconcile, field_manager="test").owns(metadata_only(SECRETS))
    run = start(controller)
    create(sandbox)
    run.until(lambda: sandbox.get("secrets", "hello-key", "default"))
    run.quiet()
    uid = (sandbox.get("secrets", "hello-key", "default") or {})["metadata"]["uid"]
    sandbox.delete("secrets", "hello-key", "default")

    run.until(
        lambda: (
            (sandbox.get("secrets", "hello-key", "default") or {}).get("metadata", {}).get("uid", uid) != uid
        )
    )
    store = run.manager.informers[metadata_only(SECRETS)].store
    assert "sesame" not in repr(store.list())
    assert all(outcome.error is None for _, outcome in run.outcomes)


def test_what_is_known_by_its_metadata_only_can_be_deleted_but_not_applied(
    sandbox: Sandbox, start: Any
) -> None:
    def reconcile(app: WebApp, ctx: Context[WebApp]) -> Result:
        if app.spec.replicas == 0:
            ctx.delete(metadata_only(SECRETS), "mine")
        else:
            ctx.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine"}})
        return Result()

    run = start(Controller(WebApp, reconcile, field_manager="test").owns(metadata_only(SECRETS)))
    create(sandbox)
    run.until(lambda: any("only the metadata is cached" in str(outcome.error) for _, outcome in run.outcomes))
    app = sandbox.get("webapps.example.com", "hello", "default") or {}
    owner = WebApp.model_validate(app).owner_reference()
    mine = {
        "name": "mine",
        "namespace": "default",
        "ownerReferences": [owner],
        "finalizers": ["example.com/x"],
    }
    sandbox.create({"apiVersion": "v1", "kind": "Secret", "metadata": mine, "stringData": {"key": "sesame"}})
    store = run.manager.informers[metadata_only(SECRETS)].store
    run.until(lambda: "default/mine" in store)
    sandbox.patch("webapps.example.com", "hello", {"spec": {"replicas": 0}}, "default")

    # A finalizer keeps it, so that the answer to the deletion is the whole object, and is written through.
    run.until(lambda: any(secret.deleting for secret in store.list()))
    assert "sesame" not in repr(store.list())


def test_a_kind_is_owned_either_whole_or_by_its_metadata() -> None:
    controller = Controller(WebApp, lambda _app, _ctx: Result(), field_manager="test")
    controller.owns(metadata_only(Deployment)).owns(metadata_only(Deployment))
    assert controller.owned == [metadata_only(Deployment)]
    with pytest.raises(ValueError, match=r"deployments\.apps is owned already, as DeploymentMetadata"):
        controller.owns(Deployment)


def test_whole_objects_for_one_controller_and_metadata_for_another_are_two_caches(
    sandbox: Sandbox, start: Any
) -> None:
    names: list[str] = []

    def listen(child: PartialObjectMetadata) -> list[str]:
        names.append(child.name)
        return []

    controller = webapp_controller()
    controller.watches(metadata_only(Deployment), listen)
    run = start(controller)
    create(sandbox)
    run.until(lambda: deployment(sandbox))
    run.quiet()

    whole, metadata = (run.manager.informers[kind] for kind in (Deployment, metadata_only(Deployment)))
    assert (whole.name, metadata.name) == ("deployments.apps", "deployments.apps (metadata)")
    assert set(names) == {"hello"}


class Slow:
    """A transport whose answers to writes come after the watch has shown them."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.shown: Callable[[int], bool] = lambda _: True

    def request(self, method: str, *args: Any, **more: Any) -> Any:
        answer = self._inner.request(method, *args, **more)
        if method == "PATCH" and answer.status < 300:
            version = int(json.loads(answer.body)["metadata"]["resourceVersion"])
            deadline = time.monotonic() + TIMEOUT
            while not self.shown(version) and time.monotonic() < deadline:
                threading.Event().wait(0.002)
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_a_watch_that_is_faster_than_the_answers_wakes_nobody(sandbox: Sandbox, start: Any) -> None:
    """An echo is told from others' changes whichever comes first, it or the answer."""

    def reconcile(app: WebApp, ctx: Context[WebApp]) -> Result:
        ports = [{"name": "http", "port": 80, "protocol": "TCP"}]
        metadata = {"name": app.name}
        ctx.apply({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": ports}})
        ctx.set_status({"ready": True})
        return Result()

    transport = Slow(sandbox.transport())
    finalizer = "example.com/test"
    controller = Controller(WebApp, reconcile, field_manager=AGENT, finalizer=finalizer).owns(Service)
    run = start(controller, transport)
    stores = [run.manager.informers[kind].store for kind in (WebApp, Service)]
    transport.shown = lambda version: max(store.resource_version for store in stores) >= version
    create(sandbox)
    run.until(lambda: run.outcomes)
    run.quiet()

    # Nobody else writes to a Service: one pass that makes all there is to make.
    assert [len(outcome.changes) for _, outcome in run.outcomes] == [3]
