"""Spans: what is in them, and what must not be."""

from __future__ import annotations

import io
import json
import logging
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from kubeloop.client import Client, ConnectFailed, MergePatch, NotFound, RetryPolicy, TransportError
from kubeloop.client.transport import Answered
from kubeloop.model import Resource
from kubeloop.observe import configure_logging
from kubeloop.observe.tracing import Target, Tracing

THINGS = Resource("example.com", "v1", "things", "Thing")
BODY = b'{"kind":"Thing","spec":{"word":"sesame"}}'


class Scripted:
    """A transport that gives one answer after the other and keeps the headers."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.headers: list[Mapping[str, str]] = []

    def request(self, *_: object, headers: Mapping[str, str], **__: object) -> Any:
        self.headers.append(headers)
        answer = self._answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def stream(self, *_: object, headers: Mapping[str, str], **__: object) -> Any:
        return self.request(headers=headers)

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracing(exporter: InMemorySpanExporter) -> Tracing:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Tracing(provider, provider.shutdown)


@pytest.fixture
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def everything(exporter: InMemorySpanExporter) -> str:
    return "".join(span.to_json() for span in exporter.get_finished_spans())


def test_a_reconcile_is_a_span_and_its_requests_are_its_children(
    tracing: Tracing, exporter: InMemorySpanExporter
) -> None:
    transport = Scripted(
        Answered(200, {}, BODY), Answered(200, {}, b'{"kind":"ThingList","metadata":{},"items":[]}')
    )
    client = Client(tracing.transport(transport, "https://api.example.com:6443"))
    with tracing.reconcile("thing", "Thing", "team/a", 2) as span:
        client.patch(THINGS, "a", "team", MergePatch({"spec": {"word": "sesame"}}), subresource="status")
        client.list(Resource("", "v1", "secrets"), "team", label_selector="password=sesame")
        span.ended("done", reconcile_id="1a2b", writes=1, error=None)

    patch, listing, reconcile = exporter.get_finished_spans()
    assert (reconcile.name, reconcile.status.status_code) == ("reconcile", StatusCode.UNSET)
    assert attributes(reconcile) == {
        "kubeloop.controller": "thing",
        "kubeloop.object.kind": "Thing",
        "kubeloop.object.name": "a",
        "k8s.namespace.name": "team",
        "kubeloop.reconcile.attempt": 2,
        "kubeloop.reconcile.id": "1a2b",
        "kubeloop.reconcile.result": "done",
        "kubeloop.reconcile.writes": 1,
    }
    assert (patch.name, patch.kind) == ("PATCH things.example.com/status", SpanKind.CLIENT)
    assert attributes(patch) == {
        "http.request.method": "PATCH",
        "http.response.status_code": 200,
        "server.address": "api.example.com",
        "server.port": 6443,
        "kubeloop.request.resource": "things.example.com/status",
        "kubeloop.object.name": "a",
        "k8s.namespace.name": "team",
    }
    assert listing.name == "GET secrets"
    for child in (patch, listing):
        assert child.parent is not None
        assert child.parent.span_id == reconcile.context.span_id
    assert "sesame" not in everything(exporter)


def test_the_server_is_told_of_the_span(tracing: Tracing, exporter: InMemorySpanExporter) -> None:
    transport = Scripted(Answered(200, {}, BODY))
    with tracing.reconcile("thing", "Thing", "a", 1):
        Client(tracing.transport(transport)).get(THINGS, "a", "team")
    request, reconcile = exporter.get_finished_spans()
    ids = f"{request.context.trace_id:032x}-{request.context.span_id:016x}"
    assert transport.headers[0]["traceparent"].startswith(f"00-{ids}-")
    assert "k8s.namespace.name" not in attributes(reconcile)


def test_outside_of_a_span_nothing_is_added(tracing: Tracing, exporter: InMemorySpanExporter) -> None:
    transport = Scripted(Answered(200, {}, BODY))
    Client(tracing.transport(transport)).get(THINGS, "a", "team")
    assert exporter.get_finished_spans() == ()
    assert transport.headers[0].keys() == {"User-Agent", "Accept"}


def test_each_try_is_a_span_and_says_what_went_wrong(
    tracing: Tracing, exporter: InMemorySpanExporter
) -> None:
    transport = Scripted(
        ConnectFailed("refused"), Answered(404, {}, b'{"kind":"Status","message":"sesame is missing"}')
    )
    client = Client(tracing.transport(transport), retry=RetryPolicy(attempts=2))
    with pytest.raises(NotFound), tracing.reconcile("thing", "Thing", "team/a", 1):
        client.get(THINGS, "a", "team")
    first, second, reconcile = exporter.get_finished_spans()
    assert attributes(first)["error.type"] == "ConnectFailed"
    assert "http.response.status_code" not in attributes(first)
    assert (first.status.status_code, first.status.description) == (StatusCode.ERROR, "refused")
    assert (attributes(second)["error.type"], attributes(second)["http.response.status_code"]) == ("404", 404)
    assert second.status.status_code is StatusCode.ERROR
    assert reconcile.status.status_code is StatusCode.ERROR, "what the user's code lets through is an error"
    assert "sesame" not in second.to_json()


def test_the_error_of_a_reconcile_is_its_status(tracing: Tracing, exporter: InMemorySpanExporter) -> None:
    with tracing.reconcile("thing", "Thing", "team/a", 1) as span:
        span.ended("failed", reconcile_id="", writes=0, error=TransportError("get", "things", "no answer"))
    (reconcile,) = exporter.get_finished_spans()
    assert reconcile.status.status_code is StatusCode.ERROR
    assert "no answer" in (reconcile.status.description or "")
    assert [event.name for event in reconcile.events] == ["exception"]
    assert attributes(reconcile)["error.type"] == "TransportError"
    assert "kubeloop.reconcile.id" not in attributes(reconcile)


@pytest.mark.parametrize(
    ("target", "resource", "namespace", "name"),
    [
        ("/api/v1/secrets?labelSelector=a%3Db", "secrets", "", ""),
        ("/api/v1/namespaces", "namespaces", "", ""),
        ("/api/v1/namespaces/a", "namespaces", "", "a"),
        ("/api/v1/namespaces/a/status", "namespaces/status", "", "a"),
        ("/api/v1/namespaces/a/finalize", "namespaces/finalize", "", "a"),
        ("/api/v1/namespaces/a/pods", "pods", "a", ""),
        ("/api/v1/namespaces/a/pods/b", "pods", "a", "b"),
        ("/api/v1/namespaces/a/pods/b/proxy/c", "pods/proxy/c", "a", "b"),
        ("/apis/apps/v1/namespaces/a/deployments/b/scale", "deployments.apps/scale", "a", "b"),
        ("/apis/example.com/v1/things/b", "things.example.com", "", "b"),
        ("/openapi/v3/apis/apps/v1?hash=x", "/openapi/v3/apis/apps/v1", "", ""),
        ("/apis", "/apis", "", ""),
        ("/api/v1", "/api/v1", "", ""),
        ("/", "/", "", ""),
    ],
)
def test_a_path_says_what_a_request_is_about(target: str, resource: str, namespace: str, name: str) -> None:
    assert Target.of(target) == Target(resource, namespace, name)


@given(path=st.text(alphabet="apis/v1namespace", max_size=40), query=st.text(max_size=20))
def test_a_query_is_never_looked_at(path: str, query: str) -> None:
    assert Target.of(f"/{path}?{query}") == Target.of(f"/{path}")


def test_a_watch_is_no_span(tracing: Tracing, exporter: InMemorySpanExporter) -> None:
    stream = object()
    transport = tracing.transport(Scripted(stream))
    with tracing.reconcile("thing", "Thing", "team/a", 1):
        assert transport.stream("GET", "/", headers={}, connect_timeout=1, read_timeout=1) is stream
    assert [span.name for span in exporter.get_finished_spans()] == ["reconcile"]
    transport.close()


@pytest.mark.usefixtures("_logging_as_before")
@pytest.mark.parametrize("form", ["json", "text"])
def test_log_lines_within_a_span_bear_its_ids(
    tracing: Tracing, exporter: InMemorySpanExporter, form: str
) -> None:
    stream = io.StringIO()
    configure_logging(fmt=form, stream=stream)
    tracing.mark_logs()
    log = logging.getLogger("kubeloop.test")
    log.warning("before")
    with tracing.reconcile("thing", "Thing", "team/a", 1):
        log.warning("within", extra={"fields": {"name": "a"}})
    before, within = stream.getvalue().splitlines()
    (span,) = exporter.get_finished_spans()
    trace_id, span_id = f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}"
    assert "trace_id" not in before
    if form == "json":
        line = json.loads(within)
        assert (line["name"], line["trace_id"], line["span_id"]) == ("a", trace_id, span_id)
    else:
        assert within.endswith(f"within  name=a trace_id={trace_id} span_id={span_id}")


def test_the_end_waits_for_the_last_spans_but_not_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    release = threading.Event()
    slow = Tracing(TracerProvider(shutdown_on_exit=False), release.wait)
    assert slow.join(0), "it was never told to stop"
    slow.stop()
    slow.stop()
    assert not slow.join(0.05)
    release.set()
    assert slow.join(5)

    def fail() -> None:
        raise OSError("no collector")

    broken = Tracing(TracerProvider(shutdown_on_exit=False), fail)
    broken.stop()
    assert broken.join(5)
    assert "the last spans could not be sent" in caplog.text
    given = Tracing(TracerProvider(shutdown_on_exit=False))
    given.stop()
    assert given.join(0), "a provider that belongs to somebody else is left alone"
