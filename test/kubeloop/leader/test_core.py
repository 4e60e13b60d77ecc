"""The elector's decisions, one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from kubeloop.leader import Phase
from kubeloop.leader.actions import Create, Failed, Over, Read, Refused, Seen, Sleep, Stop, Tick, Update

Scripted = Callable[..., Any]

FOREIGN = {
    "holderIdentity": "b",
    "leaseDurationSeconds": 15,
    "acquireTime": "2020-01-01T00:00:00.000000Z",
    "renewTime": "2020-01-01T00:00:00.000000Z",
    "leaseTransitions": 7,
}


def test_a_lease_that_a_dead_holder_left_is_waited_out_from_when_it_was_first_seen(
    script: Scripted, server: Any
) -> None:
    """go-anchors 6.11: renewTime six years ago says nothing, its clock may be wrong."""
    a = script()
    server.write({"spec": FOREIGN})
    a.wait(14.9)
    assert server.holder() == "b"
    a.wait(0.1)
    assert server.holder() == "a"


def test_a_renew_time_in_the_far_future_protects_nobody(script: Scripted, server: Any) -> None:
    a = script()
    server.write({"spec": {**FOREIGN, "renewTime": "2099-01-01T00:00:00.000000Z"}})
    a.wait(15)
    assert server.holder() == "a"


@pytest.mark.parametrize("seconds", [1, 3, 40])
def test_expiry_follows_the_duration_in_the_record_and_not_our_own(
    script: Scripted, server: Any, seconds: int
) -> None:
    """go-anchors 6.11."""
    a = script()
    server.write({"spec": {**FOREIGN, "leaseDurationSeconds": seconds}})
    a.wait(seconds - 0.1)
    assert server.holder() == "b"
    a.wait(0.1)
    assert server.holder() == "a"


def test_a_holder_that_names_no_duration_gets_ours(script: Scripted, server: Any) -> None:
    a = script()
    server.write({"spec": {"holderIdentity": "b"}})
    a.wait(14.9)
    assert server.holder() == "b"
    a.wait(0.1)
    assert server.holder() == "a"


def test_every_change_of_the_record_starts_the_wait_anew(script: Scripted, server: Any) -> None:
    a = script()
    server.write({"spec": FOREIGN})
    a.wait(10)
    server.edit(renewTime="1999-01-01T00:00:00.000000Z")  # its clock was set back; still it lives
    a.wait(14.9)
    assert server.holder() == "b"


def test_an_edited_label_is_no_sign_of_life(script: Scripted, server: Any) -> None:
    a = script()
    server.write({"spec": FOREIGN})
    a.wait(14)
    server.write({**server.lease, "metadata": {**server.lease["metadata"], "labels": {"x": "y"}}})
    a.wait(1)
    assert server.holder() == "a"
    assert server.lease["metadata"]["labels"] == {"x": "y"}


def test_a_standby_looks_when_the_lease_expires_and_not_a_retry_period_later(
    script: Scripted, server: Any
) -> None:
    """Failover after a kill within lease duration + retry period."""
    a = script()
    server.write({"spec": FOREIGN})
    ends = a.time + 15
    while a.time < ends:
        action = a.settle()
        assert isinstance(action, Sleep)
        assert action.until <= min(a.time + 2, ends)
        a.pass_time(action.until - a.time)
    a.settle()
    assert a.core.phase is Phase.LEADING


def test_standbys_spread_their_looks(script: Scripted, server: Any) -> None:
    server.write({"spec": FOREIGN})
    a = script()
    waits = set()
    for _ in range(5):
        action = a.settle()
        waits.add(action.until - a.time)
        a.pass_time(action.until - a.time)
    assert len(waits) == 5
    assert all(1.5 <= wait <= 2 for wait in waits)


def test_taking_over_counts_a_transition_and_renewing_counts_none(script: Scripted, server: Any) -> None:
    """go-anchors 6.12."""
    a = script()
    server.write({"spec": FOREIGN})
    a.wait(15)
    first = server.spec
    assert first["leaseTransitions"] == 8
    assert first["acquireTime"] == first["renewTime"]
    a.wait(2)
    assert server.spec["renewTime"] > first["renewTime"]
    assert server.spec == {**first, "renewTime": server.spec["renewTime"]}


def test_a_renewal_is_one_request_from_the_remembered_lease(script: Scripted, server: Any) -> None:
    a = script()
    a.lead()
    a.wait(7)
    assert server.requests == ["PUT"] * 3
    assert a.core.slow_paths == 0


def test_a_renewal_that_meets_a_changed_lease_looks_at_once_and_goes_on_if_it_is_ours(
    script: Scripted, server: Any
) -> None:
    a = script()
    a.lead()
    server.write({**server.lease, "metadata": {**server.lease["metadata"], "labels": {"x": "y"}}})
    a.wait(2)
    assert server.requests == ["PUT", "GET", "PUT"]
    assert a.core.slow_paths == 1
    assert a.core.phase is Phase.LEADING
    assert server.lease["metadata"]["labels"] == {"x": "y"}


def test_other_peoples_fields_of_the_lease_stay(script: Scripted, server: Any) -> None:
    a = script()
    extra = {"strategy": "OldestEmulationVersion", "preferredHolder": "", "unheardOf": {"x": 1}}
    server.write({"metadata": {"annotations": {"k": "v"}}, "spec": {**FOREIGN, **extra}})
    a.wait(18)
    a.settle(Stop())
    assert server.holder() == ""
    assert {key: server.spec[key] for key in extra} == extra
    assert server.lease["metadata"]["annotations"] == {"k": "v"}


def test_leading_counts_from_before_the_request_was_sent(script: Scripted, server: Any) -> None:
    """Not from its answer, as client-go does it."""
    a = script()
    server.write({"spec": {}})
    claim = a.step(a.lock.perform(a.step()))
    sent = a.time
    assert isinstance(claim, Update)
    a.pass_time(4)
    a.step(a.lock.perform(claim))
    assert a.core.phase is Phase.LEADING
    assert a.core.until == sent + 10


def test_an_answer_after_the_deadline_does_not_begin_a_term(script: Scripted, server: Any) -> None:
    a = script()
    server.write({"spec": {}})
    claim = a.step(a.lock.perform(a.step()))
    a.pass_time(10)
    look = a.step(a.lock.perform(claim))
    assert a.core.phase is Phase.STANDBY
    # But the Lease is ours, which the next look shows: no need to wait it out.
    a.settle(a.lock.perform(look))
    assert a.core.phase is Phase.LEADING
    assert server.spec["leaseTransitions"] == 0


def test_an_answer_after_the_deadline_does_not_prolong_a_term(script: Scripted) -> None:
    a = script()
    a.lead()
    a.pass_time(2)
    renewal = a.step()
    a.pass_time(8)
    assert a.step(a.lock.perform(renewal)) == Over()
    assert a.core.phase is Phase.LOST
    assert a.core.why == "not renewed in time: the answer came too late"


def test_a_leader_that_gets_no_answers_loses_exactly_at_the_deadline(script: Scripted) -> None:
    a = script()
    a.lead()
    until = a.core.until
    action = a.step()
    while a.time < until:
        if isinstance(action, Sleep):
            assert action.until <= until
            a.pass_time(action.until - a.time)
            action = a.step()
        else:
            assert action.timeout <= min(5, until - a.time)
            a.pass_time(action.timeout)
            action = a.step(Failed("timed out"))
    assert a.time == until
    assert action == Over()
    assert a.core.why == "not renewed in time: timed out"


def test_a_failed_renewal_is_tried_again_a_retry_period_later(script: Scripted, server: Any) -> None:
    a = script()
    a.lead()
    a.pass_time(2)
    assert isinstance(a.step(), Update)
    assert a.step(Failed("connection refused")) == Sleep(a.time + 2)
    a.pass_time(2)
    a.settle()
    assert a.core.until == a.time + 10
    assert server.requests == ["PUT"]


def test_a_renewal_whose_answer_was_lost_is_recognised(script: Scripted, server: Any) -> None:
    a = script()
    a.lead()
    a.pass_time(2)
    a.lock.perform(a.step())
    a.step(Failed("timed out"))
    a.pass_time(2)
    a.settle()
    assert server.requests == ["PUT", "PUT", "GET", "PUT"]
    assert a.core.until == a.time + 10
    assert server.spec["leaseTransitions"] == 4


def test_a_claim_whose_answer_was_lost_is_recognised(script: Scripted, server: Any) -> None:
    a = script()
    server.write({"spec": {}})
    a.lock.perform(a.step(a.lock.perform(a.step())))
    assert server.holder() == "a"
    a.step(Failed("timed out"))
    assert a.core.phase is Phase.STANDBY
    a.wait(2)
    assert a.core.phase is Phase.LEADING
    assert server.spec["leaseTransitions"] == 0


def test_a_lease_that_was_taken_is_lost_at_the_next_renewal(script: Scripted, server: Any) -> None:
    """bug-reports C9: holderIdentity is overwritten."""
    a = script()
    a.lead()
    server.edit(holderIdentity="thief")
    a.wait(2)
    assert a.core.phase is Phase.LOST
    assert a.core.why == "the Lease was taken by thief"
    assert server.requests == ["PUT", "GET"]
    assert server.holder() == "thief"


def test_a_leader_whose_name_somebody_cleared_steps_down(script: Scripted, server: Any) -> None:
    a = script()
    a.lead()
    server.edit(holderIdentity="")
    a.wait(2)
    assert a.core.why == "the Lease was cleared by somebody"
    assert server.holder() == ""


def test_who_lost_does_nothing_ever_again(script: Scripted, server: Any) -> None:
    a = script()
    a.lead()
    server.edit(holderIdentity="thief")
    a.wait(2)
    for event in (Tick(), Seen(None), Refused(), Failed("x"), Stop()):
        a.pass_time(100)
        assert a.step(event) == Over()
        assert a.core.phase is Phase.LOST


def test_a_record_with_our_name_that_we_did_not_write_is_not_ours(script: Scripted, server: Any) -> None:
    a = script()
    server.write({"spec": {**FOREIGN, "holderIdentity": "a"}})
    a.wait(14.9)
    assert a.core.phase is Phase.STANDBY
    a.wait(0.1)
    assert a.core.phase is Phase.LEADING
    assert server.spec["leaseTransitions"] == 7
    server.edit(renewTime="2026-01-01T00:00:00.000000Z")
    a.wait(2)
    assert a.core.phase is Phase.LOST


def test_a_forged_record_that_looks_like_a_refused_claim_of_ours_is_not_ours(
    script: Scripted, server: Any
) -> None:
    """Found by the simulation: two claims in the same microsecond, then somebody edits the winner's name."""
    a, b = script("a"), script("b")
    server.write({"spec": {}})
    claims = [s.step(s.lock.perform(s.step())) for s in (a, b)]
    for s, claim in zip((a, b), claims, strict=True):
        s.settle(s.lock.perform(claim))
    server.edit(holderIdentity="b")
    assert server.spec == claims[1].lease["spec"]
    b.wait(5)
    assert b.core.phase is Phase.STANDBY


