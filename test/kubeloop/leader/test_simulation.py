"""Several candidates, a network that does what it likes, wrong clocks, meddling people: never two leaders."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kubeloop.leader import ElectionSettings, Fence
from kubeloop.leader.actions import Create, Event, Failed, Now, Over, Read, Sleep, Stop, Tick, Update
from kubeloop.leader.core import ElectorCore, Phase

CANDIDATES = 3
LEASE, RENEW, RETRY = 12, 10.0, 2.0
NEVER = math.inf
LEADER = -1
WHO = st.sampled_from([LEADER, LEADER, 0, 1, 2])
ORDER = list(Phase)


@dataclass
class Flight:
    """A request on its way: `event` is its answer once the server has carried it out."""

    action: Read | Create | Update
    sent: float
    there: float
    back: float
    event: Event | None = None


@dataclass
class Candidate:
    """A process: its clocks, its elector, and the fence as the threads would drive it."""

    number: int
    rate: float
    offset: float
    wall: float
    core: ElectorCore
    fence: Fence
    flight: Flight | None = None
    network: tuple[float, float] = (0.0, 0.0)
    suspended: bool = False
    wake: float = -NEVER
    over: bool = False
    phases: list[Phase] = field(default_factory=list)


class Election(RuleBasedStateMachine):
    make_server: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0
        self.server = self.make_server()
        self.candidates: list[Candidate] = []
        self.ghosts: list[Flight] = []  # given up by the sender, not yet arrived
        self.born = 0
        self.rng = random.Random(7)

    @initialize(
        # The ratio of any two of these is below lease duration / renew deadline.
        rates=st.lists(st.floats(0.95, 1.1), min_size=CANDIDATES, max_size=CANDIDATES),
        walls=st.lists(st.floats(-1e8, 1e8), min_size=CANDIDATES, max_size=CANDIDATES),
        shipped=st.booleans(),
    )
    def begin(self, rates: list[float], walls: list[float], shipped: bool) -> None:
        self.candidates = [self.new(n, rates[n], walls[n]) for n in range(CANDIDATES)]
        if shipped:
            self.server.write({"spec": {}})

    def new(self, number: int, rate: float, wall: float) -> Candidate:
        self.born += 1
        config = ElectionSettings(f"candidate-{number}-{self.born}", LEASE, RENEW, RETRY)
        core = ElectorCore("ns", "leader", config, self.rng)
        candidate = Candidate(number, rate, self.rng.uniform(0, 1e6), wall, core, None)  # type: ignore[arg-type]
        candidate.fence = Fence(lambda: self.steady(candidate))
        return candidate

    def steady(self, candidate: Candidate) -> float:
        return candidate.offset + self.time * candidate.rate

    def now(self, candidate: Candidate) -> Now:
        wall = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.time + candidate.wall)
        return Now(self.steady(candidate), wall)

    def step(self, candidate: Candidate, event: Event) -> None:
        """What the elector's thread does between two requests."""
        if candidate.over:
            return
        action = candidate.core.step(self.now(candidate), event)
        phase = candidate.core.phase
        if not candidate.phases or candidate.phases[-1] is not phase:
            candidate.phases.append(phase)
            assert sorted(candidate.phases, key=ORDER.index) == candidate.phases
        leads = phase is Phase.LEADING and candidate.fence.extend(candidate.core.until)
        if phase is not Phase.STANDBY and not leads:
            candidate.fence.close()
        match action:
            case Sleep(until):
                candidate.wake = until
            case Over():
                candidate.over = True
            case _:
                assert 0 < action.timeout <= candidate.core.settings.request_timeout
                there, back = (self.time + delay for delay in candidate.network)
                candidate.flight = Flight(action, self.time, there, back + candidate.network[0])

    def arrive(self, flight: Flight) -> None:
        if flight.event is None:
            flight.event = self.server.perform(flight.action)

    def who(self, number: int) -> Candidate:
        if number != LEADER:
            return self.candidates[number]
        phases = (Phase.LEADING, Phase.STANDBY)
        return min(self.candidates, key=lambda c: phases.index(c.core.phase) if c.core.phase in phases else 2)

    # What can happen

    @rule(
        number=WHO,
        there=st.sampled_from([0.0, 0.0, 1.0, 5.0, 9.0, NEVER]),
        back=st.sampled_from([0.0, 0.0, 1.0, 5.0, 9.0, NEVER]),
    )
    def the_network_of_a_candidate_changes(self, number: int, there: float, back: float) -> None:
        """How long its requests and their answers take from now on."""
        self.who(number).network = (there, back)

    @rule(back=st.floats(0, 9), slow_for=st.floats(0, 12))
    def the_leaders_network_gets_slow_and_then_breaks(self, back: float, slow_for: float) -> None:
        leader = self.who(LEADER)
        leader.network = (0.0, back)
        self.time_passes(slow_for)
        leader.network = (NEVER, 0.0)
        self.time_passes(1.5 * LEASE)

    @rule(number=WHO)
    def a_process_is_suspended_or_resumed(self, number: int) -> None:
        self.who(number).suspended = not self.who(number).suspended

    @rule(seconds=st.sampled_from([0.5, 2.0, 5.0, 10.0, 20.0, 40.0]))
    def time_passes(self, seconds: float) -> None:
        end = self.time + seconds
        while True:
            for candidate in self.candidates:
                self.work(candidate)
            self.at_most_one_may_write()
            if self.time >= end:
                return
            due = min(self.due(candidate) for candidate in self.candidates)
            self.time = min(max(due, self.time + 0.1), end)

    def due(self, candidate: Candidate) -> float:
        """When there is something to do for a candidate or its request."""
        flight = candidate.flight
        if flight is None:
            idle = candidate.suspended or candidate.over
            return NEVER if idle else (candidate.wake - candidate.offset) / candidate.rate
        if flight.event is None and flight.there < NEVER:
            return flight.there
        return min(flight.back, flight.sent + flight.action.timeout)

    def work(self, candidate: Candidate) -> None:
        """Whatever is due at this moment for this candidate and its requests."""
        if candidate.flight is not None:
            self.move(candidate.flight)
        if candidate.suspended:
            return
        flight = candidate.flight
        if flight is None:
            if candidate.wake <= self.steady(candidate):
                self.step(candidate, Tick(early=self.rng.random() < 0.1))
            if candidate.flight is not None:
                self.move(candidate.flight)
        elif flight.event is not None and self.time >= flight.back:
            candidate.flight = None
            self.step(candidate, flight.event)
        elif flight.back == NEVER and self.time >= flight.sent + flight.action.timeout:
            self.give_up(candidate)
            self.step(candidate, Failed("timed out"))

    def give_up(self, candidate: Candidate) -> None:
        flight = candidate.flight
        if flight is not None and flight.event is None:
            self.ghosts.append(flight)
        candidate.flight = None

    def move(self, flight: Flight) -> None:
        if flight.event is None and self.time >= flight.there:
            self.arrive(flight)

    @precondition(lambda self: self.ghosts)
    @rule(data=st.data())
    def a_request_arrives_long_after_it_was_given_up(self, data: st.DataObject) -> None:
        self.arrive(self.ghosts.pop(data.draw(st.integers(0, len(self.ghosts) - 1))))

    @rule(number=WHO)
    def a_process_is_killed_and_started_anew(self, number: int) -> None:
        old = self.who(number)
        self.give_up(old)
        self.candidates[old.number] = self.new(old.number, old.rate, old.wall)

    @rule(number=WHO, release=st.booleans())
    def a_candidate_is_stopped(self, number: int, release: bool) -> None:
        candidate = self.who(number)
        assume(candidate.flight is None)
        candidate.fence.close()
        self.step(candidate, Stop(release))

    @rule(number=WHO, seconds=st.floats(-1e7, 1e7))
    def a_wall_clock_jumps(self, number: int, seconds: float) -> None:
        self.who(number).wall += seconds

    @rule()
    def somebody_deletes_the_lease(self) -> None:
        self.server.write(None)

    @precondition(lambda self: self.server.lease is not None)
    @rule(holder=st.sampled_from(["thief", "", *range(CANDIDATES)]), seconds=st.integers(LEASE, 2 * LEASE))
    def somebody_overwrites_the_holder(self, holder: str | int, seconds: int) -> None:
        name = holder if isinstance(holder, str) else self.candidates[holder].core.settings.identity
        self.server.edit(holderIdentity=name, leaseDurationSeconds=seconds)

    @precondition(lambda self: self.server.lease is not None)
    @rule()
    def somebody_adds_a_label_and_a_preference(self) -> None:
        lease = self.server.lease
        self.server.write({**lease, "metadata": {**lease["metadata"], "labels": {"team": "a"}}})

    # What must hold

    @invariant()
    def at_most_one_may_write(self) -> None:
        writers = [c.core.settings.identity for c in self.candidates if c.fence.may_write()]
        assert len(writers) <= 1, writers

    def teardown(self) -> None:
        """The network heals and everybody meddling goes home: soon somebody leads, and stays."""
        if not self.candidates:
            return
        for candidate in self.candidates:
            candidate.network, candidate.suspended = (0.0, 0.0), False
            self.give_up(candidate)
            self.step(candidate, Failed("healed"))
        terms = set()
        heal_by = self.time + 2 * LEASE / 0.95 + LEASE + 3 * RETRY
        while self.time < heal_by + LEASE:
            for candidate in list(self.candidates):
                if candidate.over:
                    self.a_process_is_killed_and_started_anew(candidate.number)
            self.time_passes(LEASE / 4)
            if self.time >= heal_by:
                terms.add(tuple(c.core.settings.identity for c in self.candidates if c.fence.may_write()))
        assert len(terms) == 1
        assert terms != {()}


@pytest.mark.parametrize("steps", [20, 60])
def test_never_two_candidates_may_write_and_one_does_when_the_network_heals(
    make_server: Any, steps: int
) -> None:
    """The election's one promise, under lost, late and doubled requests, clock skew and drift, and theft."""
    Election.make_server = make_server
    examples = 50 if steps == 20 else 15
    config = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Election, settings=config)


@pytest.mark.parametrize("rates", [(1.0, 1.0, 1.0), (0.95, 1.1, 1.1)])
def test_a_network_that_gets_slow_and_then_breaks_makes_no_second_leader(
    make_server: Any, rates: tuple[float, ...]
) -> None:
    """A deadline that counted from the answers of renewals would outlast the lease."""
    Election.make_server = make_server
    for back in range(2, 10, 2):
        for slow_for in range(1, 13, 3):
            election = Election()
            election.begin(list(rates), [0.0, 1e6, -1e6], shipped=True)
            election.time_passes(10)
            assert election.who(LEADER).fence.may_write()
            election.the_leaders_network_gets_slow_and_then_breaks(float(back), float(slow_for))
            election.teardown()
