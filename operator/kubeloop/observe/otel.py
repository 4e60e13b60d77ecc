"""Switching tracing on, by OpenTelemetry's own environment variables.

https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/

This module costs nothing: OpenTelemetry is imported by `set_up`, not before.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubeloop.observe.tracing import Tracing

_EXPORTER = "OTEL_TRACES_EXPORTER"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")

_OTLP = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
"""The exporters of the protocols, as the packages of OpenTelemetry register them; the specification's default
first."""

_GROUP = "opentelemetry_traces_exporter"

_EXTRA = "'webapp-operator[tracing]'"
_PACKAGES = {
    "otlp_proto_http": "opentelemetry-exporter-otlp-proto-http",
    "otlp_proto_grpc": "opentelemetry-exporter-otlp-proto-grpc",
}
"""Where the exporters are."""


class TracingError(Exception):
    """Tracing is asked for and cannot be; the message says what to install or to change."""


def asked_for(environ: Mapping[str, str]) -> str:
    """The variable that asks for tracing: an exporter, or where to export to. Empty if none does."""
    if disabled(environ) or environ.get(_EXPORTER, "").strip().lower() == "none":
        return ""
    return next((name for name in (_EXPORTER, *_ENDPOINTS) if environ.get(name, "").strip()), "")


def disabled(environ: Mapping[str, str]) -> bool:
    """Whether OTEL_SDK_DISABLED switches all of OpenTelemetry off."""
    return environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def set_up(service: str, version: str = "", *, why: str = "tracing") -> Tracing:
    """Tracing as the process' environment has it.

    If the process has a TracerProvider already (by ``opentelemetry-instrument``, or by its own code), that
    one is used and left alone. Else one is made from OTEL_TRACES_EXPORTER (otlp, unless set),
    OTEL_TRACES_SAMPLER, OTEL_RESOURCE_ATTRIBUTES, OTEL_BSP_* and the exporter's own variables, and made the
    global one, so that spans of the application's own code join in. `service` is the service's name unless
    OTEL_SERVICE_NAME says otherwise.

    Raises `TracingError`, beginning with `why`, if something for it is not installed or not usable.
    """
    try:
        from opentelemetry import trace
        from opentelemetry.sdk.resources import OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        from kubeloop.observe.tracing import Tracing
    except ImportError as error:
        packages = " ".join([_EXTRA, *(_package(name) for name in _exporters() if _package(name))])
        raise TracingError(
            f"{why} needs OpenTelemetry, which is not installed ({error}): pip install {packages}"
        ) from None
    current = trace.get_tracer_provider()
    if not isinstance(current, trace.ProxyTracerProvider):
        return Tracing(current)
    exporters = [_exporter(name, why) for name in _exporters()]
    about = Resource.create({"service.name": service, "service.version": version} if version else {})
    provider = TracerProvider(
        resource=about.merge(OTELResourceDetector().detect()),  # what the environment says wins
        shutdown_on_exit=False,  # the manager does it, within its time
    )
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return Tracing(provider, provider.shutdown)


def _exporters() -> list[str]:
    """The names in OTEL_TRACES_EXPORTER, or its default."""
    given = [name.strip() for name in os.environ.get(_EXPORTER, "").split(",") if name.strip()]
    return [name for name in given or ["otlp"] if name.lower() != "none"]


def _exporter(name: str, why: str) -> Any:
    """The exporter called `name`."""
    from importlib.metadata import entry_points

    candidates = _otlp(why) if name == "otlp" else [name]
    for candidate in candidates:
        for found in entry_points(group=_GROUP, name=candidate):
            try:
                return found.load()()
            except Exception as error:  # it is a plug-in, configured by who knows what
                raise TracingError(f"{why}: the exporter {candidate} cannot be used: {error}") from error
    package = _package(candidates[0])
    hint = f": pip install {package}" if package else ""
    raise TracingError(f"{why} needs the exporter {name}, which is not installed{hint}")


def _otlp(why: str) -> list[str]:
    """What may export OTLP: what the protocol says; without one, whatever is installed."""
    protocol = _protocol()
    if not protocol:
        return list(_OTLP.values())
    if protocol not in _OTLP:
        raise TracingError(f"{why}: {protocol!r} is no protocol that is supported: {' or '.join(_OTLP)}")
    return [_OTLP[protocol]]


def _protocol() -> str:
    return next((os.environ[name].strip() for name in _PROTOCOLS if os.environ.get(name, "").strip()), "")


def _package(exporter: str) -> str:
    """The package that has an exporter; empty if that is not known here."""
    if exporter == "otlp":
        exporter = _OTLP.get(_protocol(), "otlp_proto_http")
    return _PACKAGES.get(exporter, "")
