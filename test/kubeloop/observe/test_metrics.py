"""Instruments and their text."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kubeloop.observe.metrics import Counter, Histogram, MetricSet

OPERATOR = Path(__file__).resolve().parents[3] / "operator"


def families(metrics: MetricSet) -> dict[str, list[tuple[str, dict[str, str], float]]]:
    text = metrics.render()[0].decode()
    return {
        family.name: [(s.name, dict(s.labels), s.value) for s in family.samples]
        for family in text_string_to_metric_families(text)
    }


def test_a_series_that_is_expected_is_there_with_zero() -> None:
    metrics = MetricSet(process=False)
    counter = metrics.counter("things", "Things.", ("kind",))
    counter.expect("a")
    metrics.counter("plain", "No labels.")
    metrics.histogram("times_seconds", "Times.", ("kind",), (1.0, 2.0)).of("a")
    found = families(metrics)

    assert found["things"] == [("things_total", {"kind": "a"}, 0.0)]
    assert found["plain"] == [("plain_total", {}, 0.0)]
    assert ("times_seconds_count", {"kind": "a"}, 0.0) in found["times_seconds"]


def test_a_value_on_a_bound_belongs_to_its_bucket() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.5):
        histogram.observe(value)

    assert histogram.read() == ([("1.0", 2.0), ("2.0", 3.0), ("+Inf", 4.0)], 5.5)


def test_a_gauge_is_read_at_each_scrape() -> None:
    metrics, values = MetricSet(process=False), iter((1.0, 2.0))
    metrics.gauge("level", "Level.", (), lambda: [((), next(values))])

    assert families(metrics)["level"] == [("level", {}, 1.0)]
    assert families(metrics)["level"] == [("level", {}, 2.0)]


def test_a_gauge_that_cannot_be_read_does_not_take_the_others_along() -> None:
    def broken() -> list[tuple[tuple[str, ...], float]]:
        raise RuntimeError("no")

    metrics = MetricSet(process=False)
    metrics.gauge("broken", "Broken.", (), broken)
    metrics.gauge("fine", "Fine.", (), lambda: [((), math.inf)])

    assert families(metrics)["fine"] == [("fine", {}, math.inf)]


def test_a_name_is_declared_once() -> None:
    metrics = MetricSet(process=False)
    metrics.counter("things", "Things.")
    with pytest.raises(ValueError, match="things"):
        metrics.gauge("things", "Things.", (), list)


def test_two_sets_know_nothing_of_each_other() -> None:
    one, two = MetricSet(process=False), MetricSet(process=False)
    one.counter("things", "Things.")

    assert families(two) == {}


def test_the_process_is_measured_too() -> None:
    found = families(MetricSet())

    assert {"process_cpu_seconds", "process_resident_memory_bytes", "python_info"} <= found.keys()


def test_openmetrics_is_spoken_to_those_who_ask() -> None:
    body, content_type = MetricSet(process=False).render("application/openmetrics-text; version=1.0.0")

    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")


def test_counting_is_safe_from_many_threads() -> None:
    import threading

    counter = Counter()
    threads = [threading.Thread(target=lambda: [counter.inc("a") for _ in range(2000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert counter.value("a") == 8000


def test_the_formats_library_is_imported_by_the_first_scrape_only() -> None:
    """A pass with --once must not pay for it."""
    code = (
        "import sys, kubeloop.manager, kubeloop.manager.telemetry as t; t.Telemetry();"
        "assert 'prometheus_client' not in sys.modules; t.Telemetry().set.render();"
        "assert 'prometheus_client' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=OPERATOR)
