"""Tracing as a platform engineer switches it on: by OpenTelemetry's environment variables."""

from __future__ import annotations

import json
from typing import Any

import pytest

HELLO = {
    "apiVersion": "example.com/v1",
    "kind": "WebApp",
    "metadata": {"name": "hello"},
    "spec": {"image": "nginx:1.27"},
}


def spans_in(log: str) -> list[dict[str, Any]]:
    """The spans that the console exporter has written between the log lines."""
    decoder, found = json.JSONDecoder(), []
    for start in [0, *(index + 1 for index, char in enumerate(log) if char == "\n")]:
        if log.startswith("{", start):
            value, _ = decoder.raw_decode(log, start)
            if "context" in value:
                found.append(value)
    return found


def test_reconciles_are_spans_whose_ids_are_in_the_log(
    cluster: Any, start_operator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")  # milliseconds: the spans come at the end
    operator = start_operator()
    cluster.apply(HELLO)
    cluster.wait(lambda: operator.lines("reconciled WebApp"), 20, "a reconcile")
    line = operator.lines("reconciled WebApp")[0]
    operator.stop()

    spans = spans_in(operator.log.read_text())
    (reconcile,) = [span for span in spans if span["context"]["span_id"] == f"0x{line['span_id']}"]
    assert reconcile["name"] == "reconcile"
    assert reconcile["context"]["trace_id"] == f"0x{line['trace_id']}"
    assert reconcile["attributes"]["kubeloop.reconcile.id"] == line["reconcile_id"]
    assert reconcile["resource"]["attributes"]["service.name"] == "webapp-operator"
    requests = [span["name"] for span in spans if span["parent_id"] == reconcile["context"]["span_id"]]
    assert requests == [
        "PATCH webapps.example.com",
        "PATCH deployments.apps",
        "PATCH webapps.example.com/status",
    ]
