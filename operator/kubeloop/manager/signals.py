"""SIGTERM and SIGINT ask for a clean stop; the second one does not wait for it."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from kubeloop.client.private_files import remove_all
from kubeloop.clock import StopEvent
from kubeloop.observe import fields

FORCED_EXIT = 1
"""Exit code after a second signal, as in controller-runtime."""

_logger = logging.getLogger("kubeloop.manager")


@contextmanager
def stop_on_signals(stop: StopEvent) -> Iterator[None]:
    """While inside, the first SIGTERM or SIGINT sets `stop` and the second ends the process at once.

    Only the main thread may enter. The previous handlers come back at the end.
    """

    def handle(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            remove_all()
            os._exit(FORCED_EXIT)
        _logger.info("stopping", extra=fields(signal=signal.Signals(number).name))
        stop.set()

    previous = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
