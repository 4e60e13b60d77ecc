"""The queue's decisions, on times given by hand (R0.23, R0.13)."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kubeloop.queue import AGING_SECONDS, LOW_PRIORITY, URGENT_SPACING, QueueCore


def taken(core: QueueCore[str], now: float) -> list[str]:
    keys = []
    while (item := core.take(now)) is not None:
        keys.append(item.key)
    return keys


def test_keys_come_out_in_the_order_they_went_in() -> None:
    core: QueueCore[str] = QueueCore()
    for key in "abc":
        core.add(key, 0.0)

    assert taken(core, 0.0) == ["a", "b", "c"]


def test_a_key_added_many_times_comes_out_once() -> None:
    """R0.23: duplicates are merged even in event storms."""
    core: QueueCore[str] = QueueCore()
    for second in range(1000):
        core.add("a", second / 1000)

    assert taken(core, 1.0) == ["a"]


def test_a_key_being_processed_is_not_handed_out_again_and_then_runs_once_more_at_the_tail() -> None:
    """go-anchors 6.1."""
    core: QueueCore[str] = QueueCore()
    core.add("a", 0.0)
    assert taken(core, 0.0) == ["a"]
    for _ in range(5):
        core.add("a", 1.0)
    core.add("b", 2.0)
    assert taken(core, 2.0) == ["b"]
    core.add("c", 2.5)

    core.done("a", 3.0)

    assert taken(core, 3.0) == ["c", "a"]


def test_an_immediate_add_promotes_a_delayed_one_and_it_runs_once() -> None:
    """go-anchors 6.2, client-go#131."""
    core: QueueCore[str] = QueueCore()
    core.add("a", 0.0, after=300.0)
    core.add("a", 1.0)

    assert taken(core, 1.0) == ["a"]
    core.done("a", 1.0)
    assert taken(core, 1000.0) == []


def test_merging_keeps_the_higher_priority_and_the_earlier_time() -> None:
    core: QueueCore[str] = QueueCore()
    core.add("a", 0.0, after=10.0, priority=5)
    core.add("a", 0.0, after=20.0, priority=LOW_PRIORITY)
    core.add("a", 0.0, after=5.0, priority=LOW_PRIORITY)

    assert core.take(4.9) is None
    item = core.take(5.0)
    assert item is not None
    assert (item.key, item.priority) == ("a", 5)


def test_normal_work_goes_before_the_initial_list() -> None:
    core: QueueCore[str] = QueueCore()
    for n in range(100):
        core.add(f"initial{n}", 0.0, priority=LOW_PRIORITY)
    core.add("event", 1.0)

    item = core.take(1.0)

    assert item is not None
    assert item.key == "event"


def test_low_priority_is_not_starved_by_a_steady_stream_of_normal_work() -> None:
    """controller-runtime#3496: initial-list items starved for ever."""
    core: QueueCore[str] = QueueCore()
    core.add("low", 0.0, priority=LOW_PRIORITY)
    now = 0.0
    for n in range(10_000):
        core.add(f"event{n}", now)
        core.add(f"event{n}b", now)  # twice what is taken: a growing backlog
        item = core.take(now)
        assert item is not None
        if item.key == "low":
            break
        core.done(item.key, now)
        now += 0.01

    # Two come in for each one taken, so at 10 s of age there is a backlog of as much again before it.
    assert now <= 2 * -LOW_PRIORITY * AGING_SECONDS + 1


def test_a_raised_priority_does_not_lose_the_age_of_the_entry() -> None:
    core: QueueCore[str] = QueueCore()
    core.add("old", 0.0, priority=LOW_PRIORITY)
    core.add("new", 5.0)
    core.add("old", 6.0)

    assert taken(core, 6.0) == ["old", "new"]


def test_events_do_not_bypass_the_backoff_of_a_failed_key() -> None:
    """kubernetes#112325."""
    core: QueueCore[str] = QueueCore()
    core.add("a", 0.0)
    assert taken(core, 0.0) == ["a"]
    core.retry("a", 0.0, 30.0)
    core.done("a", 0.0)
    for second in range(30):
        core.add("a", float(second))
        assert core.take(float(second)) is None

    assert taken(core, 30.0) == ["a"]


def test_an_event_that_came_while_the_key_failed_waits_with_it() -> None:
    core: QueueCore[str] = QueueCore()
    core.add("a", 0.0)
    core.take(0.0)
    core.add("a", 1.0)
    core.retry("a", 2.0, 30.0)
    core.done("a", 2.0)

    assert core.take(31.9) is None
    assert taken(core, 32.0) == ["a"]


def test_a_changed_spec_is_tried_soon_after_a_failure_but_not_in_a_hot_loop() -> None:
    core: QueueCore[str] = QueueCore()
    core.add("a", 0.0)
    core.take(0.0)
    core.retry("a", 0.0, 60.0)
    core.done("a", 0.0)
    core.add("a", 1.0, urgent=True)

    assert core.take(URGENT_SPACING - 0.1) is None
    assert taken(core, URGENT_SPACING) == ["a"]


