"""The rules of own writes, watch events and lists, one by one, and then all at once against a model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kubeloop.cache.codec import Candidate, Entry, Undecodable
from kubeloop.cache.ledger import Ledger, Notice


def thing(key: str, version: int, uid: str = "u1", owner: str | None = None) -> Candidate[Any]:
    return Candidate(key, Entry(b"", uid, version, 1, owner), f"{key}@{version}")


def bad(key: str, version: int, uid: str = "u1") -> Undecodable:
    return Undecodable(key, uid, version, "bad", {})


def told(notices: list[Notice]) -> list[tuple[str, str, int]]:
    """(what, key, version) of each notice."""
    result = []
    for notice in notices:
        what = "added" if notice.old is None else "deleted" if notice.new is None else "modified"
        entry = notice.new or notice.old
        assert entry is not None
        result.append((what, notice.key, entry.version))
    return result


@pytest.fixture
def ledger() -> Ledger:
    ledger = Ledger()
    ledger.open_scopes([None])
    ledger.replace(None, {"n/a": thing("n/a", 10)}, {}, 10, 0)
    return ledger


def version_of(ledger: Ledger, key: str = "n/a") -> int | None:
    entry = ledger.entries.get(key)
    return entry.version if entry else None


def test_an_own_write_is_there_at_once_and_told_when_the_watch_confirms_it(ledger: Ledger) -> None:
    """D3"""
    assert ledger.write_through(thing("n/a", 12))
    assert version_of(ledger) == 12
    (notice,) = ledger.change(None, thing("n/a", 12))
    assert told([notice]) == [("modified", "n/a", 12)]
    assert notice.own
    assert notice.old is not None
    assert notice.old.version == 10
    assert ledger.change(None, thing("n/a", 12)) == []


def test_an_event_older_than_an_own_write_does_not_undo_it(ledger: Ledger) -> None:
    """D3"""
    ledger.write_through(thing("n/a", 15))
    assert ledger.change(None, thing("n/a", 12)) == []
    assert version_of(ledger) == 15


def test_an_own_write_that_the_watch_has_overtaken_is_ignored(ledger: Ledger) -> None:
    """No resurrection: the watch may have shown the object's deletion since."""
    ledger.remove(None, "n/a", "u1", 20, None)
    assert not ledger.write_through(thing("n/a", 15))
    assert version_of(ledger) is None


def test_the_answer_of_a_write_that_arrives_after_a_bookmark_is_ignored(ledger: Ledger) -> None:
    ledger.observe(None, 30)
    assert not ledger.write_through(thing("n/a", 15))
    assert version_of(ledger) == 10


def test_what_we_deleted_does_not_come_back_by_late_events(ledger: Ledger) -> None:
    """A MODIFIED event that the server sent before our delete arrives after its answer."""
    assert ledger.forget("n/a", "u1")
    assert ledger.change(None, thing("n/a", 11)) == []
    assert version_of(ledger) is None
    (notice,) = ledger.remove(None, "n/a", "u1", 12, None)
    assert told([notice]) == [("deleted", "n/a", 10)]
    assert notice.own


def test_deleting_and_creating_anew_is_told_as_two_events(ledger: Ledger) -> None:
    ledger.forget("n/a", "u1")
    ledger.write_through(thing("n/a", 20, "u2"))
    assert ledger.change(None, thing("n/a", 11)) == []
    assert told(ledger.remove(None, "n/a", "u1", 12, None)) == [("deleted", "n/a", 10)]
    assert version_of(ledger) == 20
    assert told(ledger.change(None, thing("n/a", 20, "u2"))) == [("added", "n/a", 20)]


def test_none_of_several_incarnations_that_we_deleted_comes_back(ledger: Ledger) -> None:
    ledger.forget("n/a", "u1")
    ledger.write_through(thing("n/a", 20, "u2"))
    ledger.forget("n/a", "u2")
    assert ledger.change(None, thing("n/a", 11, "u1")) == []
    assert told(ledger.remove(None, "n/a", "u1", 12, None)) == [("deleted", "n/a", 10)]
    assert ledger.change(None, thing("n/a", 20, "u2")) == []
    assert ledger.remove(None, "n/a", "u2", 21, None) == []
    assert ledger.entries == {}
    assert told(ledger.change(None, thing("n/a", 30, "u3"))) == [("added", "n/a", 30)]


