"""An hour of three candidates for one Lease, with all that can befall them.

Promises:

- the fences of two of them are never open at the same moment, also not those of suspended processes;
- what reaches the server is written by one after the other: once a successor has written, nothing of an
  earlier leader arrives;
- whenever the faults stop, somebody leads within `leader_bound` seconds, and goes on to lead;
- a leader that is stopped in good order is succeeded within 2 s;
- the Lease counts transitions: one more for each change of holder, none for a renewal;
- who lost the lease is told once, and no thread dies.

Faults: requests and answers that are late, lost or hang, refusals, lost answers to committed writes, 409s, a
server that restarts; clocks that run at different speeds, wrong and jumping wall clocks; processes that are
suspended (their clocks go on), killed, stopped; people who delete the Lease, take it, clear it, label it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from kubeloop.client import ApiError, Client, MergePatch, TransportError
from kubeloop.leader import ElectionSettings, LeaderElector, LeaseLock, NotLeader
from kubeloop.leader.record import LeaseRecord, decode
from kubeloop.model import Resource
from kubeloop.sandbox import Sandbox, SandboxError

from .actors import Process, ProcessClock
from .harness import Result, Worst, source, world
from .network import LOST, Link, Network, SimulatedTransport
from .simulation import Simulation

CANDIDATES = 3
LEASE, RENEW, RETRY = 15.0, 10.0, 2.0
SLOWEST, FASTEST = 0.95, 1.1
"""Speeds of clocks; the ratio of any two is well below LEASE / RENEW."""
LONGEST_WRITE = 3.0
"""Seconds that a write of a leader may travel: what the lease outlasts the fence by, by the worst of clocks.
It is the residual risk that a fence of the client's leaves."""
LATEST = 9.0
"""Seconds that a request may travel."""
LEASES = "leases.coordination.k8s.io"
MAPS = Resource("", "v1", "configmaps", "ConfigMap")


def leader_bound() -> float:
    """Seconds from the end of all faults to a leader: a lease that was renewed at the last moment passes, or
    one that was missing and had to be reserved; somebody looks within a retry period, after a request that
    hangs."""
    return (LEASE + RETRY + RENEW / 2) / SLOWEST


class Candidate:
    """One replica: a process that is started anew, under another name, whenever it has ended."""

    def __init__(self, day: Day, number: int) -> None:
        self.day = day
        self.number = number
        self.rng = source(day.seed, f"candidate-{number}")
        self.rate = self.rng.uniform(SLOWEST, FASTEST)
        self.wall = self.rng.uniform(-1e6, 1e6)
        self.lives = 0
        self.link = Link(source(day.seed, f"link-{number}"))
        self.work_link = Link(source(day.seed, f"work-link-{number}"))
        self.lost: list[str] = []
        self.begin()

    def begin(self) -> None:
        """A new process."""
        world = self.day.world
        self.lives += 1
        self.name = f"candidate-{self.number}-{self.lives}"
        self.process = Process(self.name)
        offset = self.rng.uniform(0, 1e6)
        self.clock = ProcessClock(world, self.process, rate=self.rate, offset=offset)
        self.clock.wall = self.wall
        lost: list[str] = []
        self.lost = lost
        lock = LeaseLock(self._transport(self.link), "default", "soak", clock=self.clock, agent=self.name)
        self.elector = LeaderElector(
            lock,
            ElectionSettings(self.name, LEASE, RENEW, RETRY),
            clock=self.clock,
            on_lost=lost.append,
            rng=random.Random(self.rng.random()),
        )
        self.client = Client(
            self._transport(self.work_link),
            clock=self.clock,
            user_agent=f"{self.name} work",
            timeout=LONGEST_WRITE,
            fence=self.elector.fence.check,
        )
        self.stopping = False
        self.suspensions = 0
        world.spawn("main", self._run, self.process)

    def _transport(self, link: Link) -> SimulatedTransport:
        return SimulatedTransport(self.day.network, self.process, link, self.day.sandbox.transport())

    def _run(self) -> None:
        """What the process does: it works while it leads, and ends when it has lost or is to stop."""
        world, elector = self.day.world, self.elector
        elector.start()
        work = 0
        while not self.lost and not self.stopping:
            world.sleep(0.3 + 1.5 * self.rng.random())
            if not elector.may_write():
                continue
            work += 1
            try:
                self.client.patch(
                    MAPS, "work", "default", MergePatch({"data": {"by": self.name, "n": str(work)}})
                )
            except NotLeader:
                continue
            except (ApiError, TransportError) as error:
                world.history.note("work", f"{self.name}: {error}")
        assert len(self.lost) <= 1, f"{self.name} was told more than once: {self.lost}"
        if self.lost:
            world.history.note("lost", f"{self.name}: {self.lost[0]}")
            world.kill(self.process)  # it ends at once, without waiting for anything
            return
        world.history.note("stop", f"{self.name} stops, {'leading' if self.open else 'standing by'}")
        elector.stop()
        ended = False
        while not ended:
            before = self.suspensions
            ended = elector.join(60)
            late = ", ".join(world.alive(self.process))
            assert ended or self.suspensions > before, f"{self.name} does not end: {late}"

    @property
    def open(self) -> bool:
        """Whether its fence is open, seen from outside and without touching it."""
        return not self.process.killed and self.elector.fence.until > self.clock.steady

    @property
    def over(self) -> bool:
        """Whether all of the process has ended."""
        return not self.day.world.alive(self.process)


