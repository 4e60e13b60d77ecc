"""What goes wrong between informers and the server."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kubeloop.cache import Informer
from kubeloop.cache.core import READ_TIMEOUT, SCHEDULE
from kubeloop.client.client import REQUEST_TIMEOUT
from kubeloop.sandbox import SandboxError, User

from .gadgets import CRD
from .network import LOST

if TYPE_CHECKING:
    from .cache import Day

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
RETRY_AFTER = 75.0
"""Seconds that a server can make a client stay away, jitter included."""


def settle_bound() -> float:
    """Seconds: a watch that fell silent at the last moment, the longest Retry-After that is believed, the
    longest wait, and a request that hangs."""
    return READ_TIMEOUT + RETRY_AFTER + SCHEDULE.cap + REQUEST_TIMEOUT


class Troubles:
    """See the module. Several of them may be under way at once."""

    def __init__(self, day: Day) -> None:
        self._day = day
        self._loses_data = day.rng.random() < 0.5

    def live(self, rng: random.Random) -> None:
        """One fault after the other; several of these run at once."""
        while True:
            self._day.world.sleep(rng.expovariate(1 / 10))
            if not self._day.quiet:
                rng.choice(self._troubles())(rng)

    def _troubles(self) -> list[Callable[[random.Random], None]]:
        return [
            *[self.watch_misbehaves] * 4,
            *[self.request_misbehaves] * 4,
            self.history_forgotten,
            self.network_cut,
            self.network_slow,
            self.server_away,
            self.server_away,
            *([self.data_lost] if self._loses_data else []),
            self.crd_missing,
            self.rights_missing,
            self.token_expired,
            self.server_lags,
            self.server_lags,
        ]

    def _rule(self, rng: random.Random, effect: dict[str, Any], seconds: float, **which: Any) -> None:
        rule = self._day.sandbox.faults.add(
            user="robot", probability=rng.choice((0.3, 1.0)), **which, **effect
        )
        self._day.note(f"for {seconds:.0f} s: {effect} {which}")
        self._day.world.sleep(seconds)
        rule.remove()

    def watch_misbehaves(self, rng: random.Random) -> None:
        events = rng.choice((0, 1, 3, 10))
        effects: list[dict[str, Any]] = [
            {"end_after": events},
            {"reset_after": events},
            {"silence_after": events},
            {"gone_after": events},
            {"drop_bookmarks": True},
            {"truncate": rng.randrange(2000)},
            {"pieces": rng.randint(1, 50)},
        ]
        self._rule(rng, rng.choice(effects), rng.random() * 120, verb="watch")

    def request_misbehaves(self, rng: random.Random) -> None:
        effects: list[dict[str, Any]] = [
            {"status": 429, "retry_after": rng.choice((1, 5, 1000))},
            {"status": rng.choice((500, 502, 503, 504))},
            {"status": rng.choice((400, 401, 403, 404, 410))},
            {"status": 200, "body": "<html>no JSON</html>"},
            {"refuse": True},
            {"reset": True},
            {"silence": True},
            {"lose_answer": True},
            {"latency": rng.random() * 40},
            {"truncate": rng.randrange(3000)},
        ]
        verb = rng.choice((None, "list", "watch", ("list", "watch")))
        self._rule(rng, rng.choice(effects), rng.random() * 60, verb=verb)

    def server_lags(self, rng: random.Random) -> None:
        """Old lists, and watches that tell once more what they have told: more than a client can be asked to
        see through at once, so its own writes are not judged meanwhile."""
        # One at a time: a server that says the same twice is taken for one with a backup's data.
        if self._day.stale:
            return
        self._day.stale = True
        self._day.epoch += 1
        verb, changes = rng.choice(("list", "watch")), rng.randint(1, 30)
        rule = self._day.sandbox.faults.add(user="robot", verb=verb, stale=changes, count=1)
        self._day.note(f"the next {verb} is {changes} changes old")
        self._day.world.sleep(60)
        rule.remove()
        self._day.stale = False
        self._day.epoch += 1

    def history_forgotten(self, _: random.Random) -> None:
        self._day.note("history forgotten")
        self._day.sandbox.compact()

    def network_cut(self, rng: random.Random) -> None:
        seconds = rng.choice((5, 40, 200)) * rng.random()
        self._day.note(f"the network is cut for {seconds:.0f} s")
        for link in (self._day.link, self._day.writer_link):
            link.there = rng.choice((0.0, LOST))
            link.back = LOST
        self._day.world.sleep(seconds)
        for link in (self._day.link, self._day.writer_link):
            link.there = link.back = 0.0

    def network_slow(self, rng: random.Random) -> None:
        self._day.link.base = rng.choice((0.1, 1.0, 10.0))
        self._day.note(f"the network is slow: {self._day.link.base} s")
        self._day.world.sleep(rng.random() * 60)
        self._day.link.base = 0.004

    def server_away(self, rng: random.Random) -> None:
        if self._day.sandbox.api.stopped:
            return
        seconds = rng.choice((0.0, 5.0, 60.0)) * rng.random()
        self._day.note(f"the server is away for {seconds:.0f} s")
        self._day.sandbox.halt()
        self._day.world.sleep(seconds)
        self._day.sandbox.resume("keep")

    def data_lost(self, rng: random.Random) -> None:
        """The server comes back with older data, or none. Nobody writes until everybody has noticed: a
        server whose versions have overtaken those that its clients hold cannot be told from one that never
        went back (which is why etcd's restore can bump its revision)."""
        if self._day.sandbox.api.stopped or self._day.quiet:
            return
        backup = self._day.sandbox.backup() if rng.random() < 0.6 else None
        self._day.world.sleep(rng.random() * 120)
        store = self._day.sandbox.backend.store
        far = (
            store.revision - (backup.revision if backup else 0) > 60
        )  # what the server itself writes is less
        if self._day.sandbox.api.stopped or self._day.quiet or not far:
            return
        self._day.quiet = True
        self._day.note(
            "the server comes back with a backup's data" if backup else "the server comes back without data"
        )
        self._day.epoch += 1
        for judge in self._day.judges.values():
            judge.back_in_time = True
        self._day.sandbox.halt()
        self._day.world.sleep(rng.random() * 20)
        if backup is None:
            self._day.sandbox.resume("lose")
            self._day.furnish()
        else:
            self._day.sandbox.resume(backup)
        self.restore_crd()
        self._day.end_faults()
        self._day.world.sleep(settle_bound())
        self._day.compare()
        watched: list[Informer[Any]] = [self._day.gadgets, self._day.maps]
        for judge, informer in zip(self._day.judges.values(), watched, strict=True):
            judge.back_in_time = False
            # Of what cannot be read since, handlers know a version from before.
            judge.told.update(
                {key: (judge.told[key][0], 0) for key in judge.told if key not in informer.store}
            )
        self._day.epoch += 1
        self._day.quiet = False

    def crd_missing(self, rng: random.Random) -> None:
        if self._day.sandbox.api.stopped or self._day.quiet:
            return
        self._day.note("the CRD is deleted")
        try:
            self._day.sandbox.delete(DEFINITIONS, CRD["metadata"]["name"])
        except SandboxError:
            return
        self._day.world.sleep(rng.random() * 90)
        self.restore_crd()

    def restore_crd(self) -> None:
        """Have the CRD again, if it is missing."""
        while self._day.sandbox.get(DEFINITIONS, CRD["metadata"]["name"]) is None:
            try:
                self._day.sandbox.apply(CRD)
                self._day.note("the CRD is back")
                return
            except (SandboxError, TimeoutError):
                self._day.world.sleep(1.0)

    def rights_missing(self, rng: random.Random) -> None:
        self._day.forbidden = True
        self._day.note("no rights")
        self._day.world.sleep(rng.random() * 90)
        self._day.forbidden = False

    def token_expired(self, rng: random.Random) -> None:
        old, new = self._day.tokens.current, f"token-{rng.random()}"
        self._day.note("the token has expired")
        self._day.sandbox.access.revoke(old)
        self._day.world.sleep(rng.random() * 60)
        self._day.sandbox.access.tokens[new] = User("robot")
        self._day.tokens.current = new
