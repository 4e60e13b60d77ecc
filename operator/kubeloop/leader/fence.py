"""The fence: may this process write, at this very moment?"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from kubeloop.clock import Clock, SystemClock


class NotLeader(Exception):
    """A write was stopped, because this process does not lead (any more, or yet)."""


class Fence:
    """Open from the first successful renewal until the deadline of the newest one; then closed for good.

    Whoever wants to write asks, just before the request is sent, and the answer is computed by the asking
    thread from the clock. No thread has to run to close the fence: a renewal that hangs, a thread that hogs
    the interpreter or a process that was stopped (SIGSTOP) for a while cannot keep it open.

    What is left is the time between the question and the arrival of the write at the server. That is what the
    difference of lease duration and renew deadline is for.

    Once `may_write` has said no to somebody after the fence was open, it never says yes again.
    """

    def __init__(self, seconds: Callable[[], float]) -> None:
        """`seconds` is the clock: see `steady_seconds`."""
        self._seconds = seconds
        self._lock = threading.Lock()  # guards changes of _until and _closed
        self._until = -math.inf  # read without the lock: one float, replaced as a whole
        self._opened = False
        self._closed = False

    def may_write(self) -> bool:
        """Whether this process leads at this moment. Thread-safe, takes under a microsecond."""
        now = self._seconds()
        if now < self._until:
            return True
        # The deadline was seen to pass: make sure that no renewal which is just arriving opens it again.
        with self._lock:
            return not self._expire(self._seconds())

    def check(self) -> None:
        """Raise `NotLeader` unless this process may write: what a client calls before each write."""
        if not self.may_write():
            raise NotLeader("this process does not hold the lease" if self._opened else "not elected yet")

    def extend(self, until: float) -> bool:
        """A renewal succeeded: stay open until `until`. False if that comes too late."""
        with self._lock:
            now = self._seconds()
            if self._opened and self._expire(now):
                return False
            if self._closed or now >= until:
                return False
            self._opened = True
            self._until = max(self._until, until)
            return True

    def close(self) -> None:
        """Forbid all writes from now on."""
        with self._lock:
            self._closed = True
            self._until = -math.inf

    @property
    def until(self) -> float:
        """When it closes if nothing is renewed, on its own clock; -inf if it is closed."""
        return self._until

    @property
    def left(self) -> float:
        """Seconds until it closes; 0 if it is closed."""
        return max(self._until - self._seconds(), 0.0)

    def _expire(self, now: float) -> bool:
        """Whether it is closed at `now`; notes it for ever if it was open before. Under the lock."""
        if now < self._until:
            return False
        if self._opened:
            self._closed = True
            self._until = -math.inf
        return True


def steady_seconds(clock: Clock) -> Callable[[], float]:
    """The seconds by which leases are judged: those of `clock`, or better ones if it is the machine's.

    CLOCK_MONOTONIC stands still while the machine is suspended, and a leader that wakes up from an hour of
    sleep would take its lease for fresh. Linux has CLOCK_BOOTTIME, which goes on. (Neither helps against a
    hypervisor that stops a virtual machine without its knowledge: there, no clock inside can tell.)
    """
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    if not isinstance(clock, SystemClock) or boottime is None:
        return clock.monotonic
    try:
        time.clock_gettime(boottime)
    except OSError:
        return clock.monotonic  # a kernel, or an emulation of one, that does not have it
    return lambda: time.clock_gettime(boottime)