def test_another_uid_under_the_same_name_is_a_deletion_and_an_addition(ledger: Ledger) -> None:
    """go-anchors 6.5"""
    notices = ledger.change(None, thing("n/a", 20, "u2"))
    assert told(notices) == [("deleted", "n/a", 10), ("added", "n/a", 20)]


def test_an_unchanged_version_notifies_nobody(ledger: Ledger) -> None:
    assert ledger.change(None, thing("n/a", 10)) == []
    assert ledger.replace(None, {"n/a": thing("n/a", 10)}, {}, 50, 0) == []


def test_a_list_yields_deletions_first_then_changes(ledger: Ledger) -> None:
    ledger.change(None, thing("n/b", 11, "u2"))
    notices = ledger.replace(None, {"n/b": thing("n/b", 13, "u2"), "n/c": thing("n/c", 14, "u3")}, {}, 20, 0)
    assert told(notices) == [("deleted", "n/a", 10), ("modified", "n/b", 13), ("added", "n/c", 14)]


def test_a_list_asked_for_before_an_own_write_was_answered_does_not_drop_it(ledger: Ledger) -> None:
    """D3"""
    began = ledger.begin_list()
    ledger.write_through(thing("n/new", 31, "u9"))
    ledger.write_through(thing("n/a", 32))
    assert ledger.replace(None, {"n/a": thing("n/a", 10)}, {}, 30, began) == []
    assert (version_of(ledger, "n/new"), version_of(ledger)) == (31, 32)
    assert told(ledger.change(None, thing("n/new", 31, "u9"))) == [("added", "n/new", 31)]


def test_a_list_asked_for_before_an_own_delete_does_not_bring_it_back(ledger: Ledger) -> None:
    began = ledger.begin_list()
    ledger.forget("n/a", "u1")
    assert ledger.replace(None, {"n/a": thing("n/a", 10)}, {}, 30, began) == []
    assert version_of(ledger) is None
    assert told(ledger.remove(None, "n/a", "u1", 31, None)) == [("deleted", "n/a", 10)]


def test_a_list_asked_for_after_an_own_write_is_believed_even_with_lower_versions(ledger: Ledger) -> None:
    """The server was restored from a backup."""
    ledger.write_through(thing("n/a", 500))
    ledger.write_through(thing("n/lost", 501, "u5"))
    notices = ledger.replace(None, {"n/a": thing("n/a", 7)}, {}, 8, ledger.begin_list())
    assert told(notices) == [("modified", "n/a", 7)]
    assert set(ledger.entries) == {"n/a"}
    assert ledger.write_through(thing("n/a", 9))


def test_an_own_write_that_the_watch_passes_over_is_dropped(ledger: Ledger) -> None:
    """It does not match the selector."""
    ledger.write_through(thing("n/other", 15, "u7"))
    ledger.write_through(thing("n/a", 16))
    assert ledger.change(None, thing("n/b", 17, "u8"))[0].key == "n/a"
    assert set(ledger.entries) == {"n/b"}


def test_an_unreadable_change_takes_the_object_out_and_a_readable_one_brings_it_back(ledger: Ledger) -> None:
    assert ledger.spoil(None, bad("n/a", 12)) == []
    assert version_of(ledger) is None
    assert told(ledger.change(None, thing("n/a", 13))) == [("modified", "n/a", 13)]


def test_an_unreadable_object_is_told_deleted_when_it_goes(ledger: Ledger) -> None:
    ledger.spoil(None, bad("n/a", 12))
    assert told(ledger.remove(None, "n/a", "u1", 13, None)) == [("deleted", "n/a", 10)]
    assert ledger.known() == {}


def test_an_unreadable_object_in_a_list_is_not_taken_for_gone(ledger: Ledger) -> None:
    assert ledger.replace(None, {}, {"n/a": bad("n/a", 12)}, 20, 0) == []
    assert told(ledger.replace(None, {}, {}, 21, 0)) == [("deleted", "n/a", 10)]


