"""The work queue: prints one line with the rounds of add, get and done in a second, of one thread.

The note says what eight workers and a thread that adds make together: there it is the hand-over of the
interpreter between threads that takes its time, not the queue.
"""

from __future__ import annotations

import threading
import time
from itertools import cycle

from harness import AtLeast, best_cpu, report

from kubeloop.queue import WorkQueue

KEYS, BATCH, WORKERS = 1000, 20_000, 8
TARGET = 100_000


def rounds_of_one_thread() -> float:
    """A second of CPU, with the resync of many keys in the queue as in a running operator."""
    queue: WorkQueue[str] = WorkQueue()
    for number in range(KEYS):
        queue.add(f"team/resync-{number}", after=3600)
    turn = cycle([f"team/app-{number}" for number in range(KEYS)])

    def batch() -> int:
        for _ in range(BATCH):
            queue.add(next(turn))
            item = queue.get()
            assert item is not None
            queue.done(item.key)
        return BATCH

    return 1 / best_cpu(batch)


def rounds_of_many_threads() -> float:
    """A second of wall time: everything is added, then worked off by all."""
    best = 0.0
    for _ in range(5):
        queue: WorkQueue[str] = WorkQueue()

        def work(queue: WorkQueue[str] = queue) -> None:
            while (item := queue.get()) is not None:
                queue.done(item.key)

        workers = [threading.Thread(target=work) for _ in range(WORKERS)]
        for worker in workers:
            worker.start()
        began = time.perf_counter()
        for number in range(BATCH):
            queue.add(f"team/app-{number}")
        queue.shut_down(drain=True)
        for worker in workers:
            worker.join()
        best = max(best, BATCH / (time.perf_counter() - began))
    return best


def main() -> None:
    note = f"one thread; {WORKERS} workers and one that adds: {rounds_of_many_threads():,.0f}/s"
    report("work queue", rounds_of_one_thread(), "rounds/s", AtLeast(TARGET), note=note, form=",.0f")


if __name__ == "__main__":
    main()
