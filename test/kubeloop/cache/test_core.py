"""The reflector's decisions, transition by transition."""

from __future__ import annotations

import random

import pytest

from kubeloop.cache.core import (
    HEALTHY,
    PAGE_SIZE,
    READ_TIMEOUT,
    STREAM_IDLE,
    STREAM_TOTAL,
    ListPage,
    Phase,
    ReflectorCore,
    Verdict,
    Wait,
    Watch,
)
from kubeloop.cache.failure import Failure, Kind

GONE = Failure(Kind.EXPIRED, "410")
DOWN = Failure(Kind.UNREACHABLE, "refused")


@pytest.fixture
def core() -> ReflectorCore:
    """One that lists."""
    return ReflectorCore(streaming=False, rng=random.Random(1))


@pytest.fixture
def streaming() -> ReflectorCore:
    return ReflectorCore(rng=random.Random(1))


def listed(core: ReflectorCore, version: str = "100", now: float = 0.0) -> ReflectorCore:
    assert isinstance(core.next_action(now), ListPage)
    assert core.on_page(version, "", now) is Verdict.TAKE
    return core


def watch_of(core: ReflectorCore, now: float) -> Watch:
    action = core.next_action(now)
    assert isinstance(action, Watch)
    return action


def wait_of(core: ReflectorCore, now: float) -> float:
    action = core.next_action(now)
    assert isinstance(action, Wait)
    return action.seconds


def test_it_lists_page_by_page_and_watches_from_the_lists_own_version(core: ReflectorCore) -> None:
    """bug report 1"""
    assert core.next_action(0) == ListPage(PAGE_SIZE, "")
    assert core.on_page("100", "token", 0) is Verdict.MORE
    assert core.next_action(0) == ListPage(PAGE_SIZE, "token")
    assert core.on_page("100", "", 0) is Verdict.TAKE
    action = watch_of(core, 0)
    assert (action.version, action.initial, action.read_timeout) == ("100", False, READ_TIMEOUT)
    assert 300 <= action.timeout_seconds <= 600


def test_a_list_that_expires_between_pages_begins_anew_in_one_piece(core: ReflectorCore) -> None:
    core.next_action(0)
    core.on_page("100", "token", 0)
    assert core.on_list_failed(GONE, 0) is Verdict.AGAIN
    assert core.next_action(0) == ListPage(None, "")
    listed(core)


def test_a_page_lost_on_the_way_is_asked_for_again_and_the_earlier_ones_are_kept(core: ReflectorCore) -> None:
    core.next_action(0)
    core.on_page("100", "token", 0)
    assert core.on_list_failed(DOWN, 0) is Verdict.MORE
    assert core.next_action(wait_of(core, 0)) == ListPage(PAGE_SIZE, "token")


def test_events_and_bookmarks_move_the_place_to_resume_from(core: ReflectorCore) -> None:
    """go-anchors 6.4"""
    listed(core)
    core.next_action(0)
    core.on_open(0)
    assert core.on_event("105", 1)
    core.on_bookmark("110", False, 2)
    core.on_watch_ended(None, 300)
    assert watch_of(core, 300).version == "110"


def test_an_event_with_an_older_version_does_not_move_it_back(core: ReflectorCore) -> None:
    """bug report 1"""
    listed(core)
    core.next_action(0)
    core.on_open(0)
    core.on_event("105", 1)
    core.on_event("12", 1)
    core.on_watch_ended(None, 10)
    assert watch_of(core, 10).version == "105"


@pytest.mark.parametrize("kind", [Kind.UNREACHABLE, Kind.BUSY, Kind.FORBIDDEN])
def test_a_watch_is_resumed_without_a_list_after(core: ReflectorCore, kind: Kind) -> None:
    """go-anchors 6.3"""
    listed(core)
    for _ in range(20):
        core.next_action(0)
        core.on_watch_ended(Failure(kind, "…"), 0)
        assert watch_of(core, wait_of(core, 0)).version == "100"


def test_an_expired_watch_leads_to_a_list_at_once_but_only_the_first_time(core: ReflectorCore) -> None:
    """go-anchors 6.3; kr8s asked 410 times in 3 s"""
    listed(core)
    core.next_action(0)
    core.on_watch_ended(GONE, 0)
    listed(core, "120")
    core.next_action(0)
    core.on_watch_ended(GONE, 0)
    assert wait_of(core, 0) > 0


def test_a_watch_that_falls_silent_is_resumed(core: ReflectorCore) -> None:
    """go-anchors 6.7"""
    listed(core)
    core.next_action(0)
    core.on_open(0)
    core.on_event("105", 1)
    core.on_watch_ended(Failure(Kind.SILENT, "…"), 200)
    assert watch_of(core, 200 + wait_of(core, 200)).version == "105"


