"""The queue among threads."""

from __future__ import annotations

import random
import threading
from collections import Counter

import pytest

from kubeloop.backoff import Backoff
from kubeloop.clock import FakeClock, SystemClock
from kubeloop.queue import LOW_PRIORITY, WorkQueue


def start(target: object, *args: object) -> threading.Thread:
    thread = threading.Thread(target=target, args=args)  # type: ignore[arg-type]
    thread.start()
    return thread


class CountingClock(SystemClock):
    """Counts how often somebody begins to wait."""

    def __init__(self) -> None:
        self.waits = 0
        self._changed = threading.Condition()

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        with self._changed:
            self.waits += 1
            self._changed.notify_all()
        super().wait(condition, timeout)

    def await_waits(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.waits >= count, 5)


def test_no_key_is_ever_with_two_workers_and_none_is_lost() -> None:
    """R0.23, go-anchors 6.1: eight workers, four producers, ten keys."""
    queue: WorkQueue[str] = WorkQueue()
    busy: Counter[str] = Counter()
    last_seen: dict[str, int] = {}
    latest: dict[str, int] = {}
    clashes = []

    def work() -> None:
        while (item := queue.get()) is not None:
            busy[item.key] += 1
            if busy[item.key] > 1:
                clashes.append(item.key)
            last_seen[item.key] = latest[item.key]
            busy[item.key] -= 1
            queue.done(item.key)

    def produce(seed: int) -> None:
        rng = random.Random(seed)
        for n in range(2000):
            key = f"k{rng.randrange(10)}"
            latest[key] = n
            queue.add(key)

    workers = [start(work) for _ in range(8)]
    producers = [start(produce, seed) for seed in range(4)]
    for thread in producers:
        thread.join()
    assert queue.wait_quiet(0.0, 10.0)
    queue.shut_down()
    for thread in workers:
        thread.join(5)

    assert not clashes
    assert last_seen == latest


@pytest.mark.parametrize("delay", [0.5, 300.0])
def test_a_delayed_key_comes_out_when_its_time_has_come(delay: float) -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add("a", after=delay)

    assert queue.get(timeout=0) is None
    clock.advance(delay)
    item = queue.get(timeout=0)

    assert item is not None
    assert item.key == "a"


def test_somebody_always_watches_the_clock_for_delayed_keys() -> None:
    """The worker that waited for a delayed key takes other work: another one must take over the watch."""
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    got: list[str] = []
    arrived = threading.Semaphore(0)
    release = threading.Event()

    def work() -> None:
        while (item := queue.get()) is not None:
            got.append(item.key)
            arrived.release()
            if item.key.startswith("slow"):
                release.wait(10)
            queue.done(item.key)

    workers = [start(work) for _ in range(3)]
    queue.add("delayed", after=10.0)
    queue.add("slow1")
    queue.add("slow2")
    assert arrived.acquire(timeout=5)
    assert arrived.acquire(timeout=5)
    queue.add("earlier", after=5.0)
    for _ in range(40):  # time passes in many small steps, whoever is waiting at that moment
        clock.advance(0.25)
    came = arrived.acquire(timeout=5) and arrived.acquire(timeout=5)
    release.set()
    queue.shut_down()
    for thread in workers:
        thread.join(5)

    assert came
    assert set(got) == {"slow1", "slow2", "delayed", "earlier"}


def test_a_worker_that_gives_up_waiting_leaves_the_watch_to_another() -> None:
    clock = CountingClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add("delayed", after=0.2)
    hurried = start(queue.get, 0.05)
    clock.await_waits(1)  # it watches the clock, so the next one does not
    patient = start(queue.get)
    hurried.join(5)
    patient.join(5)
    served = not patient.is_alive()
    queue.shut_down()

    assert served


def test_no_worker_is_woken_for_what_is_later_than_what_is_watched_for() -> None:
    """A resync comes and goes without the other workers: that is what an idle operator does all day."""
    clock = CountingClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    workers = [start(queue.get) for _ in range(4)]
    clock.await_waits(4)
    queue.add("first", after=3600.0)
    clock.await_waits(5)
    for number in range(20):
        queue.add(f"later-{number}", after=7200.0)
        threading.Event().wait(0.005)  # whoever was woken has time to wait again
    queue.add("earlier", after=1800.0)
    clock.await_waits(6)
    for number in range(4):
        queue.add(f"now-{number}")
    for worker in workers:
        worker.join(5)

    # Whoever watched the clock and takes a key wakes another one to watch in its place.
    assert clock.waits <= 6 + 4
    assert not any(worker.is_alive() for worker in workers)


