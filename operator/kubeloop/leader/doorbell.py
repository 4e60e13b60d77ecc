"""The doorbell: a standby watches the Lease, so that it hears of a release at once.

Nothing is decided here. A ring only makes the elector look at the Lease earlier than it would have; without
the right to watch, or while the watch is broken, it looks every retry period all the same.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable

from kubeloop.backoff import Backoff
from kubeloop.client import ApiError, TransportError, WatchStream
from kubeloop.clock import Clock
from kubeloop.leader.lock import LeaseLock, tells_of_vacancy
from kubeloop.observe import fields
from kubeloop.thread import ThreadOwner

BETWEEN_WATCHES = Backoff(base=1.0, cap=60.0)
"""Seconds between two watches."""

_logger = logging.getLogger("kubeloop.leader")


class Doorbell(ThreadOwner):
    """Owns the thread ``lease-doorbell``, which calls `ring` when the Lease may be free."""

    def __init__(self, lock: LeaseLock, ring: Callable[[], None], clock: Clock) -> None:
        super().__init__("lease-doorbell", clock)
        self._lock = lock
        self._ring = ring
        self._stream: WatchStream | None = None  # guarded by _condition
        self._rng = random.Random()

    def _interrupt(self) -> None:
        with self._condition:
            stream = self._stream
        if stream is not None:
            stream.close()

    def _run(self) -> None:
        failures = 0
        while not self._stopping:
            stream = self._lock.watch()
            with self._condition:
                self._stream = stream
            if self._stopping:
                return  # `stop` may have come too early to see the stream
            try:
                for line in stream:
                    failures = 0
                    if tells_of_vacancy(line):
                        self._ring()
            except (ApiError, TransportError) as error:
                failures += 1
                _logger.debug("cannot watch the Lease", extra=fields(error=str(error)))
            self._pause(BETWEEN_WATCHES.delay(max(failures, 1), self._rng))
