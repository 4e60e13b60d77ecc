"""What a pass tells beside its writes: repairs, requests that were not needed, Events, its id in the log."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kubeloop.model import Deployment


class Sink:
    """Takes Events."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, bool]] = []

    def emit(self, _regarding: Any, reason: str, note: str, *, warning: bool, action: str) -> None:
        assert action == "Apply"
        self.seen.append((reason, note, warning))


@pytest.fixture
def sink(world: Any) -> Sink:
    made = Sink()
    world.running.engine._shared.events = made
    return made


def repairs(outcome: Any) -> list[tuple[str, bool]]:
    return [(change.kind, change.repair) for change in outcome.changes if change.kind != "WebApp"]


def test_a_settled_object_asks_for_two_writes_and_needs_none(world: Any, sink: Sink) -> None:
    world.settled()
    outcome = world.process()

    assert (outcome.changes, outcome.spared) == ([], 2)
    assert sink.seen == []


def test_undoing_somebody_elses_change_is_a_repair_and_an_event(world: Any, sink: Sink) -> None:
    world.settled()
    world.sandbox.patch("deployments.apps", "hello", {"spec": {"replicas": 9}}, "team")
    world.see(Deployment)

    assert repairs(world.process()) == [("Deployment", True)]
    assert sink.seen == [("Repaired", "Repaired Deployment hello", False)]


def test_making_and_changing_what_was_asked_for_is_no_repair(world: Any) -> None:
    world.create()
    world.see()
    assert repairs(world.process()) == [("Deployment", False)]
    world.see_all()
    world.sandbox.patch("webapps.example.com", "hello", {"spec": {"image": "nginx:1.28"}}, "team")
    world.see()

    assert repairs(world.process()) == [("Deployment", False)]


def test_a_conflict_is_a_warning_for_people(world: Any, sink: Sink) -> None:
    world.settled("first")
    world.sandbox.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "hello", "namespace": "team"},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                },
            },
        }
    )
    world.create()
    world.see_all()
    world.process()

    assert [(reason, warning) for reason, _, warning in sink.seen] == [("Conflict", True)]


def test_every_pass_has_an_id_of_its_own(world: Any) -> None:
    world.settled()
    ids = {world.process().reconcile_id for _ in range(3)}

    assert len(ids) == 3


def test_the_id_is_in_the_line_about_the_pass(world: Any, caplog: pytest.LogCaptureFixture) -> None:
    world.create()
    world.see()
    world.running.queue.add("team/hello")
    with caplog.at_level(logging.INFO):
        assert world.running.workers.process_next(0)
    fields = next(r for r in caplog.records if r.getMessage() == "reconciled WebApp").fields  # type: ignore[attr-defined]

    assert len(fields["reconcile_id"]) == 8
    assert (fields["ns"], fields["name"]) == ("team", "hello")
