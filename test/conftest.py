"""For every test: no thread outlives the test that started it, and a busy machine is no failure."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

GRACE = 5.0
"""Seconds that a thread which was told to stop gets to end."""


def _describe(thread: threading.Thread) -> str:
    frame = sys._current_frames().get(thread.ident or 0)
    where = "".join(traceback.format_stack(frame)[-4:]) if frame else "  (just ended)\n"
    return f"{thread.name} (daemon={thread.daemon}):\n{where}"


@pytest.fixture(autouse=True)
def no_leaked_threads() -> Iterator[None]:
    """Fail the test that leaves threads behind: each must have an owner that stopped and joined it.

    Threads of wider fixtures are older than this fixture, so only the test's own are looked at.
    """
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + GRACE
    leaked = [thread for thread in threading.enumerate() if thread not in before]
    for thread in leaked:
        thread.join(max(0.0, deadline - time.monotonic()))
    alive = [thread for thread in leaked if thread.is_alive()]
    if alive:
        pytest.fail("leaked threads:\n" + "\n".join(map(_describe, alive)), pytrace=False)
