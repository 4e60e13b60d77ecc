"""A whole world on a clock of its own: the product's threads, one at a time, in an order drawn from a seed.

Threads that are started inside a `Simulation` become its *actors*. Only one of them runs at any moment; it
goes on until it waits for something (every wait of the product ends in `threading.Condition.wait`) and then
hands over to another one that can go on, drawn at random. When none can, time moves to the next moment for
which somebody waits. So an hour in which little happens costs little, nothing is ever waited for in vain,
and a seed gives the same history each time, as long as nobody asks the machine for the time or for
randomness.

The product knows nothing of this: while a simulation runs, `threading.Thread` and `threading.Condition` are
replaced where they start, wait, notify and join, and unseeded randomness is seeded.
"""

from __future__ import annotations

import contextlib
import faulthandler
import heapq
import random
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any

from .actors import Actor, Killed, Process
from .history import History

START = datetime(2026, 1, 1, tzinfo=UTC)
STUCK = 60.0
"""Real seconds in which nothing happens at all, after which the simulation is taken for deadlocked."""
BUSY = 200_000
"""Turns without time passing, after which the actors are taken for running in circles."""


class SimulationError(AssertionError):
    """The world came to a halt, ran in circles, or one of its threads died."""


class Simulation:
    """See the module. A context manager; the thread that enters it is an actor too.

    `checks` are called between any two turns, `quiet_checks` whenever time is about to move, that is when
    nobody has anything left to do; they raise AssertionError.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(f"{seed}/schedule")
        self.history = History(lambda: self.time)
        self.checks: list[Callable[[], None]] = []
        self.quiet_checks: list[Callable[[], None]] = []
        self.time = 0.0
        self.turns = 0
        self._seeds = random.Random(f"{seed}/seeds")
        self._real_random = random.Random
        self._real_uuid4 = uuid.uuid4
        self._local = threading.local()
        self._main = Actor("main", Process("world"))
        self._current = self._main
        self._actors: dict[threading.Thread, Actor] = {}
        self._living: dict[Actor, threading.Thread] = {}
        self._ready: list[Actor] = []
        self._timers: list[tuple[float, int, Actor, int]] = []
        self._sequence = 0
        self._waiting: dict[threading.Condition, deque[Actor]] = {}
        self._still = 0
        self._seen = -1
        self._over = False
        self._failure: BaseException | None = None
        self._real_start = threading.Thread.start
        self._real_run = threading.Thread.run
        self._real_join = threading.Thread.join
        self._real_wait = threading.Condition.wait
        self._real_notify = threading.Condition.notify
        self._real_notify_all = threading.Condition.notify_all

    # For actors

    def monotonic(self) -> float:
        """Seconds since the beginning of the world."""
        return self.time

    def now(self) -> datetime:
        """The world's wall-clock time."""
        return START + timedelta(seconds=self.time)

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        """With the two above, what makes the world itself a `kubeloop.clock.Clock`."""
        if timeout is None or timeout > 0:
            condition.wait(timeout)

    def sleep(self, seconds: float) -> None:
        """Let so much time pass for the calling actor."""
        self._park(max(seconds, 0.0), None)

    def spawn(self, name: str, function: Callable[[], object], process: Process | None = None) -> Actor:
        """Start a thread of `process` (default: of the world itself)."""
        thread = threading.Thread(target=function, name=name, daemon=True)
        caller = self._current
        before, caller.process = caller.process, process or self._main.process
        try:
            thread.start()
        finally:
            caller.process = before
        return self._actors[thread]

    def kill(self, process: Process) -> None:
        """End all threads of a process wherever they are; they come no further than to their next wait."""
        process.killed = True
        process.suspended = False
        for actor in list(self._living):
            if actor.process is process:
                self._wake(actor)

    def alive(self, process: Process) -> list[str]:
        """The names of the threads of a process that have not ended."""
        return [actor.name for actor in self._living if actor.process is process]

    # The world's own life

    def __enter__(self) -> Simulation:
        self._local.actor = self._main
        _replace(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        failure, self._failure = self._failure, None
        try:
            self._wind_up()
        finally:
            _restore(self)
        if error is None and failure is not None:
            raise failure

    def _wind_up(self) -> None:
        """End every actor; they get a second of the world's time."""
        self._over = True
        self.checks.clear()
        self.quiet_checks.clear()
        for _ in range(20):
            if not self._living:
                break
            for actor in list(self._living):
                actor.process.killed = True
                actor.process.suspended = False
                self._wake(actor)
            with contextlib.suppress(Exception):
                self._park(0.05, None)
        for thread, actor in self._actors.items():
            if actor.done:
                self._real_join(thread)

    def _park(self, timeout: float | None, condition: threading.Condition | None) -> bool:
        """Give the turn away until notified, or until `timeout` is over; whether it was notified."""
        actor = self._current
        if actor.process.killed and actor is not self._main:
            raise Killed
        actor.notified = False
        actor.ticket += 1
        actor.condition = condition
        if timeout is not None:
            self._sequence += 1
            heapq.heappush(self._timers, (self.time + timeout, self._sequence, actor, actor.ticket))
        if condition is not None:
            self._waiting.setdefault(condition, deque()).append(actor)
        self._pass_turn(actor)
        if actor is self._main and self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if actor.process.killed and actor is not self._main:
            raise Killed
        return actor.notified

    def _pass_turn(self, actor: Actor) -> None:
        following = self._choose()
        if following is actor:
            return
        self._current = following
        following.go.release()
        if actor is not self._main:
            actor.go.acquire()
            return
        while not actor.go.acquire(timeout=STUCK):
            if self._still_stuck():
                faulthandler.dump_traceback(all_threads=True)
                raise SimulationError(f"an actor ({self._current.name}) is blocked for good")

    def _still_stuck(self) -> bool:
        before, self._seen = self._seen, self.turns
        return before == self.turns

    def _choose(self) -> Actor:
        """Whose turn is next; moves time if nobody can go on."""
        self.turns += 1
        self._still += 1
        if self._failure is not None:
            return self._fail()
        try:
            for check in self.checks:
                check()
            while True:
                if found := [actor for actor in self._ready if not actor.process.suspended]:
                    if self._still > BUSY:
                        self._still = 0
                        raise SimulationError(f"{found[0].name} and others run in circles")
                    chosen = found[0] if len(found) == 1 else self.rng.choice(found)
                    self._ready.remove(chosen)
                    return chosen
                for check in self.quiet_checks:
                    check()
                self._move_time()
        except Exception as failure:  # noqa: BLE001 - whatever it is, the turn must go to somebody
            self._failure = failure
            return self._fail()

    def _fail(self) -> Actor:
        """It is for the main thread to raise the failure, wherever it is."""
        self._drop(self._main)
        if self._main in self._ready:
            self._ready.remove(self._main)
        return self._main

    def _move_time(self) -> None:
        while self._timers:
            when, _, actor, ticket = heapq.heappop(self._timers)
            if ticket != actor.ticket or actor.done:
                continue
            if when > self.time:
                self.time = when
                self._still = 0
            self._drop(actor)
            self._ready.append(actor)
            return
        raise SimulationError("everybody waits for ever")

    def _wake(self, actor: Actor) -> None:
        if actor is not self._current and actor not in self._ready:
            self._drop(actor)
            self._ready.append(actor)

    def _drop(self, actor: Actor) -> None:
        """It waits no longer."""
        actor.ticket += 1
        if actor.condition is not None:
            waiting = self._waiting[actor.condition]
            waiting.remove(actor)
            if not waiting:
                del self._waiting[actor.condition]
            actor.condition = None

    # What stands in for `threading`

    def actor(self) -> Actor | None:
        """The calling thread, if it is an actor."""
        found: Actor | None = getattr(self._local, "actor", None)
        return found

    def start_thread(self, thread: threading.Thread) -> None:
        caller = self.actor()
        if caller is not None:
            self._actors[thread] = actor = Actor(thread.name, caller.process)
            self._living[actor] = thread
            self._ready.append(actor)
        # Starting waits for the thread's first sign of life, which it gives without having the turn.
        self._local.actor = None
        try:
            self._real_start(thread)
        finally:
            self._local.actor = caller

    def run_thread(self, thread: threading.Thread) -> None:
        actor = self._actors.get(thread)
        if actor is None:
            self._real_run(thread)
            return
        self._local.actor = actor
        actor.go.acquire()
        try:
            if not actor.process.killed:
                self._real_run(thread)
        except Killed:
            if not self._over:
                self.history.note("end", f"{actor} was killed")
        except BaseException as error:  # noqa: BLE001 - a thread that dies is what a soak is there to find
            if not actor.process.killed:
                self._failure = self._failure or _died(actor, error)
        finally:
            actor.done = True
            del self._living[actor]
            for joiner in list(actor.joiners):
                self._wake(joiner)
            following = self._choose()
            self._current = following
            following.go.release()

    def join_thread(self, thread: threading.Thread, timeout: float | None) -> None:
        caller, actor = self.actor(), self._actors.get(thread)
        if caller is None or actor is None:
            self._real_join(thread, timeout)
            return
        deadline = None if timeout is None else self.time + timeout
        while not actor.done and (deadline is None or self.time < deadline):
            actor.joiners.append(caller)
            try:
                self._park(None if deadline is None else deadline - self.time, None)
            finally:
                actor.joiners.remove(caller)
        if actor.done:
            self._real_join(thread)

    def wait_for(self, condition: threading.Condition, timeout: float | None) -> bool:
        if self.actor() is None:
            return bool(self._real_wait(condition, timeout))
        lock: Any = condition
        saved = lock._release_save()  # an RLock may be held several times over
        try:
            return self._park(timeout, condition)
        finally:
            lock._acquire_restore(saved)

    def notify(self, condition: threading.Condition, count: int | None) -> None:
        if count is None:
            self._real_notify_all(condition)
        else:
            self._real_notify(condition, count)
        if self.actor() is None:
            return
        waiting = self._waiting.get(condition)
        for actor in list(waiting or ())[:count]:
            actor.notified = True
            self._wake(actor)

    def seeded(self) -> Iterator[int]:
        """Seeds for whoever asks for randomness without one."""
        while True:
            yield self._seeds.getrandbits(64)

    def uuid4(self) -> uuid.UUID:
        return uuid.UUID(int=self._seeds.getrandbits(128), version=4)


def _died(actor: Actor, error: BaseException) -> SimulationError:
    died = SimulationError(f"{actor} died: {type(error).__name__}: {error}")
    died.__cause__ = error
    return died


def _replace(world: Simulation) -> None:
    """Put the world under `threading` and `random`."""
    if getattr(threading.Thread.start, "simulated", False):
        raise RuntimeError("there is a simulation already")

    def start(thread: threading.Thread) -> None:
        world.start_thread(thread)

    start.simulated = True  # type: ignore[attr-defined]
    seeds = world.seeded()

    class Seeded(random.Random):
        def __init__(self, x: Any = None) -> None:
            super().__init__(next(seeds) if x is None else x)

    methods: list[tuple[Any, str, Any]] = [
        (threading.Thread, "start", start),
        (threading.Thread, "run", lambda thread: world.run_thread(thread)),
        (threading.Thread, "join", lambda thread, timeout=None: world.join_thread(thread, timeout)),
        (threading.Condition, "wait", lambda self, timeout=None: world.wait_for(self, timeout)),
        (threading.Condition, "notify", lambda self, n=1: world.notify(self, n)),
        (threading.Condition, "notify_all", lambda self: world.notify(self, None)),
        (random, "Random", Seeded),
        (uuid, "uuid4", world.uuid4),
    ]
    for owner, name, replacement in methods:
        setattr(owner, name, replacement)


def _restore(world: Simulation) -> None:
    methods: list[tuple[Any, str, Any]] = [
        (threading.Thread, "start", world._real_start),
        (threading.Thread, "run", world._real_run),
        (threading.Thread, "join", world._real_join),
        (threading.Condition, "wait", world._real_wait),
        (threading.Condition, "notify", world._real_notify),
        (threading.Condition, "notify_all", world._real_notify_all),
        (random, "Random", world._real_random),
        (uuid, "uuid4", world._real_uuid4),
    ]
    for owner, name, original in methods:
        setattr(owner, name, original)
