"""Switching tracing on by OpenTelemetry's variables.

A process has one TracerProvider for good, so what makes one runs in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from kubeloop.observe import otel
from kubeloop.observe.otel import TracingError, asked_for, disabled

SOURCE = Path(__file__).resolve().parents[3] / "operator"

SPAN = """
from kubeloop.observe.otel import set_up
tracing = set_up("webapp-operator", "1.2.3")
with tracing.reconcile("webapp", "WebApp", "team/a", 1) as span:
    span.ended("done", reconcile_id="1a2b", writes=0, error=None)
tracing.stop()
assert tracing.join(10)
"""


def run(program: str, **environ: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**clean, "PYTHONPATH": str(SOURCE), **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


class Point:
    """An exporter, as its package would register it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def load(self) -> Callable[[], str]:
        if self.name == "broken":
            raise ValueError("bad port")
        return lambda: f"made by {self.name}"


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make it look as if just these exporters were installed, and these variables set."""

    def pretend(*installed: str, **environ: str) -> None:
        def entry_points(group: str, name: str) -> list[Point]:
            assert group == "opentelemetry_traces_exporter"
            return [Point(name)] if name in installed else []

        monkeypatch.setattr(metadata, "entry_points", entry_points)
        for variable in [name for name in os.environ if name.startswith("OTEL_")]:
            monkeypatch.delenv(variable)
        for variable, value in environ.items():
            monkeypatch.setenv(variable, value)

    return pretend


def refused(name: str = "otlp") -> str:
    with pytest.raises(TracingError) as caught:
        otel._exporter(name, "--tracing")
    return str(caught.value)


@pytest.mark.parametrize(
    ("environ", "variable"),
    [
        ({}, ""),
        ({"OTEL_SERVICE_NAME": "x"}, ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, "OTEL_EXPORTER_OTLP_ENDPOINT"),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c"}, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c"}, ""),
        ({"OTEL_TRACES_EXPORTER": "console"}, "OTEL_TRACES_EXPORTER"),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, ""),
        ({"OTEL_SDK_DISABLED": "True", "OTEL_TRACES_EXPORTER": "console"}, ""),
    ],
)
def test_an_exporter_or_an_endpoint_asks_for_tracing(environ: Mapping[str, str], variable: str) -> None:
    assert asked_for(environ) == variable


def test_only_true_disables() -> None:
    assert disabled({"OTEL_SDK_DISABLED": " TRUE "})
    assert not any(disabled({"OTEL_SDK_DISABLED": value}) for value in ("", "1", "false", "yes"))


def test_spans_go_to_the_exporter_that_is_named() -> None:
    done = run(SPAN, OTEL_TRACES_EXPORTER="console", OTEL_RESOURCE_ATTRIBUTES="k8s.pod.name=p")
    assert (done.returncode, done.stderr) == (0, "")
    for part in ('"name": "reconcile"', '"service.name": "webapp-operator"', '"service.version": "1.2.3"'):
        assert part in done.stdout
    assert '"k8s.pod.name": "p"' in done.stdout


def test_the_environment_has_the_last_word_on_the_services_name_and_on_sampling() -> None:
    done = run(SPAN, OTEL_TRACES_EXPORTER="console", OTEL_SERVICE_NAME="mine")
    assert '"service.name": "mine"' in done.stdout
    done = run(SPAN, OTEL_TRACES_EXPORTER="console", OTEL_TRACES_SAMPLER="always_off")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("installed", "protocol", "used"),
    [
        (["otlp_proto_http", "otlp_proto_grpc"], "", "otlp_proto_http"),
        (["otlp_proto_grpc"], "", "otlp_proto_grpc"),
        (["otlp_proto_http", "otlp_proto_grpc"], "grpc", "otlp_proto_grpc"),
        (["otlp_proto_http", "otlp_proto_grpc"], "http/protobuf", "otlp_proto_http"),
    ],
)
def test_otlp_speaks_the_protocol_that_is_set_or_else_what_is_installed(
    install: Any, installed: list[str], protocol: str, used: str
) -> None:
    install(*installed, OTEL_EXPORTER_OTLP_PROTOCOL=protocol)
    assert otel._exporter("otlp", "--tracing") == f"made by {used}"


def test_a_missing_exporter_is_named_with_what_to_install(install: Any) -> None:
    install()
    assert refused() == (
        "--tracing needs the exporter otlp, which is not installed: "
        "pip install opentelemetry-exporter-otlp-proto-http"
    )
    assert refused("zipkin") == "--tracing needs the exporter zipkin, which is not installed"
    install(OTEL_EXPORTER_OTLP_TRACES_PROTOCOL="grpc", OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf")
    assert refused().endswith("pip install opentelemetry-exporter-otlp-proto-grpc")
    install(OTEL_EXPORTER_OTLP_PROTOCOL="http/json")
    assert refused() == "--tracing: 'http/json' is no protocol that is supported: http/protobuf or grpc"


def test_an_exporter_that_cannot_be_made_says_why(install: Any) -> None:
    install("broken")
    assert refused("broken") == "--tracing: the exporter broken cannot be used: bad port"


@pytest.mark.parametrize(
    ("exporter", "packages"),
    [
        ("", "'webapp-operator[tracing]' opentelemetry-exporter-otlp-proto-http"),
        ("otlp,console", "'webapp-operator[tracing]' opentelemetry-exporter-otlp-proto-http"),
        ("otlp_proto_grpc", "'webapp-operator[tracing]' opentelemetry-exporter-otlp-proto-grpc"),
        ("console", "'webapp-operator[tracing]'"),
        ("none", "'webapp-operator[tracing]'"),
    ],
)
def test_without_opentelemetry_it_says_all_that_is_to_be_installed(
    install: Any, monkeypatch: pytest.MonkeyPatch, exporter: str, packages: str
) -> None:
    install(OTEL_TRACES_EXPORTER=exporter)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(TracingError, match="needs OpenTelemetry, which is not installed") as caught:
        otel.set_up("webapp-operator")
    assert str(caught.value).endswith(f": pip install {packages}")


def test_a_provider_that_is_there_is_used_and_left_alone() -> None:
    given = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
provider = TracerProvider(shutdown_on_exit=False)
exporter = ConsoleSpanExporter(formatter=lambda span: span.name + "\\n")
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
"""
    done = run(given + SPAN + "provider.get_tracer('x').start_span('still there').end()")
    assert (done.stdout, done.stderr) == ("reconcile\nstill there\n", "")


def test_spans_of_the_applications_own_code_join_in() -> None:
    own = """
    from opentelemetry import trace
    trace.get_tracer('app').start_span('own').end()
"""
    own = SPAN.replace("    span.ended", f"{own}    span.ended")
    done = run(own, OTEL_TRACES_EXPORTER="console")
    assert '"name": "own"' in done.stdout
    assert done.stdout.count('"parent_id": null') == 1


def test_no_exporter_at_all_still_gives_the_logs_their_ids() -> None:
    program = (
        SPAN + "print(tracing.reconcile('a', 'b', 'c', 1).__enter__()._span.get_span_context().is_valid)"
    )
    assert run(program, OTEL_TRACES_EXPORTER="none").stdout == "True\n"


def test_nothing_is_imported_until_it_is_switched_on() -> None:
    program = """
import sys
import kubeloop.observe.otel, kubeloop.observe.events, kubeloop.manager.telemetry, webapp_operator.process
from webapp_operator import cli
assert cli.main(["--kubeconfig", "/nowhere/at/all", "--once"]) == 2
found = [name for name in sys.modules if name.startswith("opentelemetry") or name.endswith("observe.tracing")]
assert not found, found
"""
    done = run(program)
    assert done.returncode == 0, done.stderr
