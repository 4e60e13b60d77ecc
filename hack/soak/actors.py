"""Who acts in a simulation: threads, and the processes that they belong to."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Killed(SystemExit):
    """Raised in the threads of a process that was killed, where they wait. Nothing may handle it but
    `finally` clauses, which is what distinguishes it from a real SIGKILL; they reach no server any more."""


@dataclass(eq=False)
class Process:
    """Threads that are killed, and suspended, together."""

    name: str
    killed: bool = False
    suspended: bool = False
    """As after SIGSTOP: its threads do nothing, its clocks go on."""


@dataclass(eq=False)
class Actor:
    """A thread of the simulation."""

    name: str
    process: Process
    go: threading.Lock = field(default_factory=lambda: _taken())
    """Released by whoever hands the turn over to it."""
    ticket: int = 0
    """Timers of an earlier wait hold a lower number."""
    condition: threading.Condition | None = None
    notified: bool = False
    done: bool = False
    joiners: list[Actor] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.process.name}/{self.name}"


def _taken() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


class Time(Protocol):
    """The world's time."""

    def monotonic(self) -> float: ...
    def now(self) -> datetime: ...
    def wait(self, condition: threading.Condition, timeout: float | None) -> None: ...


class ProcessClock:
    """A `kubeloop.clock.Clock` of one process: it may be off, run too fast or slow, and its wall clock jump.

    Asking it ends the thread of a process that was killed, so that none goes on for long.
    """

    def __init__(self, world: Time, process: Process, *, rate: float = 1.0, offset: float = 0.0) -> None:
        self._world = world
        self._process = process
        self._rate = rate
        self._offset = offset
        self.wall = 0.0
        """Seconds by which the wall clock is wrong."""

    def monotonic(self) -> float:
        if self._process.killed:
            raise Killed
        return self.steady

    @property
    def steady(self) -> float:
        """The same for those who look on from outside."""
        return self._offset + self._world.monotonic() * self._rate

    def now(self) -> datetime:
        return (self._world.now() + timedelta(seconds=self.wall)).astimezone(UTC)

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        self._world.wait(condition, None if timeout is None else timeout / self._rate)
