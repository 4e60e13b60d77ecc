"""`ReflectorCore`: how a local copy is kept, as a state machine without I/O, threads or clock.

Whoever drives it asks `next_action`, does that, and tells what came of it. The rules are client-go's
(tools/cache/reflector.go), with what its users miss:

* Start and relist by a streaming list (WatchList); if the server cannot, refuses, or never sends the bookmark
  that ends it (k/k#140890: client-go then waits for ever), by a paged list.
* The watch goes on from the list's own resourceVersion, then from the last event's or bookmark's; never from
  a listed item's, as lists are not in that order (kubernetes-client/python#819).
* A watch that ends is resumed, also after 429, connection errors and internal errors. Only an expired version
  (410), a missing resource type, a watch on which nothing ever came, or no progress in several tries lead to
  a new list.
* Before a watch that was cut off is resumed, the server is asked where it is. One that has gone back (etcd
  restored from a backup) would accept the watch and say nothing (docs/design/restore.md).
* Failures wait: 0.8 s doubling up to 30 s, with jitter, from the start again only after a minute of health.
  Where the server says when to come back, that is when.
  Only the first expired watch in a minute leads to a list at once.
  A missing CRD or missing rights are asked for every few seconds, as long as it takes.
"""

from __future__ import annotations

import enum
import random
from dataclasses import dataclass

from kubeloop.backoff import Backoff, as_told
from kubeloop.cache.failure import Failure, Kind

SCHEDULE = Backoff(base=0.8, cap=30.0)
"""Seconds between tries (client-go: 0.8 to 30, plus as much again at random)."""

PATIENCE = Backoff(base=0.8, cap=5.0)
"""The same while a resource type or a permission is missing: somebody is about to add it, and the request is
cheap."""

HEALTHY = 60.0
"""Seconds that a watch must last for earlier failures to be forgotten (client-go: 120)."""

SHORT = 1.0
"""Seconds; a watch that ends sooner is a failure, or a broken server would be asked without a pause."""

STALLED = 3
"""Tries without any event after which the place to resume from is given up and everything listed anew."""

PAGE_SIZE = 500
WATCH_SECONDS = (300, 600)
"""Range of the timeoutSeconds that watches ask for, at random (client-go's MinWatchTimeout)."""

STREAM_IDLE = 10.0
"""Seconds without an event after which a streaming list is given up."""

STREAM_TOTAL = 60.0
"""Seconds that a streaming list may take in all. At 20,000 events a second, enough for any cluster; a server
that streams without ever ending the list is caught by this."""

READ_TIMEOUT = 150.0
"""Seconds of silence after which a watch is dead. Bookmarks come about every minute: two are missing."""


class Phase(enum.Enum):
    """What the reflector is doing."""

    LISTING = "listing"
    STREAMING = "streaming the initial list"
    WATCHING = "watching"
    WAITING = "waiting to try again"


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing for so many seconds (or until somebody knows that things have changed: `hurry`)."""

    seconds: float


@dataclass(frozen=True, slots=True)
class ListPage:
    """Ask for one page. An empty `continue_` begins a list: forget the pages so far."""

    limit: int | None
    continue_: str


@dataclass(frozen=True, slots=True)
class Watch:
    """Open a watch. `initial` makes it a streaming list: collect its events until the ending bookmark."""

    version: str
    initial: bool
    timeout_seconds: int
    read_timeout: float


@dataclass(frozen=True, slots=True)
class Check:
    """Ask for the server's current version: the least list there is."""


Action = Wait | ListPage | Watch | Check


class Verdict(enum.Enum):
    """What to do with a list or its page."""

    MORE = "keep the items, there is another page"
    TAKE = "the list is whole: make it the content of the store"
    AGAIN = "throw the items away, the list begins anew"


