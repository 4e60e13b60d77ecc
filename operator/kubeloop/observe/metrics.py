"""Metrics: numbers kept in plain objects, and turned into Prometheus' text only when somebody asks.

Counting must cost next to nothing, because it happens in every reconcile; a histogram of prometheus-client
looks at up to forty buckets under a lock for each value. So the instruments here are a dictionary or a list
and a lock, and prometheus-client does what it is best at, the formats. It is imported by the first scrape:
a pass with ``--once`` never pays for it.

Rules, kept by `MetricSet`: every series that can be foreseen is there from the start with 0, label values
come from closed sets, and no label ever holds the name of an object (controller-runtime#1423: a URL as a
label made five million series).
"""

from __future__ import annotations

import logging
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Labels = tuple[str, ...]
Reading = Iterable[tuple[Labels, float]]

_logger = logging.getLogger("kubeloop.observe")


class Counter:
    """Only goes up. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _values
        self._values: dict[Labels, float] = {}

    def expect(self, *labels: str) -> None:
        """Have the series of these label values from the start."""
        with self._lock:
            self._values.setdefault(labels, 0.0)

    def inc(self, *labels: str, by: float = 1.0) -> None:
        """Count one more, or `by` more."""
        with self._lock:
            self._values[labels] = self._values.get(labels, 0.0) + by

    def value(self, *labels: str) -> float:
        """The count so far."""
        with self._lock:
            return self._values.get(labels, 0.0)

    def read(self) -> Reading:
        """All series."""
        with self._lock:
            return list(self._values.items())


class Histogram:
    """One series of values in buckets. Thread-safe."""

    __slots__ = ("_counts", "_lock", "_sum", "bounds")

    def __init__(self, bounds: Sequence[float]) -> None:
        """`bounds` are the upper, inclusive bounds of the buckets, rising; +Inf comes by itself."""
        self.bounds = tuple(bounds)
        self._lock = threading.Lock()  # guards _counts and _sum
        self._counts = [0] * (len(self.bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count `value` in."""
        bucket = bisect_left(self.bounds, value)
        with self._lock:
            self._counts[bucket] += 1
            self._sum += value

    def read(self) -> tuple[list[tuple[str, float]], float]:
        """The cumulated buckets as (bound, count), and the sum of all values."""
        with self._lock:
            counts, total = list(self._counts), self._sum
        running = 0
        buckets = []
        for bound, count in zip([*self.bounds, float("inf")], counts, strict=True):
            running += count
            buckets.append((_bound(bound), float(running)))
        return buckets, total


@dataclass(frozen=True, slots=True)
class _Simple:
    kind: str  # "counter" or "gauge"
    name: str
    help: str
    labels: tuple[str, ...]
    read: Callable[[], Reading]


@dataclass(frozen=True, slots=True)
class _Buckets:
    name: str
    help: str
    labels: tuple[str, ...]
    bounds: tuple[float, ...]
    series: dict[Labels, Histogram]


class MetricSet:
    """Declares metrics and writes them out. Nothing here is global: two sets know nothing of each other.

    `process` adds what prometheus-client knows of the process (``process_*``, ``python_*``).
    """

    def __init__(self, *, process: bool = True) -> None:
        self._process = process
        self._metrics: dict[str, _Simple | _Buckets] = {}
        self._lock = threading.Lock()  # guards _registry
        self._registry: Any = None

    def counter(self, name: str, help: str, labels: Sequence[str] = ()) -> Counter:
        """A counter; `name` without its ``_total``."""
        counter = Counter()
        if not labels:
            counter.expect()
        self._declare(_Simple("counter", name, help, tuple(labels), counter.read))
        return counter

    def counter_from(self, name: str, help: str, labels: Sequence[str], read: Callable[[], Reading]) -> None:
        """A counter that somebody else keeps: `read` is called at each scrape."""
        self._declare(_Simple("counter", name, help, tuple(labels), read))

    def gauge(self, name: str, help: str, labels: Sequence[str], read: Callable[[], Reading]) -> None:
        """A value that is looked up at each scrape by `read`."""
        self._declare(_Simple("gauge", name, help, tuple(labels), read))

    def histogram(self, name: str, help: str, labels: Sequence[str], bounds: Sequence[float]) -> _Family:
        """A histogram; ``.of(*label_values)`` makes a series of it."""
        family = _Buckets(name, help, tuple(labels), tuple(bounds), {})
        self._declare(family)
        return _Family(family)

    def names(self) -> set[str]:
        """The names of all metrics, counters without their ``_total``; not those of the process."""
        return set(self._metrics)

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """All metrics as text, and its content type: OpenMetrics if `accept` asks for it."""
        from prometheus_client import exposition

        encode, content_type = exposition.choose_encoder(accept)
        return encode(self._collectors()), content_type

    def _declare(self, metric: _Simple | _Buckets) -> None:
        if metric.name in self._metrics:
            raise ValueError(f"metric {metric.name} is declared twice")
        self._metrics[metric.name] = metric

    def _collectors(self) -> Any:
        from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

        with self._lock:
            if self._registry is None:
                registry = CollectorRegistry()
                registry.register(self)
                if self._process:
                    for collector in (ProcessCollector, PlatformCollector, GCCollector):
                        collector(registry=registry)
                self._registry = registry
            return self._registry

    def describe(self) -> Iterable[Any]:
        """Nothing: prometheus-client would otherwise collect everything just to learn the names."""
        return ()

    def collect(self) -> Iterator[Any]:
        """The metric families, as prometheus-client asks for them."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        for metric in list(self._metrics.values()):
            if isinstance(metric, _Buckets):
                histogram = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
                for labels, series in sorted(metric.series.items()):
                    buckets, total = series.read()
                    histogram.add_metric(list(labels), buckets, total)
                yield histogram
                continue
            make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family = make(metric.name, metric.help, labels=metric.labels)
            for labels, value in _readings(metric):
                family.add_metric(list(labels), value)
            yield family


class _Family:
    """The series of one histogram."""

    def __init__(self, family: _Buckets) -> None:
        self._family = family

    def of(self, *labels: str) -> Histogram:
        """The series with these label values; it is there from now on."""
        return self._family.series.setdefault(labels, Histogram(self._family.bounds))


def _readings(metric: _Simple) -> Reading:
    """What a metric reads now. One that cannot be read must not take all others along."""
    try:
        return sorted(metric.read())
    except Exception:
        _logger.exception("a metric cannot be read", extra={"fields": {"metric": metric.name}})
        return ()


def _bound(bound: float) -> str:
    return "+Inf" if bound == float("inf") else repr(float(bound))
