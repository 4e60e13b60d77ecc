"""Spans of reconciles and of the requests they make, by OpenTelemetry's API.

Imported only where tracing is switched on (`kubeloop.observe.otel`), since it imports OpenTelemetry. What
goes into a span is what an access log would hold: who was asked for what, and what came of it. Never a body,
a header, or a query string, which may carry a selector's values.

Requests outside of any span (leases, Events, lists of informers) are not traced: each would be a trace of its
own, and nobody asked for them. Watches last too long to be spans.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from opentelemetry import propagate, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, TracerProvider

from kubeloop.client import Response, Stream, Transport

SCOPE = "kubeloop"
"""The instrumentation scope of all spans."""

_logger = logging.getLogger("kubeloop.observe")


class ReconcileSpan:
    """The span of one reconcile, to be told what came of it."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def ended(self, result: str, *, reconcile_id: str, writes: int, error: BaseException | None) -> None:
        """How it ended; `error` is one that somebody should look at, which makes it the span's status."""
        span = self._span
        span.set_attribute("kubeloop.reconcile.result", result)
        span.set_attribute("kubeloop.reconcile.writes", writes)
        if reconcile_id:
            span.set_attribute("kubeloop.reconcile.id", reconcile_id)
        if error is not None:
            span.record_exception(error)
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(Status(StatusCode.ERROR, str(error) or type(error).__name__))


class Tracing:
    """Makes the spans of one process, with any `TracerProvider`.

    `close`, if given, sends what is left; it is called by `stop` on the thread ``tracing-close``, as a
    collector that does not answer must not hold up the end of the process.
    """

    def __init__(self, provider: TracerProvider, close: Callable[[], object] | None = None) -> None:
        self._tracer = provider.get_tracer(SCOPE)
        self._close = close
        self._closing = threading.Thread(target=self._end, name="tracing-close", daemon=True)

    @contextmanager
    def reconcile(self, controller: str, kind: str, key: str, attempt: int) -> Iterator[ReconcileSpan]:
        """A span around one reconcile of the object `key`; `attempt` counts from 1, since it last went
        well."""
        namespace, _, name = key.rpartition("/")
        attributes: dict[str, str | int] = {
            "kubeloop.controller": controller,
            "kubeloop.object.kind": kind,
            "kubeloop.object.name": name,
            "kubeloop.reconcile.attempt": attempt,
        }
        if namespace:
            attributes["k8s.namespace.name"] = namespace
        with self._tracer.start_as_current_span("reconcile", attributes=attributes) as span:
            yield ReconcileSpan(span)

    def transport(self, inner: Transport, server: str = "") -> Transport:
        """`inner` with a span around each try of each request to `server` (its URL): for
        `kubeloop.client.connect(wrap=...)`."""
        return TracedTransport(inner, self._tracer, server)

    def mark_logs(self) -> None:
        """From now on log lines within a span bear its ids: in what the root logger's handlers write."""
        for handler in logging.getLogger().handlers:
            handler.addFilter(add_ids)

    def stop(self) -> None:
        """Send what is left, once; `join` waits for that."""
        if self._close is not None and self._closing.ident is None:
            self._closing.start()

    def join(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds; whether everything was sent."""
        if self._closing.ident is not None:
            self._closing.join(timeout)
        return not self._closing.is_alive()

    def _end(self) -> None:
        try:
            if self._close is not None:
                self._close()
        except Exception:
            # Whatever an exporter raises: the process ends anyway, and should say why it is mute.
            _logger.exception("the last spans could not be sent")


class TracedTransport:
    """A transport whose requests are spans, if they are made within one."""

    def __init__(self, inner: Transport, tracer: Tracer, server: str = "") -> None:
        self._inner = inner
        self._tracer = tracer
        where = urlsplit(server)
        self._server: dict[str, str | int] = {}
        if where.hostname:
            self._server["server.address"] = where.hostname
            self._server["server.port"] = where.port or (80 if where.scheme == "http" else 443)

    def request(
        self, method: str, target: str, *, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Response:
        """See `Transport.request`. The API server is told of the span (traceparent)."""
        if not trace.get_current_span().get_span_context().is_valid:
            return self._inner.request(method, target, headers=headers, body=body, timeout=timeout)
        what = Target.of(target)
        with self._tracer.start_as_current_span(
            f"{method} {what.resource}",
            kind=SpanKind.CLIENT,
            attributes={"http.request.method": method, **self._server, **what.attributes()},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            carrier = dict(headers)
            propagate.inject(carrier)
            try:
                response = self._inner.request(method, target, headers=carrier, body=body, timeout=timeout)
            except OSError as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(Status(StatusCode.ERROR, str(error)))
                raise
            span.set_attribute("http.response.status_code", response.status)
            if response.status >= 400:
                span.set_attribute("error.type", str(response.status))
                span.set_status(Status(StatusCode.ERROR))
            return response

    def stream(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str],
        connect_timeout: float,
        read_timeout: float,
    ) -> Stream:
        """See `Transport.stream`. No span."""
        return self._inner.stream(
            method, target, headers=headers, connect_timeout=connect_timeout, read_timeout=read_timeout
        )

    def close(self) -> None:
        """See `Transport.close`."""
        self._inner.close()


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is about, from its path."""

    resource: str
    """``deployments.apps/status``; the path itself if it is none of an API resource."""
    namespace: str = ""
    name: str = ""

    @classmethod
    def of(cls, target: str) -> Target:
        """Of a path with or without query, which is not looked at."""
        path = target.partition("?")[0]
        match path.strip("/").split("/"):
            case ["api", _, *rest]:
                group = ""
            case ["apis", group, _, *rest]:
                group = f".{group}"
            case _:
                return cls(path)
        namespace = ""
        # /namespaces/x and /namespaces/x/status are about the Namespace x, /namespaces/x/pods about pods.
        if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("status", "finalize"):
            namespace, rest = rest[1], rest[2:]
        match rest:
            case [plural]:
                return cls(plural + group, namespace)
            case [plural, name]:
                return cls(plural + group, namespace, name)
            case [plural, name, *subresource]:
                return cls(f"{plural}{group}/{'/'.join(subresource)}", namespace, name)
        return cls(path)

    def attributes(self) -> dict[str, str]:
        """Those of a span."""
        found = {
            "kubeloop.request.resource": self.resource,
            "k8s.namespace.name": self.namespace,
            "kubeloop.object.name": self.name,
        }
        return {key: value for key, value in found.items() if value}


def add_ids(record: logging.LogRecord) -> bool:
    """A logging filter: gives the record ``trace_id`` and ``span_id`` if a span is active (OpenTelemetry's
    names for JSON logs)."""
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        record.trace_id = trace.format_trace_id(context.trace_id)
        record.span_id = trace.format_span_id(context.span_id)
    return True