def test_an_unanswered_claim_is_forgotten_once_it_can_not_be_carried_out_any_more(
    script: Scripted, server: Any
) -> None:
    a = script()
    server.write({"spec": {}})
    claim = a.step(a.lock.perform(a.step()))
    a.step(Failed("timed out"))
    server.write({**server.lease, "spec": FOREIGN})
    a.wait(2)
    server.write({**server.lease, "spec": claim.lease["spec"]})
    a.wait(5)
    assert a.core.phase is Phase.STANDBY


def test_a_holder_that_was_cleared_by_hand_is_waited_out(script: Scripted, server: Any) -> None:
    """Only a release proves that the holder has stopped, and a release sets the duration to 1."""
    a = script()
    server.write({"spec": {**FOREIGN, "holderIdentity": ""}})
    a.wait(14.9)
    assert server.holder() == ""
    a.wait(0.1)
    assert server.holder() == "a"


def test_a_released_lease_is_claimed_at_once(script: Scripted, server: Any) -> None:
    a = script()
    server.write({"spec": {**FOREIGN, "holderIdentity": "", "leaseDurationSeconds": 1}})
    a.settle()
    assert server.holder() == "a"
    assert server.spec["leaseTransitions"] == 8


def test_a_ring_makes_a_standby_look_now(script: Scripted, server: Any) -> None:
    a = script()
    server.write({"spec": FOREIGN})
    a.settle()
    assert isinstance(a.step(), Sleep)
    assert isinstance(a.step(Tick(early=True)), Read)