class ReflectorCore:
    """The state of one reflector. Not thread-safe; `now` is monotonic seconds throughout."""

    def __init__(self, *, streaming: bool = True, rng: random.Random | None = None) -> None:
        self._rng = rng or random.Random()
        self._streaming = streaming
        self._version: str | None = None  # where to resume the watch; None: list first
        self._newest = 0  # the newest version ever taken, to notice a list that goes back
        self._doubted = False
        self._continue = ""
        self._unpaged = False
        self._failures = 0
        self._not_before = 0.0
        self._stalled = 0
        self._opened: float | None = None
        self._seconds = 0  # that the watch was asked to last
        self._cut = False  # whether the last watch was cut off, and the server not asked since where it is
        self._expired: float | None = None  # when a watch expired last
        self._initial = False  # within a streaming list
        self._cut_off = 0  # streaming lists that broke off in the middle
        self._plain = False  # whether the next list is to be a paged one
        self._events = 0
        self.phase = Phase.LISTING
        self.failure: Failure | None = None
        """What keeps us waiting; None while all is well."""
        self.synced = False
        """Whether a whole list was taken, ever."""
        self.heard: float | None = None
        """When the server last said anything of use."""
        self.lists = 0
        self.watches = 0

    # What to do

    def next_action(self, now: float) -> Action:
        """The next thing to do; the same again until its outcome is told."""
        if now < self._not_before:
            self.phase = Phase.WAITING
            return Wait(self._not_before - now)
        if self._version is not None:
            self.phase = Phase.WATCHING
            return Check() if self._cut else self._watch(self._version, READ_TIMEOUT)
        if self._streaming and not self._continue and not self._plain:
            self.phase = Phase.STREAMING
            return self._watch("", STREAM_IDLE)
        self.phase = Phase.LISTING
        return ListPage(None if self._unpaged else PAGE_SIZE, self._continue)

    def hurry(self) -> None:
        """Something outside suggests that the next try will succeed: do not wait for it."""
        self._not_before = 0.0

    def overdue(self, now: float) -> bool:
        """Whether a streaming list has taken so long that its ending bookmark is not to be expected."""
        return self._initial and self._opened is not None and now - self._opened > STREAM_TOTAL

    # What came of it

    def on_page(self, version: str, continue_: str, now: float) -> Verdict:
        """A page of a list has come; `version` is the list's."""
        self.heard = now
        self._continue = continue_
        if continue_:
            return Verdict.MORE
        self._unpaged = False
        return self._take_list(version, now)

    def on_list_failed(self, failure: Failure, now: float) -> Verdict:
        """A page could not be had. MORE means that the pages so far are still good."""
        if failure.kind is Kind.EXPIRED and self._continue:
            # The list took longer than the server remembers: once more, in one piece.
            self._continue = ""
            again = self._unpaged
            self._unpaged = True
            if not again:
                return Verdict.AGAIN
        elif failure.kind in (Kind.BUSY, Kind.UNREACHABLE) and self._continue:
            self._fail(failure, now)
            return Verdict.MORE
        self._continue = ""
        self._plain = False
        self._fail(failure, now)
        return Verdict.AGAIN

    def on_checked(self, version: str, now: float) -> None:
        """The server is at `version`."""
        self.heard = now
        self._cut = False
        if version.isdecimal() and int(version) < self._newest:
            # What is true now is never older than what was ever told: it is another history.
            self._version = None
            self._doubted = True
            self.failure = Failure(Kind.AHEAD, f"the server went back from {self._newest} to {version}")

    def on_check_failed(self, failure: Failure, now: float) -> None:
        """The server did not say where it is."""
        if failure.kind is Kind.MISSING:
            self._version = None
        if failure.kind in (Kind.MISSING, Kind.BUSY, Kind.UNREACHABLE, Kind.FORBIDDEN):
            self._fail(failure, now)
        else:
            self._cut = False  # then as if it had not been asked

    def on_open(self, now: float) -> None:
        """The server has agreed to the watch."""
        self._opened = now
        self._initial = self.phase is Phase.STREAMING
        self._events = 0
        self.watches += 1
        if not self._initial:
            self.heard = now
            self.failure = None

    def on_event(self, version: str, now: float) -> bool:
        """An ADDED, MODIFIED or DELETED event, also one that cannot be decoded. False while it belongs to the
        initial list, whose events come in no order and say nothing about where to resume."""
        self.heard = now
        self._events += 1
        if self._initial:
            return False
        self._stalled = 0
        if version:
            self._advance(version)
        return True

    def on_bookmark(self, version: str, ends_list: bool, now: float) -> Verdict | None:
        """A bookmark. A verdict if it ends the initial list, else None."""
        self.heard = now
        self._events += 1
        if self._initial:
            if not ends_list:
                return None
            self._initial = False
            self._opened = now
            self.phase = Phase.WATCHING
            return self._take_list(version, now)
        self._stalled = 0
        self._advance(version)
        return None

    def on_watch_ended(self, failure: Failure | None, now: float) -> None:
        """The watch is over: by the server's doing (None), or with a failure, also before it was open."""
        opened, self._opened = self._opened, None
        lasted = now - opened if opened is not None else 0.0
        initial = self._initial or (opened is None and self._version is None)
        self._initial = False
        if not initial and (lasted < self._seconds - SHORT if opened is not None else _unreached(failure)):
            self._cut = True
        if lasted >= HEALTHY:
            self._failures = 0
        if initial:
            self._streaming_failed(failure, opened is not None, now)
        elif failure is None:
            if lasted < SHORT:
                self._stall(Failure(Kind.UNREACHABLE, "the server ended the watch at once"), now)
        elif failure.kind in (Kind.EXPIRED, Kind.AHEAD, Kind.REFUSED):
            self._version = None
            self._fail(failure, now, at_once=failure.kind is Kind.EXPIRED and self._expired_rarely(now))
        elif failure.kind is Kind.MISSING:
            self._version = None  # if it comes back it is another one
            self._fail(failure, now)
        elif failure.kind is Kind.SILENT and not self._events:
            # Not even a bookmark. That is how a server that was restored from a backup treats a version that
            # it has yet to reach: it keeps quiet until it does, and what happens meanwhile is never told.
            self._version = None
            self._fail(failure, now)
        elif failure.kind is Kind.BROKEN:
            self._stall(failure, now)
        else:
            self._fail(failure, now)

    # Steps

    def _take_list(self, version: str, now: float) -> Verdict:
        number = int(version) if version.isdecimal() else 0
        if not number:
            self._fail(Failure(Kind.BROKEN, "the list has no resourceVersion"), now)
            return Verdict.AGAIN
        if number < self._newest and not self._doubted:
            # Older than what we have seen: either an outdated answer, and asking again puts it right, or the
            # server was restored from a backup, and then it will say so again.
            self._doubted = True
            self._version = None
            return Verdict.AGAIN
        self._doubted = self._plain = self._cut = False
        self._version = version
        self._newest = number
        self._stalled = 0
        self.synced = True
        self.failure = None
        self.heard = now
        self.lists += 1
        return Verdict.TAKE

    def _advance(self, version: str) -> None:
        if version.isdecimal() and int(version) >= self._newest:
            self._newest = int(version)
            self._version = version

    def _streaming_failed(self, failure: Failure | None, opened: bool, now: float) -> None:
        """A streaming list did not come to its end."""
        if failure is not None and failure.kind in (Kind.BUSY, Kind.MISSING, Kind.FORBIDDEN):
            self._fail(failure, now)
            return
        if failure is not None and failure.kind is Kind.UNREACHABLE:
            self._cut_off += opened
            self._fail(failure, now)
            if self._cut_off < 2:
                # Perhaps something on the way is only at odds with streaming lists: in turns with plain ones.
                self._plain = not opened
                return
        # The server does not know how, or something on the way does not let it: a list will do.
        self._streaming = False
        self.failure = failure

    def _expired_rarely(self, now: float) -> bool:
        """Whether this is the first expired watch in a while. However often the server could not be reached
        before: a restarted one answers 410 to all who come back, and has been waited for already."""
        last, self._expired = self._expired, now
        return last is None or now - last >= HEALTHY

    def _stall(self, failure: Failure, now: float) -> None:
        """A failure that may well be about the very place where we want to resume."""
        self._stalled += 1
        if self._stalled >= STALLED:
            self._stalled = 0
            self._version = None
        self._fail(failure, now)

    def _fail(self, failure: Failure, now: float, *, at_once: bool = False) -> None:
        self.failure = failure
        if failure.retry_after is not None:
            # The server knows better, and tells each time anew: what failed before is no reason to stay away.
            self._not_before = now + as_told(max(failure.retry_after, SCHEDULE.base), self._rng)
            return
        self._failures += 1
        schedule = PATIENCE if failure.kind in (Kind.MISSING, Kind.FORBIDDEN) else SCHEDULE
        self._not_before = now + (0.0 if at_once else schedule.delay(self._failures, self._rng))

    def _watch(self, version: str, read_timeout: float) -> Watch:
        self._seconds = self._rng.randint(*WATCH_SECONDS)
        return Watch(version, not version, self._seconds, read_timeout)


def _unreached(failure: Failure | None) -> bool:
    return failure is not None and failure.kind is Kind.UNREACHABLE