def test_it_tells_when_to_look_again() -> None:
    core: QueueCore[str] = QueueCore()
    assert core.next_due(0.0) is None
    core.add("a", 0.0, after=7.0)
    assert core.next_due(2.0) == 5.0
    core.add("b", 2.0)
    assert core.next_due(2.0) == 0.0


def test_a_discarded_key_does_not_come_out() -> None:
    core: QueueCore[str] = QueueCore()
    core.add("a", 0.0)
    core.add("b", 0.0, after=1.0)
    core.discard("a")
    core.discard("b")

    assert taken(core, 2.0) == []
    assert len(core) == 0


def test_a_hot_key_leaves_no_growing_heap_behind() -> None:
    core: QueueCore[str] = QueueCore()
    for n in range(20_000):
        now = n * 0.01
        core.add("hot", now)
        core.take(now)
        core.add("hot", now, after=300.0)  # the resync
        core.done("hot", now)

    assert len(core._waiting) < 200


def test_a_delay_that_is_brought_forward_over_and_over_leaves_no_growing_heap_behind() -> None:
    core: QueueCore[str] = QueueCore()
    for n in range(1000):
        core.add("hot", 0.0, after=2000.0 - n)
        assert len(core._waiting) <= 2 * len(core) + 64


def test_tidying_up_loses_nothing_and_brings_nothing_twice() -> None:
    """Keys in every state while a hot one makes the heap of delays overflow."""
    core: QueueCore[str] = QueueCore()
    core.add("busy", 0.0)
    assert core.take(0.0) is not None
    core.add("busy", 0.0, after=3.0)
    core.add("due", 0.0)
    for n in range(5):
        core.add(f"later{n}", 0.0, after=9.0 - n)
    for n in range(100):
        core.add("hot", 0.0, after=200.0 - n)

    assert core.next_due(0.0) == 0.0
    assert taken(core, 0.0) == ["due"]
    assert core.next_due(0.0) == 5.0
    assert core.ready == 0
    assert core.came_due == 2
    assert taken(core, 10.0) == [f"later{n}" for n in reversed(range(5))]
    core.done("busy", 10.0)
    assert taken(core, 1000.0) == ["busy", "hot"]
    assert core.came_due == 9


def test_a_repeated_add_keeps_the_place_in_the_line() -> None:
    core: QueueCore[str] = QueueCore()
    for key in ["a", "b", "a"]:
        core.add(key, 0.0)

    assert taken(core, 0.0) == ["a", "b"]


def test_an_item_tells_how_long_it_has_been_due() -> None:
    """Not how long ago it was asked for: a delay is no waiting."""
    core: QueueCore[str] = QueueCore()
    core.add("delayed", 1.0, after=2.0)
    core.add("immediate", 1.0)

    first, second = core.take(7.0), core.take(7.0)

    assert first is not None
    assert second is not None
    assert (first.key, first.waited) == ("immediate", 6.0)
    assert (second.key, second.waited) == ("delayed", 4.0)


def test_an_add_is_of_normal_priority_unless_it_says_otherwise() -> None:
    core: QueueCore[str] = QueueCore()
    core.add("a", 0.0)
    core.retry("b", 0.0, 0.0)

    assert core.ready_by_priority() == {0: 2}


def test_what_is_due_is_counted_by_priority_and_what_is_not_due_is_not() -> None:
    core: QueueCore[str] = QueueCore()
    for key, priority in [("a", 0), ("b", 0), ("c", 0), ("d", LOW_PRIORITY)]:
        core.add(key, 0.0, priority=priority)
    core.add("later", 0.0, after=1.0)

    assert core.ready_by_priority() == {0: 3, LOW_PRIORITY: 1}


def test_each_key_that_becomes_due_is_counted_once_however_often_it_is_added() -> None:
    core: QueueCore[str] = QueueCore()
    for key in "abc":
        core.add(key, 0.0, after=300.0)
        core.add(key, 0.0, after=10.0)  # leaves a stale place behind
    assert core.came_due == 0
    assert core.next_due(10.0) == 0.0
    assert core.came_due == 3

    assert core.next_due(300.0) == 0.0
    assert core.came_due == 3
    item = core.take(300.0)
    assert item is not None
    assert item.waited == 290.0


def test_a_moment_that_is_near_is_told_exactly() -> None:
    core: QueueCore[str] = QueueCore()
    core.add("a", 0.0, after=0.5)

    assert core.next_due(0.0) == 0.5
    assert core.next_due(0.4) == 0.5 - 0.4


def test_a_discarded_delay_does_not_bring_a_later_add_forward() -> None:
    core: QueueCore[str] = QueueCore()
    core.add("a", 0.0, after=5.0)
    core.discard("a")
    core.add("a", 0.0, after=10.0)

    assert core.next_due(0.0) == 10.0
    assert core.take(5.0) is None
    assert taken(core, 10.0) == ["a"]


def test_discarding_what_is_not_there_is_no_error() -> None:
    core: QueueCore[str] = QueueCore()
    core.discard("a")

    assert len(core) == 0


def test_an_add_soon_after_the_clock_began_is_not_held_back() -> None:
    core: QueueCore[str] = QueueCore()
    core.add("a", 0.0, after=0.9)
    core.add("a", 0.1)

    assert taken(core, 0.1) == ["a"]