def test_namespaces_are_replaced_one_by_one() -> None:
    ledger = Ledger()
    ledger.open_scopes(["m", "n"])
    ledger.replace("m", {"m/a": thing("m/a", 5)}, {}, 5, 0)
    ledger.replace("n", {"n/a": thing("n/a", 6, "u2")}, {}, 6, 0)
    assert told(ledger.replace("m", {}, {}, 7, 0)) == [("deleted", "m/a", 5)]
    assert set(ledger.entries) == {"n/a"}
    assert not ledger.write_through(thing("elsewhere/a", 99))
    assert ledger.write_through(thing("m/b", 8))
    assert ledger.observe("n", 9) == []
    assert version_of(ledger, "m/b") == 8  # the watch of n says nothing about m


def test_the_end_of_each_incarnation_that_we_deleted_is_told_as_our_own_doing(ledger: Ledger) -> None:
    ledger.forget("n/a", "u1")
    ledger.write_through(thing("n/a", 20, "u2"))
    ledger.change(None, thing("n/a", 20, "u2"))
    ledger.forget("n/a", "u2")
    ledger.write_through(thing("n/a", 30, "u3"))
    ledger.forget("n/a", "u3")
    (notice,) = ledger.remove(None, "n/a", "u2", 21, None)
    assert notice.own
    assert ledger.known() == {}
    assert ledger.remove(None, "n/a", "u3", 31, None) == []
    assert ledger._ahead == {}  # nothing is kept once all is said


def test_what_we_deleted_first_is_our_own_doing_also_after_we_deleted_its_successor(ledger: Ledger) -> None:
    ledger.forget("n/a", "u1")
    ledger.write_through(thing("n/a", 20, "u2"))
    ledger.forget("n/a", "u2")
    (notice,) = ledger.remove(None, "n/a", "u1", 12, None)
    assert (notice.own, told([notice])) == (True, [("deleted", "n/a", 10)])


def test_what_others_deleted_is_not_our_own_doing(ledger: Ledger) -> None:
    ledger.write_through(thing("n/a", 12))
    (notice,) = ledger.remove(None, "n/a", "u1", 13, None)
    assert not notice.own


def test_deleting_what_is_not_the_object_that_we_know_is_no_news(ledger: Ledger) -> None:
    assert not ledger.forget("n/a", "u0")
    assert not ledger.forget("n/b", "u1")
    assert version_of(ledger) == 10


def test_an_own_delete_counts_whatever_we_wrote_before_the_list_was_asked_for(ledger: Ledger) -> None:
    for version in (11, 12):
        ledger.write_through(thing("n/a", version))
    began = ledger.begin_list()
    ledger.forget("n/a", "u1")
    ledger.replace(None, {"n/a": thing("n/a", 12)}, {}, 13, began)
    assert version_of(ledger) is None


def test_an_own_write_counts_whatever_we_wrote_before_the_list_was_asked_for(ledger: Ledger) -> None:
    for version in (11, 12):
        ledger.write_through(thing("n/a", version))
    began = ledger.begin_list()
    ledger.write_through(thing("n/a", 14))
    ledger.replace(None, {"n/a": thing("n/a", 12)}, {}, 13, began)
    assert version_of(ledger) == 14


def test_a_deletion_tells_the_last_state_of_the_object_if_the_event_has_it(ledger: Ledger) -> None:
    final, other = thing("n/a", 13), thing("n/a", 20, "u2")
    assert ledger.remove(None, "n/a", "u1", 13, final) == [Notice("n/a", final.entry, None, "n/a@13")]
    ledger.change(None, other)
    assert ledger.remove(None, "n/a", "u2", 21, None) == [Notice("n/a", other.entry, None)]


def test_an_own_change_that_made_the_object_leave_the_selector_is_told_once(ledger: Ledger) -> None:
    """The DELETED event bears the version of our write, and what the object has become."""
    ledger.write_through(thing("n/a", 12))
    final = thing("n/a", 12)
    assert ledger.remove(None, "n/a", "u1", 12, final) == [Notice("n/a", final.entry, None, "n/a@12")]
    assert ledger.entries == ledger.known() == {}
    assert not ledger.write_through(thing("n/a", 12))


def test_a_late_deletion_of_an_earlier_object_leaves_what_handlers_know(ledger: Ledger) -> None:
    ledger.change(None, thing("n/a", 20, "u2"))
    ledger.write_through(thing("n/a", 22, "u2"))
    assert ledger.remove(None, "n/a", "u1", 21, None) == []
    (notice,) = ledger.change(None, thing("n/a", 22, "u2"))
    assert notice.old is not None
    assert notice.old.version == 20