def test_a_watch_on_which_nothing_ever_came_leads_to_a_list(core: ReflectorCore) -> None:
    """etcd restored from a backup: the server says nothing, not even a bookmark, until it has caught up."""
    listed(core, "100")
    core.next_action(0)
    core.on_open(0)
    core.on_watch_ended(Failure(Kind.SILENT, "…"), 150)
    now = 150 + wait_of(core, 150)
    assert isinstance(core.next_action(now), ListPage)
    assert core.on_page("40", "", now) is Verdict.AGAIN
    listed(core, "40", now)
    assert watch_of(core, now).version == "40"


def test_a_server_that_is_back_is_not_waited_for_again_because_the_watch_has_expired(
    core: ReflectorCore,
) -> None:
    """bug report 3; a restarted API server answers 410 to every older version"""
    listed(core)
    now = 0.0
    for _ in range(10):
        core.next_action(now)
        core.on_watch_ended(DOWN, now)
        now += wait_of(core, now)
    assert watch_of(core, now).version == "100"
    core.on_watch_ended(GONE, now)
    listed(core, "120", now)
    assert watch_of(core, now).version == "120"


def test_a_missing_resource_type_is_asked_for_every_few_seconds_for_ever(core: ReflectorCore) -> None:
    now = 0.0
    for _ in range(100):
        assert isinstance(core.next_action(now), ListPage)
        core.on_list_failed(Failure(Kind.MISSING, "404"), now)
        assert core.failure is not None
        seconds = wait_of(core, now)
        assert 0.4 <= seconds <= 5
        now += seconds
    listed(core, now=now)
    assert core.failure is None


def test_a_type_that_vanishes_under_a_watch_is_listed_anew(core: ReflectorCore) -> None:
    """bug report 17"""
    listed(core)
    core.next_action(0)
    core.on_watch_ended(Failure(Kind.MISSING, "404"), 0)
    assert isinstance(core.next_action(wait_of(core, 0)), ListPage)


def test_failures_back_off_to_half_a_minute_with_jitter(core: ReflectorCore) -> None:
    """bug report 3"""
    listed(core)
    waits = []
    now = 0.0
    for _ in range(12):
        core.next_action(now)
        core.on_watch_ended(DOWN, now)
        waits.append(wait_of(core, now))
        now += waits[-1]
    assert 0.4 <= waits[0] <= 0.8
    assert all(15 <= wait <= 30 for wait in waits[-4:])
    assert len(set(waits[-4:])) == 4
    core.next_action(now)
    core.on_open(now)
    core.on_watch_ended(DOWN, now + 5)
    assert wait_of(core, now + 5) >= 15  # five seconds are no recovery
    core.next_action(now + 100)
    core.on_open(now + 100)
    core.on_watch_ended(DOWN, now + 100 + HEALTHY)
    assert wait_of(core, now + 100 + HEALTHY) <= 0.8


def test_retry_after_is_respected_and_not_believed_for_ever(core: ReflectorCore) -> None:
    """bug report 5"""
    listed(core)
    core.next_action(0)
    core.on_watch_ended(Failure(Kind.BUSY, "429", 7.0), 0)
    assert 7 <= wait_of(core, 0) <= 8
    core.on_watch_ended(Failure(Kind.BUSY, "429", 3600.0), 10)
    assert 60 <= wait_of(core, 10) <= 66


def test_a_server_that_ends_watches_at_once_is_not_asked_without_a_pause(core: ReflectorCore) -> None:
    """lightkube asked 1,225 times in 2 s"""
    listed(core)
    now, watches = 0.0, 0
    while now < 60:
        action = core.next_action(now)
        if isinstance(action, Wait):
            now += action.seconds
        elif isinstance(action, ListPage):
            core.on_page("100", "", now)
        else:
            watches += 1
            core.on_open(now)
            core.on_watch_ended(None, now + 0.01)
            now += 0.01
    assert watches < 15


def test_a_normal_end_is_resumed_at_once(core: ReflectorCore) -> None:
    listed(core)
    core.next_action(0)
    core.on_open(0)
    core.on_watch_ended(None, 400)
    assert watch_of(core, 400).version == "100"


def test_internal_errors_resume_and_only_without_any_progress_list(core: ReflectorCore) -> None:
    """go-anchors 5b: client-go lists after each"""
    listed(core)
    now = 0.0
    for _ in range(5):
        core.next_action(now)
        core.on_open(now)
        core.on_event("101", now)
        core.on_watch_ended(Failure(Kind.BROKEN, "etcd"), now)
        now += wait_of(core, now)
        assert watch_of(core, now).version == "101"
    for _ in range(2):
        core.next_action(now)
        core.on_watch_ended(Failure(Kind.BROKEN, "etcd"), now)
        now += wait_of(core, now)
    assert isinstance(core.next_action(now), ListPage)


