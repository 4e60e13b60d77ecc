"""The reflector's decisions, transition by transition."""

from __future__ import annotations

import random

import pytest

from kubeloop.cache.core import (
    HEALTHY,
    PAGE_SIZE,
    READ_TIMEOUT,
    SHORT,
    STALLED,
    STREAM_IDLE,
    STREAM_TOTAL,
    Check,
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
    """The watch that comes next, for a server that has not gone back."""
    action = core.next_action(now)
    if isinstance(action, Check):
        core.on_checked("1000000", now)
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


class TestAServerThatWentBack:
    """etcd was restored from a backup (kubernetes#107457, docs/design/restore.md): a resumed watch would be
    accepted, and say nothing until the server has caught up with us, hours later."""

    def cut_off(self, core: ReflectorCore, failure: Failure | None = DOWN) -> float:
        """Watch until 105, which is cut off after a minute; when the next try is."""
        listed(core)
        watch_of(core, 0)
        core.on_open(0)
        core.on_event("105", 1)
        core.on_watch_ended(failure, 60)
        action = core.next_action(60)
        return 60 + action.seconds if isinstance(action, Wait) else 60

    @pytest.mark.parametrize("failure", [DOWN, None, Failure(Kind.BROKEN, "…"), Failure(Kind.SILENT, "…")])
    def test_is_found_out_before_a_watch_that_was_cut_off_is_resumed(
        self, core: ReflectorCore, failure: Failure | None
    ) -> None:
        now = self.cut_off(core, failure)
        assert core.next_action(now) == Check()
        core.on_checked("40", now)
        assert core.failure is not None
        assert core.failure.text == "the server went back from 105 to 40"
        assert isinstance(core.next_action(now), ListPage)
        assert core.on_page("41", "", now) is Verdict.TAKE
        assert watch_of(core, now).version == "41"
        assert core.failure is None

    @pytest.mark.parametrize("version", ["105", "106", "4000"])
    def test_otherwise_the_watch_is_resumed_and_nothing_is_listed(
        self, core: ReflectorCore, version: str
    ) -> None:
        now = self.cut_off(core)
        assert core.next_action(now) == Check()
        core.on_checked(version, now)
        action = core.next_action(now)
        assert isinstance(action, Watch)
        assert action.version == "105"

    def test_a_watch_that_lasted_as_long_as_asked_is_resumed_without_asking(
        self, core: ReflectorCore
    ) -> None:
        listed(core)
        seconds = watch_of(core, 0).timeout_seconds
        core.on_open(0)
        core.on_watch_ended(None, seconds)
        assert isinstance(core.next_action(seconds), Watch)

    def test_a_server_that_cannot_be_reached_in_between_may_be_another_one_afterwards(
        self, core: ReflectorCore
    ) -> None:
        listed(core)
        seconds = watch_of(core, 0).timeout_seconds
        core.on_open(0)
        core.on_watch_ended(None, seconds)
        watch_of(core, seconds)
        core.on_watch_ended(DOWN, seconds)
        now = seconds + wait_of(core, seconds)
        assert core.next_action(now) == Check()

    @pytest.mark.parametrize("kind", [Kind.UNREACHABLE, Kind.BUSY, Kind.FORBIDDEN])
    def test_it_is_asked_until_it_says(self, core: ReflectorCore, kind: Kind) -> None:
        now = self.cut_off(core)
        for _ in range(5):
            assert core.next_action(now) == Check()
            core.on_check_failed(Failure(kind, "…"), now)
            now += wait_of(core, now)
        assert watch_of(core, now).version == "105"

    def test_a_question_that_is_not_understood_is_left_out(self, core: ReflectorCore) -> None:
        now = self.cut_off(core)
        core.on_check_failed(Failure(Kind.REFUSED, "…"), now)
        assert isinstance(core.next_action(now), Watch)

    def test_a_kind_that_is_gone_is_listed_when_it_is_back(self, core: ReflectorCore) -> None:
        now = self.cut_off(core)
        core.on_check_failed(Failure(Kind.MISSING, "…"), now)
        assert isinstance(core.next_action(now + wait_of(core, now)), ListPage)


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


def test_retry_after_is_when_and_not_believed_for_ever(core: ReflectorCore) -> None:
    """bug report 5"""
    listed(core)
    now = 0.0
    for _ in range(10):  # the own schedule would be at half a minute by now
        core.next_action(now)
        core.on_watch_ended(DOWN, now)
        now += wait_of(core, now)
    for said, least, most in ((2.0, 2.0, 2.5), (7.0, 7.0, 8.75), (3600.0, 60.0, 75.0), (0.001, 0.8, 1.0)):
        core.next_action(now)
        core.on_watch_ended(Failure(Kind.BUSY, "429", said), now)
        assert least <= wait_of(core, now) <= most
        now += wait_of(core, now)


def test_retry_after_of_a_list_is_when_too(core: ReflectorCore) -> None:
    """A server that is overloaded for long: asked when it said, neither sooner nor half a minute later."""
    now, asked = 0.0, 0
    while now < 60:
        action = core.next_action(now)
        if isinstance(action, Wait):
            now += action.seconds
        elif isinstance(action, Watch):
            asked += 1
            core.on_watch_ended(Failure(Kind.BUSY, "429", 2.0), now)
        else:
            asked += 1
            core.on_list_failed(Failure(Kind.BUSY, "429", 2.0), now)
    assert 60 / 2.5 <= asked <= 60 / 2 + 1


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


@pytest.mark.parametrize("kind", [Kind.BUSY, Kind.FORBIDDEN, Kind.MISSING])
def test_a_streaming_list_is_tried_again_after(streaming: ReflectorCore, kind: Kind) -> None:
    now = 0.0
    for _ in range(10):
        assert watch_of(streaming, now).initial
        streaming.on_watch_ended(Failure(kind, "…"), now)
        now += wait_of(streaming, now)


def test_while_nothing_answers_streaming_lists_and_plain_ones_take_turns(streaming: ReflectorCore) -> None:
    """go-anchors 6.6: a 5xx may mean that only streaming lists do not get through; client-go lists then."""
    now = 0.0
    for _ in range(5):
        assert watch_of(streaming, now).initial
        streaming.on_watch_ended(DOWN, now)
        now += wait_of(streaming, now)
        assert isinstance(streaming.next_action(now), ListPage)
        streaming.on_list_failed(DOWN, now)
        now += wait_of(streaming, now)
    streaming.next_action(now)
    streaming.on_watch_ended(DOWN, now)
    now += wait_of(streaming, now)
    listed(streaming, now=now)
    streaming.next_action(now)
    streaming.on_watch_ended(GONE, now)
    assert watch_of(streaming, now).initial, "and it is not held against them for ever"


def test_hurrying_ends_a_wait(core: ReflectorCore) -> None:
    core.on_list_failed(Failure(Kind.MISSING, "404"), 0)
    wait_of(core, 0)
    core.hurry()
    assert isinstance(core.next_action(0), ListPage)


def test_it_tells_what_it_is_doing(core: ReflectorCore, streaming: ReflectorCore) -> None:
    """What readyz and the status page show."""
    assert core.phase is Phase.LISTING
    core.on_list_failed(DOWN, 0)
    wait_of(core, 0)
    assert core.phase is Phase.WAITING
    core.hurry()
    core.next_action(0)
    assert core.phase is Phase.LISTING
    core.on_page("100", "", 0)
    core.next_action(0)
    assert core.phase is Phase.WATCHING

    watch_of(streaming, 0)
    assert streaming.phase is Phase.STREAMING


def test_only_a_whole_list_makes_it_synced_and_both_lists_and_watches_are_counted(
    core: ReflectorCore,
) -> None:
    assert (core.synced, core.lists, core.watches) == (False, 0, 0)
    core.on_page("100", "token", 0)
    assert (core.synced, core.lists) == (False, 0)
    core.on_page("100", "", 0)
    assert (core.synced, core.lists) == (True, 1)
    for number in (1, 2):
        core.next_action(0)
        core.on_open(0)
        assert core.watches == number
        core.on_watch_ended(None, 400)
    core.on_watch_ended(GONE, 400)
    core.on_page("120", "", 400)
    assert (core.synced, core.lists, core.watches) == (True, 2, 2)


def test_it_remembers_when_the_server_last_said_anything_of_use(
    core: ReflectorCore, streaming: ReflectorCore
) -> None:
    """What readyz calls fresh."""
    assert core.heard is None
    core.on_page("100", "token", 1)
    assert core.heard == 1
    core.on_page("100", "", 2)
    assert core.heard == 2
    core.next_action(3)
    core.on_open(3)
    assert core.heard == 3
    core.on_event("105", 4)
    assert core.heard == 4
    core.on_bookmark("106", False, 5)
    assert core.heard == 5
    core.on_watch_ended(DOWN, 6)
    assert core.heard == 5

    watch_of(streaming, 0)
    streaming.on_open(0)
    assert streaming.heard is None  # a server that cannot stream lists agrees to them, too
    streaming.on_event("900", 1)
    assert streaming.heard == 1
    streaming.on_bookmark("901", True, 2)
    assert streaming.heard == 2


def test_a_failure_is_told_until_the_watch_is_open_again(core: ReflectorCore) -> None:
    assert core.failure is None
    listed(core)
    core.next_action(0)
    core.on_watch_ended(DOWN, 0)
    assert core.failure == DOWN
    core.next_action(wait_of(core, 0))
    assert core.failure == DOWN
    core.on_open(1)
    assert core.failure is None


def test_why_a_streaming_list_was_given_up_is_told_until_there_is_a_list(streaming: ReflectorCore) -> None:
    refused = Failure(Kind.REFUSED, "422 sendInitialEvents is forbidden")
    watch_of(streaming, 0)
    streaming.on_watch_ended(refused, 0)
    assert streaming.failure == refused
    listed(streaming)
    assert streaming.failure is None


def test_what_the_server_does_wrong_is_told_in_words(core: ReflectorCore) -> None:
    core.on_page("", "", 0)
    assert core.failure == Failure(Kind.BROKEN, "the list has no resourceVersion")
    listed(core, now=100)
    core.next_action(100)
    core.on_open(100)
    core.on_watch_ended(None, 100.5)
    assert core.failure == Failure(Kind.UNREACHABLE, "the server ended the watch at once")


def test_the_same_seed_gives_the_same_choices() -> None:
    """Two cores of one seed: what a simulation relies on."""
    one, other = (listed(ReflectorCore(streaming=False, rng=random.Random(3))) for _ in range(2))
    assert [watch_of(one, 0) for _ in range(5)] == [watch_of(other, 0) for _ in range(5)]


def test_a_streaming_list_asks_for_minutes_like_any_watch(streaming: ReflectorCore) -> None:
    assert 300 <= watch_of(streaming, 0).timeout_seconds <= 600


def test_a_streaming_list_has_a_minute_from_its_opening_on(streaming: ReflectorCore) -> None:
    watch_of(streaming, 1000)
    assert not streaming.overdue(2000)  # it is not open yet
    streaming.on_open(1000)
    assert not streaming.overdue(1000 + STREAM_TOTAL)
    assert streaming.overdue(1000 + STREAM_TOTAL + 0.1)
    streaming.on_bookmark("901", True, 1001)
    assert not streaming.overdue(2000)


def test_a_list_in_one_piece_is_an_exception(core: ReflectorCore) -> None:
    core.on_page("100", "token", 0)
    core.on_list_failed(GONE, 0)
    assert core.next_action(0) == ListPage(None, "")
    core.on_page("100", "", 0)
    core.on_watch_ended(GONE, 0)
    assert core.next_action(0) == ListPage(PAGE_SIZE, "")


def test_a_server_that_pages_unasked_and_forgets_at_once_is_not_asked_without_a_pause(
    core: ReflectorCore,
) -> None:
    for _ in range(2):
        core.on_page("100", "token", 0)
        assert core.on_list_failed(GONE, 0) is Verdict.AGAIN
    assert core.next_action(wait_of(core, 0)) == ListPage(None, "")


@pytest.mark.parametrize("kind", [Kind.BUSY, Kind.UNREACHABLE])
def test_a_first_page_that_is_lost_leaves_nothing_to_keep(core: ReflectorCore, kind: Kind) -> None:
    assert core.on_list_failed(Failure(kind, "…"), 0) is Verdict.AGAIN
    assert core.next_action(wait_of(core, 0)) == ListPage(PAGE_SIZE, "")


@pytest.mark.parametrize("kind", [Kind.REFUSED, Kind.FORBIDDEN, Kind.MISSING])
def test_a_list_that_is_refused_midway_begins_anew(core: ReflectorCore, kind: Kind) -> None:
    core.on_page("100", "token", 0)
    assert core.on_list_failed(Failure(kind, "…"), 0) is Verdict.AGAIN
    assert core.next_action(wait_of(core, 0)) == ListPage(PAGE_SIZE, "")


def test_a_bookmark_and_an_event_are_both_signs_of_life(core: ReflectorCore) -> None:
    listed(core)
    core.next_action(0)
    core.on_open(0)
    core.on_bookmark("104", False, 1)
    core.on_event("105", 2)
    core.on_watch_ended(Failure(Kind.SILENT, "…"), 200)
    assert watch_of(core, 200 + wait_of(core, 200)).version == "105"


def test_a_list_and_a_bookmark_are_progress_like_events(core: ReflectorCore) -> None:
    """Only several tries in a row without any make the place to resume from doubtful."""
    listed(core)
    now = 0.0

    def breaks() -> None:
        nonlocal now
        core.next_action(now)
        core.on_watch_ended(Failure(Kind.BROKEN, "etcd"), now)
        now += wait_of(core, now)

    for _ in range(STALLED - 1):
        breaks()
    assert watch_of(core, now).version == "100"
    core.on_open(now)
    core.on_bookmark("104", False, now)
    for _ in range(STALLED - 1):
        breaks()
    assert watch_of(core, now).version == "104"


def test_a_watch_that_lasts_a_second_has_ended_normally_and_a_shorter_one_has_not(
    core: ReflectorCore,
) -> None:
    listed(core)
    core.next_action(10)
    core.on_open(10)
    core.on_watch_ended(None, 10 + SHORT)
    watch_of(core, 10 + SHORT)
    core.on_watch_ended(None, 20)  # not even open
    assert wait_of(core, 20) > 0


def test_a_list_as_old_as_what_was_seen_is_taken_at_once(core: ReflectorCore) -> None:
    listed(core, "100")
    core.next_action(0)
    core.on_watch_ended(GONE, 0)
    listed(core, "100")


@pytest.mark.parametrize(("after", "at_once"), [(10.0, False), (HEALTHY - 0.1, False), (HEALTHY, True)])
def test_one_expired_watch_a_minute_is_made_up_for_at_once(
    core: ReflectorCore, after: float, at_once: bool
) -> None:
    listed(core)
    core.on_watch_ended(GONE, 1000)
    listed(core, "120", 1000)
    core.on_watch_ended(GONE, 1000 + after)
    assert isinstance(core.next_action(1000 + after), ListPage) is at_once


@pytest.mark.parametrize(("early", "asks"), [(SHORT, False), (SHORT + 0.1, True)])
def test_a_watch_that_ended_early_by_more_than_a_second_was_cut_off(
    core: ReflectorCore, early: float, asks: bool
) -> None:
    listed(core)
    seconds = watch_of(core, 1000).timeout_seconds
    core.on_open(1000)
    end = 1000 + seconds - early
    core.on_watch_ended(None, end)
    assert (core.next_action(end) == Check()) is asks


@pytest.mark.parametrize("kind", [Kind.BUSY, Kind.FORBIDDEN, Kind.BROKEN])
def test_a_watch_that_was_answered_with_a_refusal_is_asked_for_again_without_a_question(
    core: ReflectorCore, kind: Kind
) -> None:
    """Nothing was missed: whoever answers is the server that we know."""
    listed(core)
    watch_of(core, 0)
    core.on_watch_ended(Failure(kind, "…"), 0)
    assert isinstance(core.next_action(wait_of(core, 0)), Watch)


def test_where_the_server_is_counts_as_heard_and_going_back_as_a_failure(core: ReflectorCore) -> None:
    listed(core)
    core.on_watch_ended(DOWN, 0)
    assert core.next_action(10) == Check()
    core.on_checked("", 10)  # it does not say
    assert core.heard == 10
    assert isinstance(core.next_action(10), Watch)
    core.on_watch_ended(DOWN, 10)
    core.on_checked("99", 20)
    assert core.failure == Failure(Kind.AHEAD, "the server went back from 100 to 99")


def test_a_time_that_the_server_tells_counts_for_no_failure(core: ReflectorCore) -> None:
    """And is never shorter than our own shortest wait."""
    listed(core)
    now = 0.0
    for _ in range(10):
        core.on_watch_ended(Failure(Kind.BUSY, "429", 0.1), now)
        waits = wait_of(core, now)
        assert 0.8 <= waits <= 1
        now += waits
    core.on_watch_ended(DOWN, now)
    assert wait_of(core, now) <= 0.8
