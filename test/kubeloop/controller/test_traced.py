"""Reconciles as spans: what a whole controller on the sandbox leaves behind."""

from __future__ import annotations

import threading
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanProcessor
from opentelemetry.trace import StatusCode

from kubeloop.client import Client
from kubeloop.clock import StopEvent
from kubeloop.controller import Blocked, Context, Controller, Result, TerminalError
from kubeloop.manager import Manager
from kubeloop.model import Deployment
from kubeloop.observe.tracing import Tracing
from kubeloop.sandbox import Sandbox
from webapp_operator.reconcile import webapp_controller
from webapp_operator.types import WebApp

TIMEOUT = 15.0


class Collector(SpanProcessor):
    """Keeps ended spans and wakes whoever waits for one."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        with self._changed:
            self.spans.append(span)
            self._changed.notify_all()

    def reconciles(self, **wanted: Any) -> list[ReadableSpan]:
        """The spans of reconciles with these attributes (result, attempt, ...)."""
        return [
            span
            for span in list(self.spans)
            if span.name == "reconcile"
            and all((span.attributes or {}).get(f"kubeloop.reconcile.{k}") == v for k, v in wanted.items())
        ]

    def wait(self, **wanted: Any) -> ReadableSpan:
        with self._changed:
            assert self._changed.wait_for(lambda: self.reconciles(**wanted), TIMEOUT), self.spans
        return self.reconciles(**wanted)[0]

    def children(self, span: ReadableSpan) -> list[str]:
        return [
            child.name
            for child in self.spans
            if child.parent is not None and child.parent.span_id == span.context.span_id
        ]


def run(controller: Controller[Any], *apps: str) -> tuple[Collector, Manager, Sandbox]:
    """A traced manager on a sandbox with these WebApps."""
    sandbox = Sandbox()
    sandbox.start()
    sandbox.apply(WebApp.crd())
    for app in apps:
        metadata = {"name": app, "namespace": "default"}
        spec = {"image": "nginx:1.27", "replicas": 2}
        sandbox.create({"apiVersion": "example.com/v1", "kind": "WebApp", "metadata": metadata, "spec": spec})
    collector = Collector()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(collector)
    tracing = Tracing(provider, provider.shutdown)
    manager = Manager(Client(tracing.transport(sandbox.transport())), tracing=tracing)
    manager.add(controller)
    manager.start()
    assert manager.wait_synced(StopEvent(), TIMEOUT)
    manager.start_workers()
    return collector, manager, sandbox


def end(manager: Manager, sandbox: Sandbox) -> None:
    assert manager.stop(10.0)
    sandbox.stop()
    sandbox.check()


def test_the_first_reconcile_of_a_webapp_is_a_span_with_three_writes_below_it() -> None:
    collector, manager, sandbox = run(webapp_controller(), "hello")
    first = collector.wait(result="done")
    end(manager, sandbox)

    attributes = dict(first.attributes or {})
    assert attributes.pop("kubeloop.reconcile.id")
    assert attributes == {
        "kubeloop.controller": "webapp",
        "kubeloop.object.kind": "WebApp",
        "kubeloop.object.name": "hello",
        "k8s.namespace.name": "default",
        "kubeloop.reconcile.attempt": 1,
        "kubeloop.reconcile.result": "done",
        "kubeloop.reconcile.writes": 3,
    }
    assert collector.children(first) == [
        "PATCH webapps.example.com",
        "PATCH deployments.apps",
        "PATCH webapps.example.com/status",
    ]
    assert all(span.parent is not None for span in collector.spans if span.name != "reconcile")
    assert "nginx" not in "".join(span.to_json() for span in collector.spans)


def test_attempts_are_counted_and_errors_are_the_status_of_the_span() -> None:
    failures = [RuntimeError("not yet"), RuntimeError("nor now")]

    def reconcile(app: WebApp, _ctx: Context[WebApp]) -> Result:
        if app.name == "blocked":
            raise Blocked("waits", "for somebody")
        if app.name == "terminal":
            raise TerminalError("never")
        if failures:
            raise failures.pop(0)
        return Result()

    controller = Controller(WebApp, reconcile, field_manager="test").owns(Deployment)
    collector, manager, sandbox = run(controller, "flaky", "blocked", "terminal")
    good = collector.wait(result="done", attempt=3)
    terminal, blocked = collector.wait(result="terminal"), collector.wait(result="blocked")
    end(manager, sandbox)

    for attempt, text in ((1, "not yet"), (2, "nor now")):
        (failed,) = collector.reconciles(result="failed", attempt=attempt)
        assert (failed.status.status_code, failed.status.description) == (StatusCode.ERROR, text)
    assert good.status.status_code is StatusCode.UNSET
    assert (terminal.status.status_code, terminal.status.description) == (StatusCode.ERROR, "never")
    assert blocked.status.status_code is StatusCode.UNSET, "to wait for somebody is no error"