def test_a_missing_lease_is_reserved_and_waited_out(script: Scripted, server: Any) -> None:
    """Somebody may have deleted it under a leader that has not noticed yet."""
    a = script()
    a.settle()
    assert server.spec == {
        "holderIdentity": "",
        "leaseDurationSeconds": 15,
        "renewTime": server.spec["renewTime"],
    }
    a.wait(14.9)
    assert a.core.phase is Phase.STANDBY
    a.wait(0.1)
    assert a.core.phase is Phase.LEADING
    assert server.spec["leaseTransitions"] == 0


def test_a_missing_lease_is_created_and_held_at_once_if_absence_is_trusted(
    script: Scripted, server: Any
) -> None:
    """go-anchors 6.12: as client-go does; no transition on create."""
    a = script(trust_absence=True)
    a.settle()
    assert server.requests == ["GET", "POST"]
    assert a.core.phase is Phase.LEADING
    assert server.spec["leaseTransitions"] == 0


@pytest.mark.parametrize("reserved_by_a_standby", [False, True])
def test_a_leader_whose_lease_was_deleted_makes_a_new_one(
    script: Scripted, server: Any, reserved_by_a_standby: bool
) -> None:
    a = script()
    a.lead()
    server.write(None)
    if reserved_by_a_standby:
        script("b").settle()
        assert server.lease is not None
    a.wait(2)
    assert a.core.phase is Phase.LEADING
    assert server.holder() == "a"
    assert server.spec["leaseTransitions"] == 0
    assert a.core.until == a.time + 10


