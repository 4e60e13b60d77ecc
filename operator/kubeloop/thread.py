"""`ThreadOwner`: the one way in which a thread of the runtime is started, stopped and waited for.

Whoever makes a thread owns it: it has a name, can be told to end from any other thread, whatever it is
waiting for, and is joined within a time. It is a daemon, so that one that hangs in somebody else's code
cannot keep the process.
"""

from __future__ import annotations

import threading

from kubeloop.clock import Clock


class ThreadOwner:
    """Owns one thread, which does `_run`: `start` it once, then `stop` and `join` from any other thread.

    `_run` waits on `_condition`, through the clock, and ends soon after `_stopping` is set. What else it may
    be waiting in, `_interrupt` ends. The condition's lock guards `_stopping`, and what subclasses say.
    """

    def __init__(self, name: str, clock: Clock) -> None:
        self._clock = clock
        self._condition = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread, once."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; does not wait for it. Any number of times, also before the start."""
        with self._condition:
            self._stopping = True
            self._condition.notify_all()
        self._interrupt()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the thread's end for `timeout` seconds; whether it has ended (also if it never ran)."""
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def _run(self) -> None:
        """What the thread does."""
        raise NotImplementedError

    def _interrupt(self) -> None:
        """End what `_run` is waiting in besides `_condition`. Called by `stop`, without the lock."""

    def _pause(self, seconds: float) -> None:
        """Wait so long, or until `stop`."""
        deadline = self._clock.monotonic() + seconds
        with self._condition:
            while not self._stopping and (left := deadline - self._clock.monotonic()) > 0:
                self._clock.wait(self._condition, left)