class Day:
    """The server, the candidates, and what happens to them."""

    def __init__(self, world: Simulation, seed: int, worst: Worst) -> None:
        self.world = world
        self.seed = seed
        self.worst = worst
        self.network = Network(world)
        self.sandbox = Sandbox(clock=world, controllers=False, seed=seed)
        self.sandbox.start()
        config = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "work", "namespace": "default"},
        }
        self.sandbox.create(config)
        self.rng = source(seed, "faults")
        if self.rng.random() < 0.5:
            self._ship()
        self.record: LeaseRecord | None = None
        self.meddling = False
        self.writers: list[str] = []
        self._seen = 0
        self.candidates: list[Candidate] = []
        self.candidates += [Candidate(self, number) for number in range(CANDIDATES)]
        world.checks += [self.never_two, self.witness]
        world.spawn("restarts", self.restarts)

    def _ship(self) -> None:
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        self.sandbox.create({**lease, "metadata": {"name": "soak", "namespace": "default"}, "spec": {}})

    # What must hold

    def never_two(self) -> None:
        """At any moment at most one may write."""
        writers = [candidate.name for candidate in self.candidates if candidate.open]
        assert len(writers) <= 1, f"two may write: {writers}"

    def witness(self) -> None:
        """Follows what the server stores, change by change."""
        store = self.sandbox.backend.store
        if store.revision == self._seen:
            return
        self._seen = store.revision
        lease = store.get(("coordination.k8s.io", "leases"), "default", "soak")
        if (record := None if lease is None else decode(lease.obj)) != self.record:
            before, self.record = self.record, record
            self._judge(before, record)
        work = store.get(("", "configmaps"), "default", "work")
        by = "" if work is None else str((work.obj.get("data") or {}).get("by", ""))
        if by and by != (self.writers[-1] if self.writers else ""):
            assert by not in self.writers, f"{by} has written after its successor {self.writers[-1]}"
            self.writers.append(by)
            self.world.history.note("leader", by)

    def _judge(self, before: LeaseRecord | None, record: LeaseRecord | None) -> None:
        self.world.history.note("lease", str(record))
        if record is None or not record.holder.startswith("candidate-") or self.meddling:
            return
        if before is not None and before.holder == record.holder:
            assert record.transitions == (before.transitions or 0), f"a renewal counts: {before} -> {record}"
            return
        expected = 0 if before is None or before.transitions is None else before.transitions + 1
        assert record.transitions == expected, f"transitions are wrong: {before} -> {record}"

    def leader(self) -> Candidate | None:
        """Who may write."""
        return next((candidate for candidate in self.candidates if candidate.open), None)

    def restarts(self) -> None:
        """As a Deployment does for its pods."""
        while True:
            self.world.sleep(0.5)
            for candidate in self.candidates:
                if candidate.over:
                    candidate.begin()

    # What happens

    def run(self, until: float) -> None:
        """Storms and calms in turn."""
        while self.world.time < until:
            self.storm(self.rng.uniform(60, 400))
            self.calm()

    def storm(self, seconds: float) -> None:
        """Faults, one after the other and on top of each other."""
        end = self.world.time + seconds
        happenings: list[Callable[[], None]] = [
            self.network_changes,
            self.network_changes,
            self.network_changes,
            self.server_misbehaves,
            self.server_misbehaves,
            self.process_suspended,
            self.process_suspended,
            self.process_killed,
            self.process_stopped,
            self.wall_jumps,
            self.lease_deleted,
            self.lease_taken,
            self.lease_edited,
            self.server_restarts,
        ]
        while self.world.time < end:
            self.rng.choice(happenings)()
            self.world.sleep(self.rng.choice((0.1, 1.0, 5.0, 12.0, 25.0)) * self.rng.random())

    def calm(self) -> None:
        """All faults end: soon somebody leads, stays, and can be succeeded."""
        self.sandbox.faults.clear()
        self.sandbox.faults.wake()
        for candidate in self.candidates:
            for link in (candidate.link, candidate.work_link):
                link.there = link.back = 0.0
            candidate.suspensions += candidate.process.suspended
            candidate.process.suspended = False
        self.note("calm")
        began, seen = self.world.time, 0.0
        while self.leader() is None:
            self.world.sleep(0.1)
            seen = self.world.time - began
            assert seen <= leader_bound(), f"nobody leads {seen:.1f} s after the end of all faults"
        self.worst.keep("leaderless", seen, leader_bound(), "no leader for")
        # What was sent before is under way still, and may be a people's edit's echo; then it is settled.
        self.world.sleep(LATEST)
        if self.leader() is None:
            self.world.sleep(leader_bound())
        leader = self.leader()
        assert leader is not None, "nobody leads"
        name = leader.name
        end = self.world.time + self.rng.uniform(10, 40)
        while self.world.time < end:
            self.world.sleep(0.5)
            now = self.leader()
            assert now is not None, f"{name} has lost it in calm weather"
            assert now.name == name, f"{now.name} has succeeded {name} in calm weather"
        if self.rng.random() < 0.5:
            leader.stopping = True
            since = self.world.time
            while (now := self.leader()) is None or now.name == name:
                self.world.sleep(0.05)
                self.worst.keep("hand-over", self.world.time - since, 4.0, "a hand-over takes")

    def note(self, text: str) -> None:
        self.world.history.note("fault", text)

    def _victim(self) -> Candidate:
        leader = self.leader()
        return leader if leader is not None and self.rng.random() < 0.6 else self.rng.choice(self.candidates)

    def network_changes(self) -> None:
        victim = self._victim()
        choices = (0.0, 0.0, 0.5, 1.0, 4.0, LATEST, LOST)
        victim.link.there, victim.link.back = self.rng.choice(choices), self.rng.choice(choices)
        victim.work_link.there = victim.link.there if victim.link.there < LONGEST_WRITE - 0.1 else LOST
        victim.work_link.back = victim.link.back
        self.note(f"network of {victim.name}: {victim.link.there} s there, {victim.link.back} s back")

    def server_misbehaves(self) -> None:
        effects: list[dict[str, Any]] = [
            {"status": 409},
            {"status": 429, "retry_after": 3},
            {"status": 500},
            {"status": 503},
            {"status": 401},
            {"status": 403},
            {"lose_answer": True},
            {"silence": True},
            {"reset": True},
            {"refuse": True},
            {"truncate": 50},
            {"latency": self.rng.random() * LATEST},
        ]
        effect, count = self.rng.choice(effects), self.rng.randint(1, 6)
        verb = self.rng.choice((None, "get", "update", "watch", "create"))
        self.sandbox.faults.add(verb=verb, resource="leases", count=count, probability=0.7, **effect)
        self.note(f"the next {count} {verb or 'requests'}: {effect}")

    def process_suspended(self) -> None:
        victim = self._victim()
        victim.process.suspended = not victim.process.suspended
        victim.suspensions += 1
        self.note(f"{victim.name} is {'suspended' if victim.process.suspended else 'resumed'}")

    def process_killed(self) -> None:
        victim = self._victim()
        self.note(f"{victim.name} is killed")
        self.world.kill(victim.process)

    def process_stopped(self) -> None:
        victim = self._victim()
        self.note(f"{victim.name} is asked to stop")
        victim.stopping = True

    def wall_jumps(self) -> None:
        victim = self._victim()
        victim.wall += self.rng.uniform(-1e5, 1e5)
        victim.clock.wall = victim.wall
        self.note(f"the wall clock of {victim.name} jumps")

    def lease_deleted(self) -> None:
        self.note("the Lease is deleted")
        self._meddle(lambda: self.sandbox.delete(LEASES, "soak", "default"))

    def lease_taken(self) -> None:
        holder = self.rng.choice(["thief", "", *(candidate.name for candidate in self.candidates)])
        seconds = self.rng.randint(2, int(LEASE))
        self.note(f"the Lease is given to {holder!r} for {seconds} s")
        spec = {"holderIdentity": holder, "leaseDurationSeconds": max(seconds, int(LEASE))}
        self._meddle(lambda: self.sandbox.patch(LEASES, "soak", {"spec": spec}, "default"))

    def lease_edited(self) -> None:
        self.note("the Lease gets a label")
        labels = {"metadata": {"labels": {"team": str(self.rng.random())}}}
        self._meddle(lambda: self.sandbox.patch(LEASES, "soak", labels, "default"))

    def _meddle(self, act: Callable[[], object]) -> None:
        self.meddling = True
        try:
            act()
            self.witness()
        except SandboxError as error:
            self.note(f"in vain: {error}")
        finally:
            self.meddling = False

    def server_restarts(self) -> None:
        seconds = self.rng.choice((0.0, 1.0, 8.0, 20.0))
        self.note(f"the server is away for {seconds} s")
        self.sandbox.halt()
        self.world.sleep(seconds)
        self.sandbox.resume("keep")


def soak(seed: int, minutes: float) -> Result:
    """An hour of an election."""
    worst = Worst()
    with world("election", seed) as it:
        day = Day(it, seed, worst)
        it.spawn("faults", partial(day.run, minutes * 60))
        while it.time < minutes * 60:
            it.sleep(60)
        day.sandbox.check()
        counts = dict(it.history.counts)
        counts["terms"] = len(day.writers)
        day.sandbox.stop()
    return Result(it.history.digest, counts, worst.values)