def test_a_create_that_somebody_was_faster_with_is_followed_by_a_look(script: Scripted, server: Any) -> None:
    a = script()
    create = a.step(a.lock.perform(a.step()))
    assert isinstance(create, Create)
    server.write({"spec": FOREIGN})
    assert isinstance(a.step(a.lock.perform(create)), Sleep)
    a.wait(2)
    assert a.core.phase is Phase.STANDBY
    assert server.holder() == "b"


def test_two_standbys_on_a_free_lease_make_one_leader(script: Scripted, server: Any) -> None:
    a, b = script("a"), script("b")
    server.write({"spec": {}})
    claims = [s.step(s.lock.perform(s.step())) for s in (a, b)]
    for s, claim in zip((a, b), claims, strict=True):
        s.settle(s.lock.perform(claim))
    assert (a.core.phase, b.core.phase) == (Phase.LEADING, Phase.STANDBY)


def test_a_release_looks_first_and_leaves_a_valid_lease(script: Scripted, server: Any) -> None:
    """go-anchors 6.12, kubernetes#91966: a duration of 0 would be refused."""
    a = script()
    a.lead()
    a.pass_time(1)
    assert a.settle(Stop()) == Over()
    assert a.core.phase is Phase.STOPPED
    assert server.requests == ["GET", "PUT"]
    assert server.spec == {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": "2026-01-01T00:00:01.000000Z",
        "renewTime": "2026-01-01T00:00:01.000000Z",
        "leaseTransitions": 4,
    }