def test_a_list_that_goes_back_is_doubted_once_and_then_believed(core: ReflectorCore) -> None:
    """An outdated answer, or a server restored from a backup."""
    listed(core, "500")
    core.next_action(0)
    core.on_watch_ended(Failure(Kind.AHEAD, "too large"), 0)
    now = wait_of(core, 0)
    assert isinstance(core.next_action(now), ListPage)
    assert core.on_page("80", "", now) is Verdict.AGAIN
    assert isinstance(core.next_action(now), ListPage)
    assert core.on_page("80", "", now) is Verdict.TAKE
    assert watch_of(core, now).version == "80"


def test_a_list_without_version_is_not_taken(core: ReflectorCore) -> None:
    core.next_action(0)
    assert core.on_page("", "", 0) is Verdict.AGAIN
    assert wait_of(core, 0) > 0


def test_a_streaming_list_ends_with_its_bookmark_and_goes_on_as_the_watch(streaming: ReflectorCore) -> None:
    action = watch_of(streaming, 0)
    assert (action.version, action.initial, action.read_timeout) == ("", True, STREAM_IDLE)
    streaming.on_open(0)
    assert not streaming.on_event("900", 0.1)  # in no order, and no place to resume from
    assert not streaming.on_event("20", 0.1)
    assert streaming.on_bookmark("901", True, 0.2) is Verdict.TAKE
    assert streaming.phase is Phase.WATCHING
    assert streaming.on_event("902", 0.3)
    streaming.on_watch_ended(None, 400)
    assert watch_of(streaming, 400).version == "902"


def test_a_streaming_list_cut_off_before_its_end_is_not_resumed_from_its_events(
    streaming: ReflectorCore,
) -> None:
    """go-anchors 6.4"""
    watch_of(streaming, 0)
    streaming.on_open(0)
    streaming.on_event("900", 0.1)
    streaming.on_watch_ended(DOWN, 0.2)
    now = 0.2 + wait_of(streaming, 0.2)
    assert watch_of(streaming, now).version == ""
    streaming.on_open(now)
    streaming.on_watch_ended(DOWN, now)
    assert isinstance(streaming.next_action(now + wait_of(streaming, now)), ListPage)


@pytest.mark.parametrize(
    "failure",
    [
        Failure(Kind.REFUSED, "422 sendInitialEvents is forbidden"),
        Failure(Kind.SILENT, "no bookmark"),
        Failure(Kind.EXPIRED, "410"),
        None,
    ],
)
def test_where_streaming_lists_do_not_work_a_list_is_made_at_once(
    streaming: ReflectorCore, failure: Failure | None
) -> None:
    """go-anchors 6.6, k/k#140890"""
    watch_of(streaming, 0)
    if failure is None or failure.kind is not Kind.REFUSED:
        streaming.on_open(0)
    streaming.on_watch_ended(failure, STREAM_IDLE)
    listed(streaming, now=STREAM_IDLE)
    streaming.next_action(STREAM_IDLE)
    streaming.on_watch_ended(GONE, STREAM_IDLE)
    assert isinstance(streaming.next_action(STREAM_IDLE), ListPage)


def test_a_stream_of_events_without_end_is_given_up(streaming: ReflectorCore) -> None:
    """go-anchors 6.6: a server that does not know sendInitialEvents just watches."""
    watch_of(streaming, 0)
    streaming.on_open(0)
    for second in range(int(STREAM_TOTAL)):
        streaming.on_event(str(second + 5), float(second))
        assert not streaming.overdue(float(second))
    assert streaming.overdue(STREAM_TOTAL + 1)


@pytest.mark.parametrize("kind", [Kind.UNREACHABLE, Kind.BUSY, Kind.FORBIDDEN, Kind.MISSING])
def test_a_streaming_list_is_tried_again_after(streaming: ReflectorCore, kind: Kind) -> None:
    now = 0.0
    for _ in range(10):
        assert watch_of(streaming, now).initial
        streaming.on_watch_ended(Failure(kind, "…"), now)
        now += wait_of(streaming, now)


def test_hurrying_ends_a_wait(core: ReflectorCore) -> None:
    core.on_list_failed(Failure(Kind.MISSING, "404"), 0)
    wait_of(core, 0)
    core.hurry()
    assert isinstance(core.next_action(0), ListPage)
