"""The worker pool: threads that take keys from the queue and hand them to the engine."""

from __future__ import annotations

import logging
import math
import random
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kubeloop.backoff import as_told
from kubeloop.client import ApiError
from kubeloop.clock import Clock, SystemClock
from kubeloop.controller.engine import End, Engine, Outcome
from kubeloop.controller.meanwhile import Meanwhile
from kubeloop.controller.stuck import StuckWatch
from kubeloop.observe import fields
from kubeloop.queue import LOW_PRIORITY, Item, WorkQueue

if TYPE_CHECKING:
    from kubeloop.observe.tracing import Tracing

RESYNC_JITTER = 0.1
"""Spread of requeue_after, so that objects that started together do not all come back together."""

ROUNDED_FROM = 30.0
"""Seconds from which a requeue comes at a whole second of the clock, together with others: to wake one thread
for thirty objects costs half of what it takes to wake one thirty times."""

TROUBLES_REMEMBERED = 10_000
"""Objects in trouble of which is remembered what was said; beyond that some things are said twice."""

Report = Callable[[str, Outcome], None]


class WorkerPool:
    """Owns `size` threads named ``<name>-worker-<n>``. Start once; `stop`, then `join`."""

    def __init__(
        self,
        name: str,
        queue: WorkQueue[str],
        engine: Engine[Any],
        *,
        size: int,
        logger: logging.Logger,
        report: Report | None = None,
        on_stuck: Callable[[], None] | None = None,
        tracing: Tracing | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        meanwhile: Meanwhile[str] | None = None,
    ) -> None:
        self.size = size
        self._name = name
        self._queue = queue
        self._engine = engine
        self._logger = logger
        self._report = report
        self._tracing = tracing
        self._meanwhile: Meanwhile[str] = meanwhile or Meanwhile()
        self._clock: Clock = clock or SystemClock()
        self._rng = rng or random.Random()
        # What was last said of an object that cannot go on. Workers touch only the keys they hold.
        self._said: dict[str, str] = {}
        self._watch = StuckWatch(name, logger, on_stuck=on_stuck, clock=self._clock)
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}-worker-{n}", daemon=True) for n in range(size)
        ]

    def start(self) -> None:
        self._watch.start()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Take no more work; what is being done goes on to its end."""
        self._queue.shut_down()

    @property
    def stuck(self) -> int:
        """How many reconciles run longer than they should at this moment."""
        return self._watch.stuck

    @property
    def dead(self) -> list[str]:
        """The names of workers that have ended without being asked to."""
        return [t.name for t in self._threads if t.ident is not None and not t.is_alive()]

    def join(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds in all; whether every worker has ended."""
        deadline = self._clock.monotonic() + timeout
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(deadline - self._clock.monotonic(), 0))
        self._watch.stop()
        self._watch.join(max(deadline - self._clock.monotonic(), 0.1))
        return not any(thread.is_alive() for thread in self._threads)

    def process_next(self, timeout: float | None = None) -> bool:
        """Take one key and reconcile it on the calling thread; False if there was none."""
        item = self._queue.get(timeout)
        if item is None:
            return False
        self._meanwhile.begin(item.key)
        try:
            if self._tracing is None:
                self._process(item)
            else:
                self._process_traced(item, self._tracing)
        finally:
            self._meanwhile.end(item.key)
            self._queue.done(item.key)
        return True

    def _run(self) -> None:
        while self.process_next():
            continue

    def _process_traced(self, item: Item[str], tracing: Tracing) -> None:
        kind, attempt = self._engine.kind.resource.kind, self._queue.failures(item.key) + 1
        with tracing.reconcile(self._name, kind, item.key, attempt) as span:
            outcome = self._process(item)
            span.ended(
                outcome.end.value,
                reconcile_id=outcome.reconcile_id,
                writes=len(outcome.changes),
                error=outcome.error if outcome.end in (End.FAILED, End.TERMINAL) else None,
            )

    def _process(self, item: Item[str]) -> Outcome:
        self._watch.began(item.key)
        try:
            outcome = self._engine.process(item.key)
        except BaseException as error:  # noqa: BLE001 - a SystemExit in user code must not take a worker along
            wrapped = RuntimeError(f"{type(error).__name__}: {error}")
            wrapped.__cause__ = error
            outcome = Outcome(End.FAILED, error=wrapped)
        finally:
            self._watch.ended()
        self._settle(item, outcome)
        if self._report is not None:
            self._report(item.key, outcome)
        return outcome

    def _settle(self, item: Item[str], outcome: Outcome) -> None:
        namespace, _, name = item.key.rpartition("/")
        known: dict[str, Any] = {"ns": namespace, "name": name}
        if outcome.reconcile_id:
            known["reconcile_id"] = outcome.reconcile_id
        if outcome.error is not None:
            known["error"] = _say(outcome.error)
        if outcome.end is End.FAILED:
            told = outcome.error.retry_after if isinstance(outcome.error, ApiError) else None
            delay = self._queue.retry(
                item.key,
                priority=item.priority,
                at_least=0.0 if told is None else as_told(told, self._rng),
            )
            known |= {"retry_seconds": round(delay, 3), "failures": self._queue.failures(item.key)}
            self._logger.warning(
                "reconcile failed: %s, retrying",
                _say(outcome.error),
                extra=fields(**known),
                exc_info=outcome.error if is_bug(outcome.error) else None,
            )
            return
        self._queue.forget(item.key)
        if outcome.again:
            self._queue.add(item.key)
        if outcome.requeue_after is not None:
            seconds = outcome.requeue_after.total_seconds()
            seconds *= 1 + RESYNC_JITTER * (2 * self._rng.random() - 1)
            if seconds >= ROUNDED_FROM:
                now = self._clock.monotonic()
                seconds = math.ceil(now + seconds) - now
            self._queue.add(item.key, after=seconds, priority=LOW_PRIORITY)
        kind = self._engine.kind.resource.kind
        if outcome.end in (End.TERMINAL, End.BLOCKED):
            self._say_trouble(item.key, kind, _say(outcome.error), known)
            return
        self._said.pop(item.key, None)
        if outcome.end is End.DONE:
            level = logging.INFO if outcome.changes else logging.DEBUG
            if self._logger.isEnabledFor(level):
                extra = fields(**known, seconds=round(outcome.seconds, 4))
                self._logger.log(level, "reconciled %s", kind, extra=extra)
        elif outcome.changes:
            self._logger.info("cleaned up %s", kind, extra=fields(**known))

    def _say_trouble(self, key: str, kind: str, error: str, known: dict[str, Any]) -> None:
        """A warning when the trouble is new: events may bring an object back many times while it lasts."""
        if self._said.get(key) == error:
            self._logger.debug("%s is still in trouble", kind, extra=fields(**known))
            return
        if len(self._said) >= TROUBLES_REMEMBERED:
            self._said.clear()
        self._said[key] = error
        self._logger.warning("reconcile error: %s", error, extra=fields(**known))


def is_bug(error: BaseException | None) -> bool:
    """Whether an error speaks of a mistake in a program, and so needs its traceback; the server's refusals
    don't."""
    return isinstance(error, TypeError | AttributeError | LookupError | RuntimeError | ValueError)


def _say(error: BaseException | None) -> str:
    return str(error) or type(error).__name__