def test_a_release_does_not_clear_a_successor(script: Scripted, server: Any) -> None:
    """client-go decides by what it remembers of the record."""
    a = script()
    a.lead()
    server.write({"spec": FOREIGN})
    assert a.settle(Stop()) == Over()
    assert server.spec == FOREIGN


def test_a_release_that_loses_a_race_looks_again(script: Scripted, server: Any) -> None:
    """kubernetes#112023: a release with an outdated resourceVersion."""
    a = script()
    a.lead()
    update = a.step(a.lock.perform(a.step(Stop())))
    server.write({**server.lease, "metadata": {**server.lease["metadata"], "labels": {"x": "y"}}})
    assert a.settle(a.lock.perform(update)) == Over()
    assert server.holder() == ""


def test_a_release_without_answers_gives_up_soon(script: Scripted) -> None:
    a = script()
    a.lead()
    action, rounds = a.step(Stop()), 0
    while action != Over():
        assert action.timeout <= 5
        action = a.step(Failed("connection refused"))
        rounds += 1
    assert rounds == 3
    action, began = script_of_a_stopped_leader(a), a.time
    while action != Over():
        a.pass_time(action.timeout)
        action = a.step(Failed("timed out"))
    assert a.time - began <= 5.1


def script_of_a_stopped_leader(like: Any) -> Any:
    like.__init__(like.server)
    like.lead()
    return like.step(Stop())


def test_a_stop_without_release_leaves_the_lease_to_expire(script: Scripted, server: Any) -> None:
    a = script()
    a.lead()
    assert a.settle(Stop(release=False)) == Over()
    assert server.holder() == "a"


def test_a_standby_that_stops_makes_no_request(script: Scripted, server: Any) -> None:
    a = script()
    server.write({"spec": FOREIGN})
    a.settle()
    server.requests.clear()
    assert a.settle(Stop()) == Over()
    assert server.requests == []


def test_a_standby_that_may_hold_the_lease_without_knowing_releases_it(script: Scripted, server: Any) -> None:
    a = script()
    server.write({"spec": {}})
    a.lock.perform(a.step(a.lock.perform(a.step())))
    a.step(Failed("timed out"))
    a.settle(Stop())
    assert server.holder() == ""


def test_the_record_changes_with_every_renewal_though_the_wall_clock_stands(
    script: Scripted, server: Any
) -> None:
    """Or standbys would take a living leader for dead."""
    a = script()
    a.lead()
    seen = set()
    for _ in range(20):
        a.time += 2
        a.settle()
        seen.add(server.spec["renewTime"])
    assert len(seen) == 20
    a.wall -= timedelta(days=3)
    a.time += 2
    a.settle()
    assert server.spec["renewTime"] == "2025-12-29T00:00:00.000000Z"


def test_what_is_wrong_is_remembered_until_it_is_not(script: Scripted, server: Any) -> None:
    a = script()
    server.write({"spec": FOREIGN})
    a.step()
    a.step(Failed("get leases.coordination.k8s.io ns/leader: 403 Forbidden"))
    assert "403" in a.core.why
    a.wait(2)
    assert a.core.why == ""


def test_a_new_candidate_leads_nothing_and_knows_nothing(script: Scripted) -> None:
    core = script().core
    assert (core.phase, core.renewed, core.until) == (Phase.STANDBY, -math.inf, -math.inf)
    assert (core.sight, core.why, core.slow_paths) == (None, "", 0)


def test_the_same_seed_gives_the_same_times(script: Scripted, server: Any) -> None:
    """What the simulation relies on."""
    server.write({"spec": FOREIGN})
    assert script("a").settle() == script("b").settle()