def test_the_answer_to_a_write_before_our_delete_is_too_late(ledger: Ledger) -> None:
    ledger.forget("n/a", "u1")
    assert not ledger.write_through(thing("n/a", 12))
    assert version_of(ledger) is None


def test_an_own_write_of_what_the_watch_should_have_shown_already_is_ignored(ledger: Ledger) -> None:
    """The watch has come to this very version with another object, or none: this one is out of its scope."""
    assert not ledger.write_through(thing("n/b", 10, "u2"))


def test_a_notice_says_what_there_is_now_and_whose_doing_it_was(ledger: Ledger) -> None:
    old, created, others = ledger.entries["n/a"], thing("n/b", 11, "ub"), thing("n/c", 12, "uc")
    ledger.write_through(created)
    assert ledger.change(None, created) == [Notice("n/b", None, created.entry, "n/b@11", own=True)]
    assert ledger.change(None, others) == [Notice("n/c", None, others.entry, "n/c@12", own=False)]
    anew = thing("n/a", 13, "u2")
    assert ledger.change(None, anew) == [
        Notice("n/a", old, None),
        Notice("n/a", None, anew.entry, "n/a@13", own=False),
    ]
    changed = thing("n/a", 14, "u2")
    assert ledger.change(None, changed) == [Notice("n/a", anew.entry, changed.entry, "n/a@14", own=False)]


def test_what_others_made_of_our_write_is_not_our_own_doing(ledger: Ledger) -> None:
    ledger.write_through(thing("n/a", 12))
    (notice,) = ledger.change(None, thing("n/a", 13))
    assert told([notice]) == [("modified", "n/a", 13)]
    assert not notice.own


def test_what_we_made_anew_is_told_as_our_own_doing(ledger: Ledger) -> None:
    """Also where the end of the earlier one was never told."""
    ledger.write_through(thing("n/a", 12, "u2"))
    gone, made = ledger.change(None, thing("n/a", 12, "u2"))
    assert told([gone, made]) == [("deleted", "n/a", 10), ("added", "n/a", 12)]
    assert made.own
    assert made.object == "n/a@12"


def test_a_list_tells_the_end_of_one_object_although_an_own_write_to_another_outlives_it(
    ledger: Ledger,
) -> None:
    ledger.change(None, thing("n/b", 11, "u2"))
    began = ledger.begin_list()
    ledger.write_through(thing("n/a", 40))
    assert told(ledger.replace(None, {}, {}, 30, began)) == [("deleted", "n/a", 10), ("deleted", "n/b", 11)]
    assert set(ledger.entries) == {"n/a"}


def test_a_list_tells_the_end_of_what_was_made_anew_before_any_change(ledger: Ledger) -> None:
    ledger.change(None, thing("n/b", 11, "u2"))
    found = {"n/b": thing("n/b", 12, "u2"), "n/a": thing("n/a", 13, "u3")}
    notices = ledger.replace(None, found, {}, 20, 0)
    assert told(notices) == [("deleted", "n/a", 10), ("modified", "n/b", 12), ("added", "n/a", 13)]


def test_an_outdated_list_neither_tells_nor_forgets_an_own_delete(ledger: Ledger) -> None:
    """It is older than the object was: that it does not show it means nothing."""
    began = ledger.begin_list()
    ledger.forget("n/a", "u1")
    assert ledger.replace(None, {}, {}, 9, began) == []
    assert ledger.change(None, thing("n/a", 10)) == []
    (notice,) = ledger.remove(None, "n/a", "u1", 12, None)
    assert notice.own


def test_an_unreadable_object_in_a_list_leaves_the_store(ledger: Ledger) -> None:
    assert ledger.replace(None, {}, {"n/a": bad("n/a", 12)}, 20, 0) == []
    assert ledger.entries == {}
    assert set(ledger.known()) == {"n/a"}


def test_the_same_answer_twice_is_no_news_the_second_time(ledger: Ledger) -> None:
    assert not ledger.write_through(thing("n/a", 10))  # the watch has just shown it
    assert ledger.write_through(thing("n/a", 12))
    assert not ledger.write_through(thing("n/a", 12))
    assert not ledger.write_through(thing("n/a", 11))


