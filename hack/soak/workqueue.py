"""An hour of the work queue: adds, priorities, delays, failures, slow handlers, storms.

Promises:

- nothing is lost: whatever is added is handed out once more, no earlier than it is due;
- no key is handed out twice at a time;
- nobody starves: a key waits at most `wait_bound` seconds beyond its time while there is more work than
  workers, and not at all while a worker is idle;
- a key that failed waits out its delay, drawn from the schedule; an urgent add shortens that to 5 s;
- when the world is quiet, the queue is empty.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import partial

from kubeloop.queue import AGING_SECONDS, LOW_PRIORITY, URGENT_SPACING, WorkQueue
from kubeloop.queue.workqueue import RETRY_BACKOFF

from .actors import Process, ProcessClock
from .harness import Result, Worst, source, world
from .simulation import Simulation

KEYS = 40
WORKERS = 4
SLOW = 3.0
"""Seconds that the slowest handler takes, but for one that hangs now and then."""
HANG = 45.0
PRIORITIES = (LOW_PRIORITY, LOW_PRIORITY, 0, 0, 0, 10)
EPSILON = 1e-6


@dataclass
class Key:
    """What a key is owed, by a model that knows nothing of heaps."""

    due: float | None = None
    """When it may be handed out; None: it is owed nothing."""
    priority: int = 0
    floor: float = 0.0
    urgent_floor: float = 0.0
    running: bool = False
    urgent: bool = False
    failures: int = 0
    pending: list[tuple[float, int, bool]] = field(default_factory=list)
    """What was added while it ran: when due, priority, urgent."""

    def add(self, at: float, priority: int, *, urgent: bool) -> None:
        """Merge one more wish."""
        if self.due is None:
            self.due, self.priority, self.floor, self.urgent_floor = at, priority, 0.0, 0.0
            return
        if urgent:
            self.floor = min(self.floor, self.urgent_floor)
        self.due = max(min(self.due, at), self.floor)
        self.priority = max(self.priority, priority)


class Model:
    """All keys, and the judge of what the queue does."""

    def __init__(self, world: Simulation, worst: Worst) -> None:
        self.world = world
        self.worst = worst
        self.keys: dict[str, Key] = {f"ns/{number}": Key() for number in range(KEYS)}
        self.idle = 0
        self.hung = 0.0
        """Until when a handler hangs, and the bound counts one worker less."""

    def wait_bound(self) -> float:
        """Seconds that a due key waits at most: the others' head start, and everybody's one turn."""
        head_start = (max(PRIORITIES) - LOW_PRIORITY) * AGING_SECONDS
        return head_start + (KEYS / (WORKERS - 1) + 1) * SLOW

    def taken(self, key: str, priority: int) -> None:
        """A worker has got `key`."""
        known, now = self.keys[key], self.world.time
        assert not known.running, f"{key} was handed out twice at a time"
        assert known.due is not None, f"{key} was handed out although nobody had asked"
        assert known.due <= now + EPSILON, f"{key} was handed out {known.due - now:.3f} s early"
        assert priority == known.priority, f"{key} has priority {priority}, not {known.priority}"
        self.worst.keep("wait", now - known.due, self.wait_bound(), f"{key} waited")
        known.due, known.running, known.urgent = None, True, False

    def quiet(self) -> None:
        """Nobody can go on: then no key is due while a worker is idle."""
        if not self.idle:
            return
        now = self.world.time
        for key, known in self.keys.items():
            due = known.due is not None and not known.running and known.due < now - EPSILON
            assert not due, f"{key} is due, {self.idle} workers are idle, and nobody takes it"


def soak(seed: int, minutes: float) -> Result:
    """An hour of a queue with its workers."""
    worst = Worst()
    with world("workqueue", seed) as it:
        process = Process("operator")
        clock = ProcessClock(it, process)
        queue: WorkQueue[str] = WorkQueue(clock=clock, rng=source(seed, "backoff"))
        model = Model(it, worst)
        it.quiet_checks.append(model.quiet)
        day = _Day(it, queue, model, seed)
        for number in range(WORKERS):
            it.spawn(f"worker-{number}", partial(day.work, source(seed, f"worker-{number}")), process)
        for number in range(3):
            it.spawn(f"adder-{number}", partial(day.add, source(seed, f"adder-{number}")), process)
        it.spawn("storms", partial(day.storms, source(seed, "storms")), process)
        it.sleep(minutes * 60)

        day.over = True
        # The longest delay there is, and a turn for everybody.
        it.sleep(max(RETRY_BACKOFF.cap, day.longest) + model.wait_bound() + HANG)
        stats = queue.stats()
        assert len(queue) == 0, f"{len(queue)} keys are left in the queue"
        assert (stats.ready, stats.delayed, stats.failing, stats.busy) == ({}, 0, 0, []), str(stats)
        owed = [key for key, known in model.keys.items() if known.due is not None]
        assert not owed, f"lost: {owed}"
        day.drain()
        it.sleep(1 + HANG)
        assert not it.alive(process), f"still there after the end: {it.alive(process)}"
    return Result(it.history.digest, dict(it.history.counts), worst.values)


class _Day:
    """What happens to a queue."""

    longest = 120.0
    """The longest delay that anybody asks for."""

    def __init__(self, world: Simulation, queue: WorkQueue[str], model: Model, seed: int) -> None:
        self.world = world
        self.queue = queue
        self.model = model
        self.over = False
        self._names = list(model.keys)
        self._failing = source(seed, "failing")
        self._hangs = 0.0

    def put(self, key: str, after: float, priority: int, *, urgent: bool) -> None:
        """Add, and tell the model."""
        known = self.model.keys[key]
        self.world.history.note("add", f"{key} after={after:.2f} priority={priority} urgent={urgent}")
        if urgent and known.running:
            known.urgent = True
        known.add(self.world.time + after, priority, urgent=urgent)
        self.queue.add(key, after=after, priority=priority, urgent=urgent)

    def add(self, rng: random.Random) -> None:
        """Events and resyncs, sometimes many, sometimes few."""
        while not self.over:
            self.world.sleep(rng.expovariate(rng.choice((0.05, 0.5, 0.5, 2.0))))
            if self.over:
                return
            after = rng.choice((0.0, 0.0, 0.0, rng.random() * 5, rng.random() * self.longest))
            self.put(rng.choice(self._names), after, rng.choice(PRIORITIES), urgent=rng.random() < 0.2)

    def storms(self, rng: random.Random) -> None:
        """Everything at once, and one key that is touched without end."""
        while not self.over:
            self.world.sleep(60 + rng.random() * 240)
            if self.over:
                return
            if rng.random() < 0.5:
                for key in rng.sample(self._names, rng.randint(KEYS // 2, KEYS)):
                    self.put(key, 0.0, rng.choice(PRIORITIES), urgent=False)
                continue
            hot = rng.choice(self._names)
            for _ in range(rng.randint(20, 200)):
                self.put(hot, 0.0, rng.choice(PRIORITIES), urgent=rng.random() < 0.05)
                self.world.sleep(rng.random() * 0.2)

    def work(self, rng: random.Random) -> None:
        """One worker: some handlers are slow, one hangs, some fail, some ask to be called again."""
        while True:
            self.model.idle += 1
            item = self.queue.get(rng.choice((None, None, 0.5, 20.0)))
            self.model.idle -= 1
            if item is None:
                if self.over and self.drained:
                    return
                continue
            self.model.taken(item.key, item.priority)
            self.world.history.note("take", f"{item.key} waited={item.waited:.3f}")
            seconds = rng.choice((0.0, 0.01, 0.2, rng.random() * SLOW))
            if self.world.time > self._hangs and rng.random() < 0.002:
                self._hangs = self.world.time + 2 * HANG  # one at a time
                seconds = HANG
            self.world.sleep(seconds)
            known = self.model.keys[item.key]
            if not self.over and rng.random() < (0.9 if item.key in self._names[:3] else 0.15):
                self._fail(item.key, known, item.priority)
            else:
                known.failures = 0
                self.queue.forget(item.key)
                if not self.over and rng.random() < 0.5:
                    self.put(item.key, 30 + rng.random() * 60, LOW_PRIORITY, urgent=False)
            known.running = False
            self.queue.done(item.key)

    def _fail(self, key: str, known: Key, priority: int) -> None:
        known.failures += 1
        told = self._failing.choice((0.0, 0.0, 0.0, 2.0, 30.0))  # a server's Retry-After
        delay = self.queue.retry(key, priority=priority, at_least=told)
        self.world.history.note("retry", f"{key} in {delay:.2f}, at least {told}")
        full = min(RETRY_BACKOFF.cap, RETRY_BACKOFF.base * RETRY_BACKOFF.factor ** (known.failures - 1))
        low = max(full * (1 - RETRY_BACKOFF.jitter), told)
        assert low - EPSILON <= delay <= max(full, told) + EPSILON, f"{key}: {delay} is not in {low}..{full}"
        now = self.world.time
        early = now + max(min(delay, URGENT_SPACING), told)
        at = early if known.urgent else now + delay
        priority = max(priority, known.priority) if known.due is not None else priority
        known.due, known.floor, known.urgent_floor, known.priority = at, at, early, priority

    drained = False

    def drain(self) -> None:
        """Shut down with something left to do: what is due is still handed out, what is not is dropped."""
        for number, key in enumerate(self._names):
            self.put(key, 0.0 if number % 2 else 10_000.0, 0, urgent=False)
        self.drained = True
        self.queue.shut_down(drain=True)
        self.world.sleep(SLOW * KEYS)
        late = [key for key in self._names[1::2] if self.model.keys[key].due is not None]
        assert not late, f"due when the queue was shut down, and not handed out: {late}"
        self.queue.add(self._names[0])
        assert self.queue.get(1.0) is None