def test_a_refused_claim_is_explained_and_a_later_success_forgotten_about(
    script: Scripted, server: Any
) -> None:
    a = script()
    a.lead()
    assert a.core.why == ""
    server.write({**server.lease, "metadata": {**server.lease["metadata"], "labels": {"x": "y"}}})
    a.pass_time(2)
    look = a.step(a.lock.perform(a.step()))
    assert a.core.why == "the Lease was changed by somebody else"
    a.settle(a.lock.perform(look))
    assert a.core.why == ""
    a.pass_time(2)
    a.step()
    a.step(Failed("timed out"))
    assert a.core.why == "timed out"
    a.pass_time(2)
    a.settle()
    assert a.core.why == ""


def test_every_time_that_a_leader_has_to_look_is_counted(script: Scripted, server: Any) -> None:
    a = script()
    a.lead()
    for number in (1, 2, 3):
        server.write({**server.lease, "metadata": {**server.lease["metadata"], "labels": {"x": str(number)}}})
        a.wait(2)
        assert a.core.slow_paths == number


def test_a_claim_that_is_carried_out_late_is_recognised(script: Scripted, server: Any) -> None:
    """As long as the Lease is the one that it replaces, it may still arrive."""
    a = script()
    server.write({"spec": {}})
    late = a.step(a.lock.perform(a.step()))
    a.step(Failed("timed out"))
    a.pass_time(2)
    second = a.step(a.lock.perform(a.step()))
    assert isinstance(second, Update)
    a.lock.perform(late)
    a.settle(a.lock.perform(second))
    assert a.core.phase is Phase.STANDBY
    a.wait(2)
    assert a.core.phase is Phase.LEADING
    assert server.spec["leaseTransitions"] == 0


@pytest.mark.parametrize("trust", [False, True])
def test_a_lease_is_created_under_its_own_name(script: Scripted, trust: bool) -> None:
    a = script(trust_absence=trust)
    create = a.step(Seen(None))
    assert isinstance(create, Create)
    assert create.lease["metadata"] == {"namespace": "ns", "name": "leader"}
    assert create.timeout == 5


def test_a_leader_does_not_sleep_over_its_deadline(script: Scripted) -> None:
    a = script(retry_period=3.0)
    a.lead()
    until = a.core.until
    for _ in range(3):
        a.pass_time(3)
        a.step()
        slept = a.step(Failed("timed out"))
    assert a.time == until - 1
    assert slept == Sleep(until)


def test_a_release_has_no_more_time_than_one_request_would_have(script: Scripted, server: Any) -> None:
    a = script()
    a.lead()
    look = a.step(Stop())
    assert look.timeout == 5
    a.pass_time(4.25)
    look = a.step(Failed("timed out"))
    assert look == Read(0.75)
    a.pass_time(0.25)
    update = a.step(a.lock.perform(look))
    assert isinstance(update, Update)
    assert update.timeout == 0.5
    a.pass_time(10)
    update = a.step(Seen(server.lease))
    assert isinstance(update, Update)
    assert update.timeout == 0.1  # the Lease is ours and known to be: one last attempt


def test_a_release_that_is_not_needed_any_more_is_over(script: Scripted, server: Any) -> None:
    a = script()
    a.lead()
    look = a.step(Stop())
    server.write({"spec": FOREIGN})
    assert a.step(a.lock.perform(look)) == Over()
    assert a.core.phase is Phase.STOPPED
    assert a.step() == Over()


def test_a_look_that_failed_is_followed_by_another_look(script: Scripted, server: Any) -> None:
    """What a leader remembered of the Lease is not taken up again once it was found to be outdated."""
    a = script()
    a.lead()
    server.write({**server.lease, "metadata": {**server.lease["metadata"], "labels": {"x": "y"}}})
    a.pass_time(2)
    assert isinstance(a.step(a.lock.perform(a.step())), Read)
    assert a.step(Failed("timed out")) == Sleep(a.time + 2)
    a.pass_time(2)
    assert isinstance(a.step(), Read)
