"""`LeaderElector`: the threads around the core."""

from __future__ import annotations

import logging
import random
import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from kubeloop.clock import Clock, SystemClock
from kubeloop.leader.actions import Action, Event, Failed, Now, Over, Sleep, Stop, Tick
from kubeloop.leader.core import ElectorCore, Phase
from kubeloop.leader.doorbell import Doorbell
from kubeloop.leader.fence import Fence, steady_seconds
from kubeloop.leader.lock import LeaseLock
from kubeloop.leader.settings import ElectionSettings
from kubeloop.leader.view import View
from kubeloop.observe import fields

HEALTH_TIMEOUT = 20.0
"""Seconds beyond the lease duration before the health check fails (as client-go's users set it)."""

_logger = logging.getLogger("kubeloop.leader")


class ElectionObserver(Protocol):
    """Told of what happens, for metrics; called from the election's threads, must be quick and not raise."""

    def leading(self, leads: bool) -> None:
        """``leader_election_master_status``: this process leads now, or no longer."""
        ...

    def slow_path(self) -> None:
        """``leader_election_slowpath_total``: a renewal needed more than one request."""
        ...

    def new_leader(self, holder: str) -> None:
        """Somebody else, or nobody (empty), holds the lease now, as far as is known here."""
        ...


class LeaderElector:
    """One candidate. Start once; `stop` and `join` from any thread, callbacks included.

    Two threads: ``lease`` does the requests, ``lease-watchdog`` only watches the clock and makes the calls of
    `on_started` and `on_lost`, in this order, so that neither a hanging request nor a slow callback delays
    the other. (A third one, ``lease-doorbell``, exists while this process is a standby.)

    `on_started` is called once, when this process begins to lead, and should return soon; if it raises, the
    lease counts as lost. `on_lost` is called at most once, with the reason, when it does not lead any more
    without having been stopped; the process should then exit non-zero without waiting for anything.
    """

    def __init__(
        self,
        lock: LeaseLock,
        settings: ElectionSettings,
        *,
        clock: Clock | None = None,
        on_started: Callable[[], None] | None = None,
        on_lost: Callable[[str], None] | None = None,
        observer: ElectionObserver | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.settings = settings
        self._lock = lock
        self._clock: Clock = clock or SystemClock()
        self._seconds = steady_seconds(self._clock)
        self.fence = Fence(self._seconds)
        self._on_started = on_started
        self._on_lost = on_lost
        self._observer = observer
        self._core = ElectorCore(lock.namespace, lock.name, settings, rng)
        self._view = View(settings.identity)
        # One condition guards everything below; both threads wait on it.
        self._condition = threading.Condition()
        self._calls: deque[Callable[[], None]] = deque()  # callbacks that are due
        self._led = False
        self._lost = ""  # why, once it is
        self._stopping = False
        self._release = True
        self._rung = False
        self._finished = False  # the lease thread will do nothing more
        self._threads = [
            threading.Thread(target=self._run, name="lease", daemon=True),
            threading.Thread(target=self._watch_clock, name="lease-watchdog", daemon=True),
        ]
        self._doorbell = Doorbell(lock, self._ring, self._clock)
        if observer is not None:
            observer.leading(False)

    # For others

    def may_write(self) -> bool:
        """Whether this process leads at this moment: see `Fence.may_write`."""
        return self.fence.may_write()

    @property
    def lost(self) -> str:
        """Why this process does not lead any more although nobody stopped it; empty if that is not so."""
        return self._lost

    @property
    def view(self) -> View:
        """Who leads, as known here: for the log, a status page, a health check."""
        return self._view

    def describe(self) -> str:
        """One sentence for people: who leads, and since when."""
        return self._view.describe(self._seconds(), leads=self.may_write(), lost=self._lost)

    def unhealthy(self, timeout: float = HEALTH_TIMEOUT) -> str:
        """What a liveness check should say; empty while all is well.

        That is: this process led, did not renew for the lease duration and `timeout` seconds, was not
        stopped, and still lives (kubernetes/client-go#1155: it would sit idle for ever).
        """
        if not self._led or self._stopping:
            return ""
        age = self._seconds() - self._core.renewed
        if age <= self.settings.lease_duration + timeout:
            return ""
        return f"the lease was not renewed for {age:.0f} s, and the process has not ended"

    # Life

    def start(self) -> None:
        """Begin to take part."""
        for thread in self._threads:
            thread.start()
        self._doorbell.start()

    def stop(self, *, release: bool = True) -> None:
        """Close the fence and give up; `join` waits for the release of the lease.

        Only call it with `release` when no write can be under way any more, since a successor starts at once.
        """
        with self._condition:
            if not self._stopping and not self._lost:
                if self._led and not self.fence.may_write():
                    self._lose_locked("not renewed in time")
                self._stopping = True
                self._release = release
                if self._observer is not None and not self._lost:
                    self._observer.leading(False)
            self.fence.close()
            self._condition.notify_all()
        self._doorbell.stop()

    def join(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds in all; whether every thread has ended."""
        deadline = self._clock.monotonic() + timeout
        others = [thread for thread in self._threads if thread is not threading.current_thread()]
        for thread in others:
            if thread.ident is not None:
                thread.join(max(deadline - self._clock.monotonic(), 0.0))
        ended = self._doorbell.join(max(deadline - self._clock.monotonic(), 0.0))
        return ended and not any(thread.is_alive() for thread in others)

    # The lease thread

    def _run(self) -> None:
        try:
            self._take_part()
        except Exception as error:
            # A fault in here must not leave a process behind that believes to lead while nobody renews.
            _logger.exception("leader election failed")
            with self._condition:
                self._lose_locked(f"leader election failed: {error!r}")
        finally:
            self.fence.close()
            with self._condition:
                self._finished = True
                self._condition.notify_all()
            self._doorbell.stop()
            self._lock.close()

    def _take_part(self) -> None:
        event: Event = Tick()
        told = False
        while True:
            if self._stopping and not told:
                told = True
                self._step(event)
                event = Stop(self._release)
            action = self._step(event)
            if self._lost or isinstance(action, Over):
                return
            event = self._sleep(action.until) if isinstance(action, Sleep) else self._lock.perform(action)

    def _step(self, event: Event) -> Action:
        """One step of the core, and its consequences for the fence, the callbacks and the metrics."""
        core = self._core
        slow_paths = core.slow_paths
        action = core.step(Now(self._seconds(), self._clock.now()), event)
        if isinstance(event, Failed):
            # An outage is news once to a standby; a leader has only a few of these to lose.
            level = (
                logging.WARNING if core.phase is Phase.LEADING or not self._view.problem else logging.DEBUG
            )
            _logger.log(level, "election request failed", extra=fields(error=event.why))
        if self._observer is not None and core.slow_paths > slow_paths:
            self._observer.slow_path()
        self._look_around()
        with self._condition:
            if core.phase is Phase.LEADING:
                if not self.fence.extend(core.until):
                    self._lose_locked("the answer to a renewal came too late")
                elif not self._led:
                    self._begin_term_locked()
            elif core.phase is Phase.LOST:
                self._lose_locked(core.why)
            self._condition.notify_all()
        return action

    def _look_around(self) -> None:
        sight, before = self._core.sight, self._view
        record = sight.record if sight is not None else None
        self._view = View(
            identity=before.identity,
            holder=record.holder if record is not None else None,
            acquired=record.acquire_time if record is not None else "",
            changed=sight.since if sight is not None else 0.0,
            transitions=(record.transitions or 0) if record is not None else before.transitions,
            problem=self._core.why,
        )
        holder = self._view.holder
        if record is not None and holder is not None and holder != before.holder:
            if holder or record.released:
                _logger.info("leader changed", extra=fields(holder=holder, lease=self._lock.name))
            else:
                _logger.info(
                    "nobody holds the lease; waiting it out, in case an unseen leader is still at work",
                    extra=fields(seconds=record.duration, lease=self._lock.name),
                )
            if self._observer is not None:
                self._observer.new_leader(holder)

    def _begin_term_locked(self) -> None:
        self._led = True
        _logger.info("became leader", extra=fields(identity=self.settings.identity, lease=self._lock.name))
        if self._observer is not None:
            self._observer.leading(True)
        self._calls.append(self._call_started)
        self._doorbell.stop()

    def _lose_locked(self, why: str) -> None:
        if self._lost or self._stopping:
            return
        self._lost = why
        self.fence.close()
        _logger.error("lost the lease", extra=fields(why=why, lease=self._lock.name))
        if self._observer is not None:
            self._observer.leading(False)
        self._calls.append(self._call_lost)
        self._condition.notify_all()

    def _sleep(self, until: float) -> Tick:
        with self._condition:
            while not (self._stopping or self._lost or self._rung):
                left = until - self._seconds()
                if left <= 0:
                    break
                self._clock.wait(self._condition, left)
            early, self._rung = self._rung, False
        return Tick(early)

    # The watchdog thread

    def _watch_clock(self) -> None:
        while (call := self._next_call()) is not None:
            call()

    def _next_call(self) -> Callable[[], None] | None:
        """Wait for the next callback that is due, while minding the deadline; None at the end."""
        with self._condition:
            while not self._calls:
                if self._finished:
                    return None
                left = None
                if self._led and not self._lost and not self._stopping:
                    left = self.fence.left
                    if left <= 0:
                        self._lose_locked(f"not renewed in time: {self._core.why or 'no answer yet'}")
                        continue
                self._clock.wait(self._condition, left)
            return self._calls.popleft()

    def _call_started(self) -> None:
        if self._on_started is None or self._lost:
            return
        try:
            self._on_started()
        except Exception as error:
            # Holding the lease without doing the work would keep everybody else from it.
            _logger.exception("could not start as leader")
            with self._condition:
                self._lose_locked(f"could not start as leader: {error!r}")

    def _call_lost(self) -> None:
        if self._on_lost is None:
            return
        try:
            self._on_lost(self._lost)
        except Exception:
            _logger.exception("the handler of a lost lease failed")

    def _ring(self) -> None:
        with self._condition:
            self._rung = True
            self._condition.notify_all()