@pytest.fixture
def scoped() -> Ledger:
    """Two namespaces, an object in each, and an own write to each that its watch has yet to show."""
    ledger = Ledger()
    ledger.open_scopes(["m", "n"])
    for scope in ("m", "n"):
        ledger.replace(scope, {f"{scope}/a": thing(f"{scope}/a", 10)}, {}, 10, 0)
        assert ledger.write_through(thing(f"{scope}/own", 15, "own"))
    return ledger


def test_each_kind_of_news_from_one_namespace_says_nothing_about_the_others(scoped: Ledger) -> None:
    """Only what passed in the own write's namespace drops it, whichever way that was told."""
    scoped.change("m", thing("m/b", 20, "u2"))
    scoped.remove("m", "m/a", "u1", 21, None)
    scoped.spoil("m", bad("m/c", 22))
    scoped.observe("m", 23)
    assert set(scoped.entries) == {"m/b", "n/a", "n/own"}
    assert scoped.seen == {"m": 23, "n": 10}
    assert scoped.write_through(thing("n/more", 16, "more"))
    assert not scoped.write_through(thing("m/more", 16, "more"))


@pytest.mark.parametrize("way", ["an event", "a list"])
def test_the_end_of_an_object_is_told_when_one_that_cannot_be_read_has_its_name(
    ledger: Ledger, way: str
) -> None:
    """Else handlers would know it for ever: the news of the other one's end is not about it."""
    if way == "an event":
        notices = ledger.spoil(None, bad("n/a", 15, "u2"))
    else:
        notices = ledger.replace(None, {}, {"n/a": bad("n/a", 15, "u2")}, 15, ledger.begin_list())
    assert told(notices) == [("deleted", "n/a", 10)]
    assert ledger.remove(None, "n/a", "u2", 16, None) == []
    assert told(ledger.change(None, thing("n/a", 17, "u3"))) == [("added", "n/a", 17)]


def test_old_news_of_what_cannot_be_read_ends_nothing(ledger: Ledger) -> None:
    ledger.change(None, thing("n/a", 20, "u2"))
    assert ledger.spoil(None, bad("n/a", 15)) == []
    assert ledger.remove(None, "n/a", "u1", 16, None) == []
    assert version_of(ledger) == 20


def test_an_own_write_over_one_that_cannot_be_read_is_told_as_new(ledger: Ledger) -> None:
    """Ours was made after the other two had gone; the watch has come to the second."""
    ledger.write_through(thing("n/a", 18, "u3"))
    assert told(ledger.spoil(None, bad("n/a", 15, "u2"))) == [("deleted", "n/a", 10)]
    assert ledger.remove(None, "n/a", "u2", 16, None) == []
    assert version_of(ledger) == 18
    assert told(ledger.change(None, thing("n/a", 18, "u3"))) == [("added", "n/a", 18)]


@pytest.mark.parametrize("news", ["change", "remove", "spoil", "observe"])
def test_whatever_passes_an_own_write_drops_it(scoped: Ledger, news: str) -> None:
    match news:
        case "change":
            notices = scoped.change("n", thing("n/b", 15, "u2"))[:-1]
        case "remove":
            notices = scoped.remove("n", "n/gone", "u0", 15, None)
        case "spoil":
            notices = scoped.spoil("n", bad("n/b", 15))
        case _:
            notices = scoped.observe("n", 15)
    assert notices == []  # nobody had been told of it
    assert "n/own" not in scoped.entries
    assert "m/own" in scoped.entries


def test_an_own_change_that_the_watch_passes_over_is_told_as_a_deletion(scoped: Ledger) -> None:
    """It made the object leave the selector."""
    scoped.write_through(thing("n/a", 16))
    assert told(scoped.observe("n", 15)) == []
    assert told(scoped.observe("n", 16)) == [("deleted", "n/a", 10)]
    assert scoped.observe("n", 17) == []


def test_own_writes_are_dropped_in_their_order_as_the_watch_passes_them(ledger: Ledger) -> None:
    for name, version in [("x", 20), ("y", 30), ("z", 25)]:
        assert ledger.write_through(thing(f"n/{name}", version, name))
    left = []
    for version in (19, 20, 24, 25, 29, 30):
        ledger.observe(None, version)
        left.append("".join(sorted(key[-1] for key in ledger.entries)))
    assert left == ["axyz", "ayz", "ayz", "ay", "ay", "a"]


