"""Notices reconciles that run far too long, and shows where they hang.

A Python thread cannot be ended from outside, so the deadline is advisory: it makes the log name the object
and the line of code, once, and a metric count it.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from kubeloop.clock import Clock
from kubeloop.observe import fields
from kubeloop.thread import ThreadOwner

RECONCILE_DEADLINE = 60.0
"""Seconds after which a reconcile is called stuck. One that only talks to the API server takes well under a
second; its slowest request, with all tries, about a minute."""


@dataclass(slots=True)
class _Running:
    key: str
    since: float
    told: bool = False


class StuckWatch(ThreadOwner):
    """Owns the thread ``<name>-stuck``, which sleeps until the oldest reconcile would be overdue.

    Workers call `began` and `ended` around each reconcile: a dictionary entry each. The thread is only woken
    by them when it had nothing to wait for, at most once per deadline.
    """

    def __init__(
        self,
        name: str,
        logger: logging.Logger,
        *,
        on_stuck: Callable[[], None] | None = None,
        clock: Clock,
        deadline: float = RECONCILE_DEADLINE,
    ) -> None:
        super().__init__(f"{name}-stuck", clock)
        self._logger = logger
        self._on_stuck = on_stuck
        self._deadline = deadline
        # Guarded by _condition.
        self._running: dict[int, _Running] = {}  # by the worker's thread
        self._idle = False  # the thread waits without a deadline

    def began(self, key: str) -> None:
        """The calling thread begins a reconcile of `key`."""
        now = self._clock.monotonic()
        with self._condition:
            self._running[threading.get_ident()] = _Running(key, now)
            if self._idle:
                self._idle = False
                self._condition.notify_all()

    def ended(self) -> None:
        """The calling thread has ended its reconcile."""
        with self._condition:
            run = self._running.pop(threading.get_ident(), None)
        if run is not None and run.told:
            seconds = round(self._clock.monotonic() - run.since, 1)
            self._logger.warning("stuck reconcile has ended", extra=fields(**_named(run), seconds=seconds))

    @property
    def stuck(self) -> int:
        """How many reconciles are overdue now."""
        now = self._clock.monotonic()
        with self._condition:
            return sum(now - run.since >= self._deadline for run in self._running.values())

    def _run(self) -> None:
        while (overdue := self._next()) is not None:
            for ident, run in overdue:
                self._tell(ident, run)

    def _next(self) -> list[tuple[int, _Running]] | None:
        """Wait for reconciles that become overdue; None at the end."""
        with self._condition:
            while not self._stopping:
                now = self._clock.monotonic()
                fresh = [(ident, run) for ident, run in self._running.items() if not run.told]
                overdue = [(ident, run) for ident, run in fresh if now - run.since >= self._deadline]
                if overdue:
                    for _, run in overdue:
                        run.told = True
                    return overdue
                oldest = min((run.since for _, run in fresh), default=None)
                self._idle = oldest is None
                self._clock.wait(self._condition, None if oldest is None else oldest + self._deadline - now)
            return None

    def _tell(self, ident: int, run: _Running) -> None:
        frame = sys._current_frames().get(ident)
        stack = "".join(traceback.format_stack(frame)) if frame is not None else "the thread has ended"
        del frame
        seconds = round(self._clock.monotonic() - run.since, 1)
        self._logger.warning("reconcile is stuck", extra=fields(**_named(run), seconds=seconds, stack=stack))
        if self._on_stuck is not None:
            self._on_stuck()


def _named(run: _Running) -> dict[str, str]:
    namespace, _, name = run.key.rpartition("/")
    return {"ns": namespace, "name": name}
