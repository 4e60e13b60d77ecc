"""What the process measures, under the names, labels and buckets of controller-runtime and client-go.

Dashboards and alerts made for Go operators work unchanged. What Go does not measure has the prefix
``kubeloop_``. Only sums over objects are kept: no label holds the name of one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kubeloop.client import RequestInfo
from kubeloop.controller.engine import End, Outcome
from kubeloop.controller.worker import is_bug
from kubeloop.observe.metrics import Counter, Histogram, MetricSet, Reading
from kubeloop.queue import LOW_PRIORITY, QueueStats

if TYPE_CHECKING:
    from kubeloop.cache import Informer
    from kubeloop.controller import RunningController
    from kubeloop.observe.events import EventRecorder

RECONCILE_SECONDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9),
    *(1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60),
)
"""Buckets of ``controller_runtime_reconcile_time_seconds``."""


def _exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    bounds = [start]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)  # multiplied up like client_golang, for the very same floats
    return tuple(bounds)


QUEUE_SECONDS = _exponential(1e-8, 10, 12)
"""Buckets of the workqueue's histograms."""

RESULTS = ("success", "error", "requeue", "requeue_after")

_QUEUE_LABELS = ("name", "controller")


class Telemetry:
    """All metrics of one process. The parts of the manager report to it; see `MetricSet` for the cost."""

    def __init__(self, *, host: str = "", lease: str = "", process: bool = True) -> None:
        """`host` is the API server, `lease` the name of the Lease (empty: no election)."""
        self.set = metrics = MetricSet(process=process)
        self._host = host
        self._lease = lease
        self._queues: list[RunningController] = []
        self._informers: list[Informer[Any]] = []
        self._leads = 0.0
        self._events: EventRecorder | None = None
        self._declare_queues(metrics)
        self._declare_reconciles(metrics)
        self._declare_informers(metrics)
        self._requests = metrics.counter(
            "rest_client_requests",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            ("code", "method", "host"),
        )
        for method, code in (("GET", "200"), ("PATCH", "200"), ("PATCH", "201")):
            self._requests.expect(code, method, host)
        self.refusals = metrics.counter(
            "kubeloop_fence_refusals", "Writes that were stopped because this process does not lead."
        )
        metrics.counter_from(
            "kubeloop_events",
            "Events for people, by what became of them.",
            ("outcome",),
            lambda: self._events.read() if self._events is not None else (),
        )
        if lease:
            metrics.gauge(
                "leader_election_master_status",
                "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, "
                "1 indicates master. 'name' is the string used to identify the lease.",
                ("name",),
                lambda: [((lease,), self._leads)],
            )
            self._slow_paths = metrics.counter(
                "leader_election_slowpath",
                "Total number of slow path exercised in renewing leader leases.",
                ("name",),
            )
            self._slow_paths.expect(lease)

    def _declare_queues(self, metrics: MetricSet) -> None:
        def each(value: Any) -> Any:
            return lambda: [((name, name), value(stats)) for name, stats in self._stats()]

        metrics.gauge(
            "workqueue_depth",
            "Current depth of workqueue by workqueue and priority",
            (*_QUEUE_LABELS, "priority"),
            self._depths,
        )
        metrics.counter_from(
            "workqueue_adds",
            "Total number of adds handled by workqueue",
            _QUEUE_LABELS,
            each(lambda stats: stats.adds),
        )
        metrics.gauge(
            "workqueue_unfinished_work_seconds",
            "How many seconds of work has been done that is in progress and hasn't been observed by "
            "work_duration. Large values indicate stuck threads.",
            _QUEUE_LABELS,
            each(lambda stats: sum(stats.busy)),
        )
        metrics.gauge(
            "workqueue_longest_running_processor_seconds",
            "How many seconds has the longest running processor for workqueue been running.",
            _QUEUE_LABELS,
            each(lambda stats: max(stats.busy, default=0.0)),
        )
        metrics.gauge(
            "kubeloop_workqueue_delayed",
            "Keys that wait for their time: for a resync, after a failure, or for their running reconcile.",
            _QUEUE_LABELS,
            each(lambda stats: stats.delayed),
        )
        metrics.gauge(
            "kubeloop_workqueue_failing",
            "Keys whose last reconcile failed and that wait for another try.",
            _QUEUE_LABELS,
            each(lambda stats: stats.failing),
        )
        self.queue_retries = metrics.counter(
            "workqueue_retries", "Total number of retries handled by workqueue", _QUEUE_LABELS
        )
        self.queue_waits = metrics.histogram(
            "workqueue_queue_duration_seconds",
            "How long in seconds an item stays in workqueue before being requested",
            _QUEUE_LABELS,
            QUEUE_SECONDS,
        )
        self.queue_work = metrics.histogram(
            "workqueue_work_duration_seconds",
            "How long in seconds processing an item from workqueue takes.",
            _QUEUE_LABELS,
            QUEUE_SECONDS,
        )

    def _declare_reconciles(self, metrics: MetricSet) -> None:
        one = ("controller",)
        text = "per controller"
        self.reconciles = metrics.counter(
            "controller_runtime_reconcile", f"Total number of reconciliations {text}", (*one, "result")
        )
        self.errors = metrics.counter(
            "controller_runtime_reconcile_errors", f"Total number of reconciliation errors {text}", one
        )
        self.terminal_errors = metrics.counter(
            "controller_runtime_terminal_reconcile_errors",
            f"Total number of terminal reconciliation errors {text}",
            one,
        )
        self.panics = metrics.counter(
            "controller_runtime_reconcile_panics",
            f"Total number of reconciliation panics (unexpected exceptions) {text}",
            one,
        )
        self.timeouts = metrics.counter(
            "controller_runtime_reconcile_timeouts",
            f"Total number of reconciliations that went past their deadline {text}",
            one,
        )
        self.times = metrics.histogram(
            "controller_runtime_reconcile_time_seconds",
            f"Length of time per reconciliation {text}",
            one,
            RECONCILE_SECONDS,
        )
        metrics.gauge(
            "controller_runtime_max_concurrent_reconciles",
            f"Maximum number of concurrent reconciles {text}",
            one,
            lambda: [((c.controller.name,), float(c.workers.size)) for c in self._queues],
        )
        metrics.gauge(
            "controller_runtime_active_workers",
            f"Number of currently used workers {text}",
            one,
            lambda: [((name,), float(len(stats.busy))) for name, stats in self._stats()],
        )
        metrics.gauge(
            "kubeloop_stuck_reconciles",
            "Reconciles that run longer than their deadline at this moment.",
            one,
            lambda: [((c.controller.name,), float(c.workers.stuck)) for c in self._queues],
        )
        self.writes = metrics.counter(
            "kubeloop_writes",
            "Writes made by reconciles that changed something, by what they did to which kind.",
            ("controller", "kind", "subresource", "verb"),
        )
        self.spared = metrics.counter(
            "kubeloop_writes_avoided",
            "Applies and status writes that reconciles asked for and that needed no request.",
            one,
        )
        self.repairs = metrics.counter(
            "kubeloop_drift_repairs",
            "Writes that undid what somebody else had done to an owned object.",
            ("controller", "kind"),
        )

    def _declare_informers(self, metrics: MetricSet) -> None:
        def each(value: Any) -> Any:
            return lambda: [((i.name,), float(value(i))) for i in self._informers]

        one = ("resource",)
        metrics.gauge("kubeloop_informer_synced", "Whether the cache has been filled.", one, each(_synced))
        metrics.gauge(
            "kubeloop_informer_silence_seconds",
            "Seconds since the server last said anything on the watch, bookmarks (one a minute) included."
            " The oldest, if several namespaces are watched; +Inf if it never did.",
            one,
            each(silence),
        )
        metrics.gauge("kubeloop_informer_objects", "Objects in the cache.", one, each(lambda i: len(i.store)))
        metrics.gauge(
            "kubeloop_informer_undecodable_objects",
            "Objects that cannot be read and are left out.",
            one,
            each(lambda i: len(i.undecodable)),
        )
        for name, help, attribute in (
            ("events", "Changes that handlers were told of.", "events_told"),
            ("handler_errors", "Exceptions raised by event handlers.", "handler_errors"),
            ("lists", "Lists begun; after the first, each one is a relist.", "lists"),
            ("watches", "Watches opened; they last 5 to 10 minutes if nothing goes wrong.", "watches"),
        ):
            metrics.counter_from(
                f"kubeloop_informer_{name}",
                help,
                one,
                each(lambda i, attribute=attribute: getattr(i, attribute)),
            )

    # What reports here

    def watch_queue(self, running: RunningController) -> None:
        """Measure this controller from now on; all its series start with 0."""
        name = running.controller.name
        self._queues.append(running)
        self.queue_retries.expect(name, name)
        for result in RESULTS:
            self.reconciles.expect(name, result)
        for counter in (self.errors, self.terminal_errors, self.panics, self.timeouts, self.spared):
            counter.expect(name)
        kind = running.controller.kind.resource.kind
        for subresource in ("", "status"):
            self.writes.expect(name, kind, subresource, "changed")
        for child in running.controller.owned:
            self.repairs.expect(name, child.resource.kind)
            for verb in ("created", "changed", "deleted"):
                self.writes.expect(name, child.resource.kind, "", verb)

    def queue_observer(self, name: str) -> QueueMeter:
        """The observer of the queue of the controller `name`."""
        return QueueMeter(
            name, self.queue_waits.of(name, name), self.queue_work.of(name, name), self.queue_retries
        )

    def reconcile_meter(self, name: str) -> ReconcileMeter:
        """What counts the reconciles of the controller `name`."""
        return ReconcileMeter(self, name, self.times.of(name))

    def watch_informer(self, informer: Informer[Any]) -> None:
        """Measure this informer from now on."""
        self._informers.append(informer)

    def watch_events(self, recorder: EventRecorder) -> None:
        """Measure the Events that are written."""
        self._events = recorder

    def requested(self, info: RequestInfo) -> None:
        """The client's observer."""
        self._requests.inc(str(info.code) if info.code else "<error>", info.method, self._host)

    # The election's observer

    def leading(self, leads: bool) -> None:
        self._leads = float(leads)

    def slow_path(self) -> None:
        self._slow_paths.inc(self._lease)

    def new_leader(self, holder: str) -> None:
        """Not measured: a holder's name would be an open set of labels."""

    def _stats(self) -> Iterable[tuple[str, QueueStats]]:
        return [(running.controller.name, running.queue.stats()) for running in self._queues]

    def _depths(self) -> Reading:
        depths = []
        for name, stats in self._stats():
            for priority, count in ({0: 0, LOW_PRIORITY: 0} | stats.ready).items():
                depths.append(((name, name, str(priority)), float(count)))
        return depths