def test_not_even_an_urgent_add_comes_back_sooner_than_the_server_asked_for() -> None:
    """Retry-After: it is the server that has no time, whatever the user did meanwhile."""
    core: QueueCore[str] = QueueCore()
    core.add("a", 0.0)
    assert taken(core, 0.0) == ["a"]
    core.retry("a", 0.0, 0.1, at_least=8.0)
    core.done("a", 0.0)
    core.add("a", 1.0)
    core.add("a", 1.0, urgent=True)
    assert taken(core, 7.9) == []
    assert taken(core, 8.0) == ["a"]
    core.retry("a", 8.0, 60.0, at_least=2.0, urgent=True)
    core.done("a", 8.0)

    # The own backoff is longer; for what is urgent it ends after five seconds, as ever.
    assert taken(core, 8.0 + URGENT_SPACING - 0.1) == []
    assert taken(core, 8.0 + URGENT_SPACING) == ["a"]


def test_an_urgent_add_of_a_key_that_never_failed_is_like_any_other() -> None:
    core: QueueCore[str] = QueueCore()
    core.add("a", 0.0, after=10.0)
    core.add("a", 1.0, urgent=True)

    assert taken(core, 1.0) == ["a"]


def test_a_retry_keeps_the_priority_of_what_was_added_meanwhile() -> None:
    core: QueueCore[str] = QueueCore()
    core.add("a", 0.0, priority=LOW_PRIORITY)
    core.take(0.0)
    core.add("a", 0.0, priority=7)
    core.retry("a", 0.0, 1.0, priority=LOW_PRIORITY)
    core.done("a", 0.0)

    item = core.take(1.0)
    assert item is not None
    assert item.priority == 7


def test_a_retry_after_the_key_was_given_back_waits_all_the_same() -> None:
    core: QueueCore[str] = QueueCore()
    core.add("a", 0.0)
    core.take(0.0)
    core.add("a", 0.0)
    core.done("a", 0.0)
    assert core.ready == 1

    core.retry("a", 0.0, 30.0)

    assert core.ready == 0
    assert core.next_due(0.0) == 30.0
    assert taken(core, 29.9) == []
    assert taken(core, 30.0) == ["a"]


@given(st.integers(0, 2**31), st.integers(1, 40))
def test_every_key_is_taken_within_its_head_start_and_its_share(seed: int, keys: int) -> None:
    """Fairness: with one take a second and mixed priorities nobody waits longer than age plus backlog."""
    rng = random.Random(seed)
    core: QueueCore[str] = QueueCore()
    added = {f"k{n}": 0.0 for n in range(keys)}
    for key in added:
        core.add(key, 0.0, priority=rng.choice([0, LOW_PRIORITY]))
    now = 0.0
    while added:
        core.add(f"new{now}", now)
        item = core.take(now)
        assert item is not None
        added.pop(item.key, None)
        core.done(item.key, now)
        now += 1.0
        assert now <= 10 + 2 * keys + 2


class QueueMachine(RuleBasedStateMachine):
    """Random histories: one worker a key, nothing lost, nothing early."""

    def __init__(self) -> None:
        super().__init__()
        self.core: QueueCore[int] = QueueCore()
        self.now = 0.0
        self.processing: set[int] = set()
        self.owed: dict[int, float] = {}  # key -> latest time by which it must be due

    @rule(key=st.integers(0, 5), after=st.sampled_from([0.0, 1.0, 10.0]), priority=st.sampled_from([0, -100]))
    def add(self, key: int, after: float, priority: int) -> None:
        floor = self.owed.get(key)
        self.core.add(key, self.now, after=after, priority=priority)
        self.owed[key] = self.now + after if floor is None else max(floor, self.now + after)

    @rule(seconds=st.floats(0, 20))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def take(self) -> None:
        item = self.core.take(self.now)
        if item is not None:
            assert item.key not in self.processing
            assert item.key in self.owed
            del self.owed[item.key]
            self.processing.add(item.key)

    @precondition(lambda self: self.processing)
    @rule(data=st.data(), outcome=st.sampled_from(["done", "retry"]))
    def finish(self, data: st.DataObject, outcome: str) -> None:
        key = data.draw(st.sampled_from(sorted(self.processing)))
        if outcome == "retry":
            self.core.retry(key, self.now, 5.0)
            self.owed[key] = self.now + 5.0
        self.core.done(key, self.now)
        self.processing.discard(key)

    @invariant()
    def whatever_is_owed_is_queued(self) -> None:
        assert set(self.owed) == {key for key in range(6) if key in self.core}

    @invariant()
    def it_never_says_nothing_is_due_when_something_is(self) -> None:
        late = [key for key, at in self.owed.items() if at <= self.now and key not in self.processing]
        if late:
            assert self.core.next_due(self.now) == 0.0

    def teardown(self) -> None:
        for key in list(self.processing):
            self.core.done(key, self.now)
        self.now += 1000
        assert {item.key for item in iter(lambda: self.core.take(self.now), None)} == set(self.owed)


TestQueueMachine = QueueMachine.TestCase
