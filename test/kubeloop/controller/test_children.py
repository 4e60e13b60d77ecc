"""The apply protocol against a server that answers (D1, D2, D3), also where the cache is behind."""

from __future__ import annotations

from typing import Any

import pytest

from kubeloop.controller import Contended, End, GoingAway, NotOurs
from kubeloop.controller.drift import APPLIED
from kubeloop.controller.pace import BURST
from kubeloop.model import Deployment

NAMESPACE = "team"

FOREIGN: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "hello", "namespace": NAMESPACE},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "app", "image": "foreign:1"}]},
        },
    },
}


def without_times(obj: dict[str, Any] | None) -> dict[str, Any]:
    assert obj is not None
    metadata = {k: v for k, v in obj["metadata"].items() if k not in ("resourceVersion", "managedFields")}
    return {**obj, "metadata": metadata}


def test_a_new_object_costs_three_writes_and_a_settled_one_none(world: Any) -> None:
    """D1."""
    world.create()
    world.see()
    mark = world.mark()
    assert world.process().end is End.DONE
    assert world.requests(mark) == [
        ("patch", "webapps"),
        ("patch", "deployments"),
        ("patch", "webapps/status"),
    ]

    mark = world.mark()
    assert world.process().end is End.DONE
    assert world.requests(mark) == []


def test_what_was_written_is_read_at_once_without_a_watch(world: Any) -> None:
    """D3."""
    world.create()
    world.see()
    world.process()

    assert world.informers[Deployment].store.get(f"{NAMESPACE}/hello") is not None


def test_a_restart_over_settled_objects_writes_nothing(world: Any) -> None:
    """D1."""
    world.settled()
    world.restart()
    world.see_all()
    mark = world.mark()
    world.process()

    assert world.requests(mark) == []


def test_a_restart_finds_the_drift_that_it_missed(world: Any) -> None:
    world.settled()
    world.sandbox.patch("deployments.apps", "hello", {"spec": {"replicas": 0}}, NAMESPACE)
    world.restart()
    world.see_all()
    world.process()

    assert world.live(Deployment)["spec"]["replicas"] == 3


def test_a_foreign_object_in_the_cache_costs_no_request(world: Any) -> None:
    """D2."""
    world.sandbox.create(FOREIGN)
    world.create()
    world.see_all()
    world.process()
    before = without_times(world.live(Deployment))
    mark = world.mark()
    outcome = world.process()

    assert outcome.end is End.BLOCKED
    assert isinstance(outcome.error, NotOurs)
    assert world.requests(mark) == []
    assert without_times(world.live(Deployment)) == before


def test_a_foreign_object_that_the_cache_does_not_show_yet_is_not_taken_over(world: Any) -> None:
    """D2: it appeared between our look and our apply."""
    world.create()
    world.see()
    foreign = without_times(world.sandbox.create(FOREIGN))
    outcome = world.process()

    assert isinstance(outcome.error, NotOurs)
    assert without_times(world.live(Deployment)) == foreign


def test_a_foreign_object_with_the_very_same_values_is_given_back(world: Any) -> None:
    """D2: no conflict, so the server answers 200 instead of 201."""
    world.settled("twin")
    twin = world.live(Deployment, "twin")
    app = world.create()
    world.see()
    labels = {k: v.replace("twin", "hello") for k, v in twin["metadata"]["labels"].items()}
    same = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "hello", "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"webapp.example.com/name": "hello"}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "app", "image": "nginx:1.27"}]},
            },
        },
    }
    foreign = without_times(world.sandbox.create(same))
    outcome = world.process()
    after = world.live(Deployment)

    assert isinstance(outcome.error, NotOurs)
    assert "ownerReferences" not in after["metadata"]
    assert APPLIED not in after["metadata"].get("annotations", {})
    assert after["spec"] == foreign["spec"]
    assert app["metadata"]["uid"] not in str(after)


@pytest.mark.parametrize("replicas", [3, 7])
def test_our_own_object_that_the_cache_does_not_show_yet_is_recognised(world: Any, replicas: int) -> None:
    """The cache lags behind an earlier process of ours; meanwhile somebody may have meddled."""
    world.settled()
    if replicas != 3:
        world.sandbox.patch("deployments.apps", "hello", {"spec": {"replicas": replicas}}, NAMESPACE)
    uid = world.live(Deployment)["metadata"]["uid"]
    world.restart()
    world.see()
    outcome = world.process()

    assert outcome.end is End.DONE
    assert world.live(Deployment)["metadata"]["uid"] == uid
    assert world.live(Deployment)["spec"]["replicas"] == 3


def test_an_object_that_is_gone_although_the_cache_still_shows_it_is_made_anew(world: Any) -> None:
    world.settled()
    uid = world.live(Deployment)["metadata"]["uid"]
    world.sandbox.patch("webapps.example.com", "hello", {"spec": {"replicas": 4}}, NAMESPACE)
    world.see()
    world.sandbox.delete("deployments.apps", "hello", NAMESPACE, propagation="Background")
    outcome = world.process()
    made = world.live(Deployment)

    assert outcome.end is End.DONE
    assert made["metadata"]["uid"] != uid
    assert made["spec"]["replicas"] == 4