def test_failures_in_a_row_wait_longer_and_longer_and_success_starts_afresh() -> None:
    """R0.13."""
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock, backoff=Backoff(1.0, 60.0, jitter=0.0))
    delays = []
    queue.add("a")
    for _ in range(9):
        assert queue.get(timeout=0) is not None
        delays.append(queue.retry("a"))
        queue.done("a")
        clock.advance(delays[-1])
    assert delays == [1, 2, 4, 8, 16, 32, 60, 60, 60]

    queue.forget("a")

    assert queue.retry("a") == 1


def test_a_spec_change_during_the_failing_reconcile_shortens_the_wait() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock, backoff=Backoff(60.0, 60.0, jitter=0.0))
    queue.add("a")
    assert queue.get(timeout=0) is not None
    queue.add("a", urgent=True)
    queue.retry("a")
    queue.done("a")

    clock.advance(5.0)

    assert queue.get(timeout=0) is not None


def test_shutdown_wakes_everybody_and_drops_the_rest() -> None:
    queue: WorkQueue[str] = WorkQueue()
    threads = [start(queue.get) for _ in range(4)]
    queue.shut_down()
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()
    queue.add("late")

    assert queue.get() is None


def test_draining_hands_out_what_is_due_and_nothing_else() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("due")
    queue.add("later", after=100.0)
    queue.shut_down(drain=True)

    item = queue.get()
    assert item is not None
    assert item.key == "due"
    assert queue.get() is None


def test_quiet_means_nothing_due_and_nobody_busy_for_a_while() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add("resync", after=300.0)
    assert not queue.wait_quiet(1.0, 0.0)
    clock.advance(1.0)

    assert queue.wait_quiet(1.0, 0.0)


def test_absurd_delays_do_not_kill_the_waiting_thread() -> None:
    """kube-rs#1772; Python's waits raise OverflowError past 292 years."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", after=1e12)
    thread = start(queue.get)
    queue.add("b")
    thread.join(5)

    assert not thread.is_alive()


def test_stats_tell_what_waits_what_is_delayed_and_what_fails() -> None:
    """The workqueue's metrics: depth by priority, adds without merged ones, unfinished work."""
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add("a")
    queue.add("a")  # merged: one add
    queue.add("b", priority=LOW_PRIORITY)
    queue.add("later", after=60.0)
    assert queue.get(timeout=0) is not None
    queue.retry("a")
    clock.advance(2.0)
    stats = queue.stats()

    assert stats.ready == {LOW_PRIORITY: 1}
    assert (stats.delayed, stats.failing, stats.adds, stats.busy) == (2, 1, 2, [2.0])


def test_a_raised_priority_moves_the_key_and_is_no_second_add() -> None:
    """Go anchors 6 (15)."""
    queue: WorkQueue[str] = WorkQueue(clock=FakeClock())
    queue.add("a", priority=LOW_PRIORITY)
    queue.add("a", priority=0)

    assert queue.stats().ready == {0: 1}
    assert queue.stats().adds == 1


def test_a_delayed_key_counts_as_added_when_its_time_has_come() -> None:
    clock = FakeClock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add("a", after=10.0)
    assert queue.stats().adds == 0
    clock.advance(10.0)

    assert queue.stats().adds == 1
    assert queue.stats().ready == {0: 1}


def test_after_shutdown_nothing_is_left_in_the_depth() -> None:
    """Go anchors 6 (15)."""
    queue: WorkQueue[str] = WorkQueue(clock=FakeClock())
    queue.add("a")
    queue.shut_down()
    queue.add("b")

    assert queue.stats().ready == {}


def test_the_observer_hears_of_waits_work_and_retries() -> None:
    class Observer:
        def __init__(self) -> None:
            self.heard: list[object] = []

        def taken(self, waited: float) -> None:
            self.heard.append(("taken", waited))

        def finished(self, worked: float) -> None:
            self.heard.append(("finished", worked))

        def retried(self) -> None:
            self.heard.append("retried")

    clock, observer = FakeClock(), Observer()
    queue: WorkQueue[str] = WorkQueue(clock=clock, observer=observer)
    queue.add("a")
    clock.advance(3.0)
    queue.get(timeout=0)
    clock.advance(1.0)
    queue.retry("a")
    queue.done("a")

    assert observer.heard == [("taken", 3.0), "retried", ("finished", 1.0)]