def test_an_own_delete_before_it_does_not_keep_an_own_write_that_was_passed(ledger: Ledger) -> None:
    ledger.forget("n/a", "u1")
    ledger.write_through(thing("n/own", 15, "own"))
    ledger.observe(None, 16)
    assert ledger.entries == {}


def test_late_news_do_not_make_a_namespace_forget_how_far_it_was_shown(scoped: Ledger) -> None:
    scoped.observe("n", 30)
    scoped.observe("n", 20)
    assert not scoped.write_through(thing("n/late", 25, "late"))


def test_an_unreadable_event_about_an_own_write_is_its_confirmation(ledger: Ledger) -> None:
    """It is there, but cannot be read: neither gone nor passed over."""
    ledger.write_through(thing("n/a", 12))
    assert ledger.spoil(None, bad("n/a", 12)) == []
    assert version_of(ledger) is None
    assert told(ledger.remove(None, "n/a", "u1", 13, None)) == [("deleted", "n/a", 10)]


def test_an_unreadable_event_older_than_an_own_write_does_not_undo_it(ledger: Ledger) -> None:
    ledger.write_through(thing("n/a", 15))
    assert ledger.spoil(None, bad("n/a", 12)) == []
    assert version_of(ledger) == 15


def test_an_unreadable_object_in_the_place_of_another_one_is_the_end_of_that(ledger: Ledger) -> None:
    known = ledger.entries["n/a"]
    assert ledger.spoil(None, bad("n/a", 12, "u2")) == [Notice("n/a", known, None)]
    assert ledger.known() == ledger.entries == {}
    assert ledger.spoil(None, bad("n/a", 13, "u2")) == []
    made = thing("n/a", 14, "u2")
    assert ledger.change(None, made) == [Notice("n/a", None, made.entry, "n/a@14")]
    assert ledger.replace(None, {}, {"n/a": bad("n/a", 20, "u3")}, 20, 0) == [Notice("n/a", made.entry, None)]
    assert ledger.known() == {}


def test_a_list_with_unreadable_objects_tells_the_ends_of_all_that_went(ledger: Ledger) -> None:
    for name in "bcd":
        ledger.change(None, thing(f"n/{name}", 11, f"u{name}"))
    spoiled = {f"n/{name}": bad(f"n/{name}", 15, f"other {name}") for name in "bc"}
    spoiled["n/d"] = bad("n/d", 15, "ud")
    notices = ledger.replace(None, {}, spoiled, 20, 0)
    assert told(notices) == [("deleted", "n/a", 10), ("deleted", "n/b", 11), ("deleted", "n/c", 11)]
    assert set(ledger.known()) == {"n/d"}


def test_late_news_of_an_unreadable_predecessor_end_nothing(ledger: Ledger) -> None:
    ledger.change(None, thing("n/a", 20, "u2"))
    for version in (12, 20):
        assert ledger.spoil(None, bad("n/a", version, "u1")) == []
    assert set(ledger.known()) == {"n/a"}


def test_an_unreadable_event_ends_nothing_of_which_a_newer_own_write_shows_that_it_lives(
    ledger: Ledger,
) -> None:
    ledger.write_through(thing("n/a", 15))
    assert ledger.spoil(None, bad("n/a", 12, "u2")) == []
    assert version_of(ledger) == 15
    assert set(ledger.known()) == {"n/a"}


def test_an_unreadable_event_about_what_nobody_knows_is_no_news(ledger: Ledger) -> None:
    assert ledger.spoil(None, bad("n/b", 12)) == []
    assert ledger.remove(None, "n/b", "u1", 13, None) == []
    assert set(ledger.entries) == {"n/a"}


@pytest.mark.parametrize(("listed", "tells"), [(9, False), (10, True), (30, True)])
def test_a_list_tells_the_end_of_what_we_have_since_made_anew(
    ledger: Ledger, listed: int, tells: bool
) -> None:
    """Unless the list is older than what handlers know."""
    ledger.change(None, thing("n/z", 10, "u3"))
    began = ledger.begin_list()
    ledger.forget("n/a", "u1")
    ledger.write_through(thing("n/a", 40, "u2"))
    notices = ledger.replace(None, {"n/z": thing("n/z", 10, "u3")}, {}, listed, began)
    assert told(notices) == ([("deleted", "n/a", 10)] if tells else [])
    assert version_of(ledger) == 40
    confirmed = told(ledger.change(None, thing("n/a", 40, "u2")))
    assert confirmed == ([] if tells else [("deleted", "n/a", 10)]) + [("added", "n/a", 40)]