def test_a_foreign_object_in_the_place_of_the_one_the_cache_shows_is_not_touched(world: Any) -> None:
    """The uid in the body makes the server refuse."""
    world.settled()
    world.sandbox.patch("webapps.example.com", "hello", {"spec": {"replicas": 4}}, NAMESPACE)
    world.see()
    world.sandbox.delete("deployments.apps", "hello", NAMESPACE, propagation="Background")
    foreign = without_times(world.sandbox.create(FOREIGN))
    outcome = world.process()

    assert isinstance(outcome.error, NotOurs)
    assert without_times(world.live(Deployment)) == foreign


def test_a_child_that_is_being_deleted_is_waited_for(world: Any) -> None:
    world.settled()
    world.sandbox.patch("deployments.apps", "hello", {"metadata": {"finalizers": ["a.example/x"]}}, NAMESPACE)
    world.sandbox.delete("deployments.apps", "hello", NAMESPACE)
    world.see_all()
    mark = world.mark()
    outcome = world.process()

    assert isinstance(outcome.error, GoingAway)
    assert not [request for request in world.requests(mark) if request[1] == "deployments"]


def test_a_child_with_another_selector_is_replaced_by_one_delete_and_only_one(world: Any) -> None:
    """prometheus-operator#4519: the owned object lingers, and is deleted again and again."""
    app = world.create()
    older = {
        **FOREIGN,
        "metadata": {
            **FOREIGN["metadata"],
            "finalizers": ["a.example/x"],
            "ownerReferences": [
                {
                    "apiVersion": "example.com/v1",
                    "kind": "WebApp",
                    "name": "hello",
                    "uid": app["metadata"]["uid"],
                    "controller": True,
                }
            ],
        },
    }
    world.sandbox.create(older)
    world.see_all()
    for _ in range(3):
        outcome = world.process()
        assert isinstance(outcome.error, GoingAway)
        world.see_all()
    deletes = [request for request in world.requests() if request == ("delete", "deployments")]
    assert len(deletes) == 1

    world.sandbox.patch("deployments.apps", "hello", {"metadata": {"finalizers": None}}, NAMESPACE)
    world.see_all()
    assert world.process().end is End.DONE
    assert world.live(Deployment)["spec"]["selector"]["matchLabels"] == {"webapp.example.com/name": "hello"}


def test_a_child_of_an_earlier_owner_of_the_name_is_waited_for(world: Any) -> None:
    """knative#7556: not adopted, not an error; the garbage collector is about to take it."""
    world.settled()
    world.sandbox.patch("webapps.example.com", "hello", {"metadata": {"finalizers": None}}, NAMESPACE)
    world.sandbox.delete("webapps.example.com", "hello", NAMESPACE)
    world.create()
    world.see_all()
    outcome = world.process()

    assert isinstance(outcome.error, GoingAway)
    assert "earlier" in str(outcome.error)


def test_a_namespace_that_is_being_deleted_is_no_failure(world: Any) -> None:
    """kubernetes#84123: recognise the cause; no retries."""
    world.create(finalizers=["webapp.example.com/cleanup"])
    world.see()
    world.sandbox.delete("namespaces", NAMESPACE)
    world.sandbox.settle()
    outcome = world.process()

    assert outcome.end is End.BLOCKED
    assert f"Namespace {NAMESPACE}" in str(outcome.error)


def test_a_child_that_lost_its_owner_reference_gets_it_back(world: Any) -> None:
    """Else it would stay behind when its owner goes."""
    world.settled()
    world.sandbox.patch("deployments.apps", "hello", {"metadata": {"ownerReferences": None}}, NAMESPACE)
    world.see_all()
    uid = world.live(Deployment)["metadata"]["uid"]

    assert world.process().end is End.DONE
    assert world.live(Deployment)["metadata"]["uid"] == uid
    assert world.live(Deployment)["metadata"]["ownerReferences"][0]["name"] == "hello"


def test_a_fight_over_a_child_costs_a_bounded_number_of_writes_and_is_told(world: Any) -> None:
    """Another controller that sets the replicas again and again."""
    world.settled()
    mark = world.mark()
    for replicas in range(60):
        world.sandbox.patch("deployments.apps", "hello", {"spec": {"replicas": 10 + replicas}}, NAMESPACE)
        world.see_all()
        outcome = world.process()
        world.clock.advance(0.1)
    applies = world.requests(mark).count(("patch", "deployments"))

    assert applies <= 25
    assert isinstance(outcome.error, Contended)
    assert world.sandbox.get("webapps.example.com", "hello", NAMESPACE)["status"]["phase"] == "Failed"

    world.clock.advance(outcome.error.look_again.total_seconds())
    world.see_all()
    assert world.process().end is End.DONE
    assert world.live(Deployment)["spec"]["replicas"] == 3


def test_a_changed_wish_is_no_repair_and_waits_for_nothing(world: Any) -> None:
    world.settled()
    for number in range(BURST + 10):
        world.sandbox.patch("webapps.example.com", "hello", {"spec": {"replicas": number}}, NAMESPACE)
        world.see()
        assert world.process().end is End.DONE
    assert world.live(Deployment)["spec"]["replicas"] == BURST + 9