class QueueMeter:
    """Implements `kubeloop.queue.QueueObserver`."""

    def __init__(self, name: str, waits: Histogram, work: Histogram, retries: Counter) -> None:
        self.taken = waits.observe
        self.finished = work.observe
        self._name = name
        self._retries = retries

    def retried(self) -> None:
        self._retries.inc(self._name, self._name)


class ReconcileMeter:
    """Counts the reconciles of one controller."""

    def __init__(self, telemetry: Telemetry, name: str, times: Histogram) -> None:
        self._telemetry = telemetry
        self._name = name
        self._times = times

    def count(self, _key: str, outcome: Outcome) -> None:
        """One reconcile has ended."""
        telemetry, name = self._telemetry, self._name
        self._times.observe(outcome.seconds)
        telemetry.reconciles.inc(name, _result(outcome))
        if outcome.spared:
            telemetry.spared.inc(name, by=outcome.spared)
        for change in outcome.changes:
            telemetry.writes.inc(name, change.kind, change.subresource, change.verb.value)
            if change.repair:
                telemetry.repairs.inc(name, change.kind)
        if outcome.end in (End.FAILED, End.TERMINAL):
            telemetry.errors.inc(name)
            if outcome.end is End.TERMINAL:
                telemetry.terminal_errors.inc(name)
            elif is_bug(outcome.error):
                telemetry.panics.inc(name)

    def stuck(self) -> None:
        """A reconcile has passed its deadline."""
        self._telemetry.timeouts.inc(self._name)


def _result(outcome: Outcome) -> str:
    if outcome.end in (End.FAILED, End.TERMINAL):
        return "error"
    if outcome.again:
        return "requeue"
    return "success" if outcome.requeue_after is None else "requeue_after"


def _synced(informer: Informer[Any]) -> bool:
    return informer.has_synced


def silence(informer: Informer[Any]) -> float:
    """Seconds since the server last said anything to `informer`, in the worst of its namespaces."""
    return max(float("inf") if s.silence is None else s.silence for s in informer.scopes)