def test_a_list_tells_of_everything_that_went_and_came_around_own_writes(ledger: Ledger) -> None:
    """Several of each kind at once: one that outlives the list must not hide the others."""
    for name in "bcd":
        ledger.change(None, thing(f"n/{name}", 11, f"u{name}"))
    began = ledger.begin_list()
    for name in "ac":
        ledger.forget(f"n/{name}", "u1" if name == "a" else "uc")
        ledger.write_through(thing(f"n/{name}", 40, f"new{name}"))
    ledger.write_through(thing("n/e", 41, "e"))
    found = {
        "n/e": thing("n/e", 20, "other"),
        "n/a": thing("n/a", 21, "between"),
        "n/d": thing("n/d", 22, "ud"),
        "n/f": thing("n/f", 23, "uf"),
    }
    notices = ledger.replace(None, found, {}, 30, began)
    assert sorted(told(notices[:3])) == [
        ("deleted", "n/a", 10),
        ("deleted", "n/b", 11),
        ("deleted", "n/c", 11),
    ]
    assert told(notices[3:]) == [("modified", "n/d", 22), ("added", "n/f", 23)]
    assert {key: entry.version for key, entry in ledger.entries.items()} == {
        "n/a": 40,
        "n/c": 40,
        "n/d": 22,
        "n/e": 41,
        "n/f": 23,
    }


def test_the_owner_index_follows_every_change(ledger: Ledger) -> None:
    ledger.change(None, thing("n/a", 11, owner="o1"))
    ledger.change(None, thing("n/b", 12, "u2", owner="o1"))
    assert sorted(ledger.indexes.keys("owner", "o1")) == ["n/a", "n/b"]
    ledger.change(None, thing("n/a", 13, owner="o2"))
    ledger.remove(None, "n/b", "u2", 14, None)
    assert ledger.indexes.keys("owner", "o1") == []
    assert ledger.indexes.keys("owner", "o2") == ["n/a"]
    assert ledger.indexes.keys("namespace", "n") == ["n/a"]


KEYS = ("n/a", "n/b")


