"""The doorbell: a standby watches the Lease, so that it hears of a release at once.

Nothing is decided here. A ring only makes the elector look at the Lease earlier than it would have; without
the right to watch, or while the watch is broken, it looks every retry period all the same.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable

from kubeloop.backoff import Backoff
from kubeloop.client import ApiError, TransportError, WatchStream
from kubeloop.clock import Clock, StopEvent
from kubeloop.leader.lock import LeaseLock, tells_of_vacancy
from kubeloop.observe import fields

BETWEEN_WATCHES = Backoff(base=1.0, cap=60.0)
"""Seconds between two watches."""

_logger = logging.getLogger("kubeloop.leader")


class Doorbell:
    """Owns the thread ``lease-doorbell``, which calls `ring` when the Lease may be free."""

    def __init__(self, lock: LeaseLock, ring: Callable[[], None], clock: Clock) -> None:
        self._lock = lock
        self._ring = ring
        self._stop = StopEvent(clock)
        self._guard = threading.Lock()  # guards _stream
        self._stream: WatchStream | None = None
        self._rng = random.Random()
        self.thread = threading.Thread(target=self._run, name="lease-doorbell", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        """End the watch and the thread; does not wait for it."""
        self._stop.set()
        with self._guard:
            stream = self._stream
        if stream is not None:
            stream.close()

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            stream = self._lock.watch()
            with self._guard:
                self._stream = stream
            if self._stop.is_set():
                return  # `stop` may have come too early to see the stream
            try:
                for line in stream:
                    failures = 0
                    if tells_of_vacancy(line):
                        self._ring()
            except (ApiError, TransportError) as error:
                failures += 1
                _logger.debug("cannot watch the Lease", extra=fields(error=str(error)))
            self._stop.wait(BETWEEN_WATCHES.delay(max(failures, 1), self._rng))