class Histories(RuleBasedStateMachine):
    """A server, a watch that lags, lists that take time, answers that come late; and a restored backup.

    Whatever happens, the store and what handlers were told end as the server is; meanwhile no read goes back
    behind an own write, and nothing that we deleted comes back.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.ledger.open_scopes([None])
        self.version = 10
        self.uids = 0
        self.server: dict[str, tuple[str, int]] = {}
        self.backups: list[tuple[int, dict[str, tuple[str, int]]]] = []
        self.history: list[tuple[str, str, str, int]] = []
        self.position = 0  # of the watch in history
        self.watching = False
        self.listing: list[Any] | None = None  # [began, snapshot, version, position]
        self.answers: list[tuple[str, str, str, int]] = []
        self.handlers: dict[str, tuple[str, int]] = {}
        self.written: dict[str, int] = {}
        self.buried: set[str] = set()

    # The server

    def _put(self, key: str) -> tuple[str, int]:
        self.version += 1
        if key in self.server:
            uid = self.server[key][0]
        else:
            self.uids += 1
            uid = f"u{self.uids}"
        self.server[key] = (uid, self.version)
        self.history.append(("put", key, uid, self.version))
        return uid, self.version

    def _delete(self, key: str) -> str:
        self.version += 1
        uid, _ = self.server.pop(key)
        self.history.append(("delete", key, uid, self.version))
        return uid

    @rule(key=st.sampled_from(KEYS))
    def others_write(self, key: str) -> None:
        self._put(key)

    @rule(key=st.sampled_from(KEYS))
    def others_delete(self, key: str) -> None:
        if key in self.server:
            self._delete(key)

    @rule(key=st.sampled_from(KEYS))
    def we_write(self, key: str) -> None:
        self.answers.append(("put", key, *self._put(key)))

    @rule(key=st.sampled_from(KEYS))
    def we_delete(self, key: str) -> None:
        if key in self.server:
            self.answers.append(("delete", key, self._delete(key), 0))

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def an_answer_arrives(self, data: st.DataObject) -> None:
        what, key, uid, version = self.answers.pop(data.draw(st.integers(0, len(self.answers) - 1)))
        if what == "put":
            self.ledger.write_through(thing(key, version, uid))
            self.written[key] = max(self.written.get(key, 0), version)
        else:
            self.ledger.forget(key, uid)
            if self.ledger._ahead.get(key) and uid in self.ledger._ahead[key].dead:
                self.buried.add(uid)

    # The reflector

    @precondition(lambda self: self.listing is None)
    @rule()
    def a_list_is_asked_for(self) -> None:
        self.watching = False
        self.listing = [self.ledger.begin_list(), None, 0, 0]

    @precondition(lambda self: self.listing is not None and self.listing[1] is None)
    @rule()
    def the_server_makes_the_list(self) -> None:
        assert self.listing is not None
        self.listing[1:] = [dict(self.server), self.version, len(self.history)]

    @precondition(lambda self: self.listing is not None and self.listing[1] is not None)
    @rule()
    def the_list_arrives(self) -> None:
        assert self.listing is not None
        began, snapshot, version, self.position = self.listing
        found = {key: thing(key, at, uid) for key, (uid, at) in snapshot.items()}
        self.listing, self.watching = None, True
        self._tell(self.ledger.replace(None, found, {}, version, began))

    @precondition(lambda self: self.watching and self.position < len(self.history))
    @rule()
    def an_event_arrives(self) -> None:
        what, key, uid, version = self.history[self.position]
        self.position += 1
        if what == "put":
            self._tell(self.ledger.change(None, thing(key, version, uid)))
        else:
            self._tell(self.ledger.remove(None, key, uid, version, None))

    @precondition(lambda self: self.watching and self.position == len(self.history))
    @rule()
    def a_bookmark_arrives(self) -> None:
        self._tell(self.ledger.observe(None, self.version))

    # A disaster

    @rule()
    def a_backup_is_made(self) -> None:
        self.backups.append((self.version, dict(self.server)))

    @precondition(lambda self: self.backups)
    @rule()
    def the_backup_is_restored(self) -> None:
        while self.answers:
            what, key, uid, version = self.answers.pop()
            if what == "put":
                self.ledger.write_through(thing(key, version, uid))
            else:
                self.ledger.forget(key, uid)
        self.version, self.server = self.backups.pop()
        self.server = dict(self.server)
        self.backups, self.history, self.position = [], [], 0
        self.watching, self.listing = False, None
        self.written, self.buried = {}, set()
        self.a_list_is_asked_for()
        self.the_server_makes_the_list()
        self.the_list_arrives()

    def _tell(self, notices: list[Notice]) -> None:
        for notice in notices:
            known = self.handlers.get(notice.key)
            if notice.old is None:
                assert known is None
            else:
                assert known is not None
                assert known[0] == notice.old.uid
            if notice.new is None:
                del self.handlers[notice.key]
            else:
                assert known is None or known[0] == notice.new.uid
                self.handlers[notice.key] = (notice.new.uid, notice.new.version)

    # What must always hold

    @invariant()
    def all_is_well(self) -> None:
        for key, version in self.written.items():  # no read goes back behind an own write
            entry = self.ledger.entries.get(key)
            if entry is not None:
                assert entry.version >= version
            else:
                assert any(
                    what == "delete" and where == key and at > version for what, where, _, at in self.history
                )
        # Nothing that we deleted comes back.
        assert not self.buried & {entry.uid for entry in self.ledger.entries.values()}
        assert set(self.ledger.indexes.keys("namespace", "n")) == set(self.ledger.entries)
        known = {key: (entry.uid, entry.version) for key, entry in self.ledger.known().items()}
        assert known == self.handlers

    def teardown(self) -> None:
        while self.answers:
            what, key, uid, version = self.answers.pop()
            if what == "put":
                self.ledger.write_through(thing(key, version, uid))
            else:
                self.ledger.forget(key, uid)
        if not self.watching:
            if self.listing is None:
                self.a_list_is_asked_for()
            if self.listing is not None and self.listing[1] is None:
                self.the_server_makes_the_list()
            self.the_list_arrives()
        while self.position < len(self.history):
            self.an_event_arrives()
        self.a_bookmark_arrives()
        stored = {key: (entry.uid, entry.version) for key, entry in self.ledger.entries.items()}
        assert stored == self.server
        assert self.handlers == self.server
        assert self.ledger._ahead == {}
        assert self.ledger._told == {}


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),  # explaining costs minutes
)
