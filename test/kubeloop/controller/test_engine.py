"""Finalizers, outcomes and status writes of one pass (R0.14 to R0.19), raced by others."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kubeloop.client import ApiError
from kubeloop.controller import (
    RESYNC,
    Blocked,
    Context,
    Controller,
    End,
    Result,
    RunningController,
    TerminalError,
)
from kubeloop.controller.statusmemory import SCHEMA_TTL
from kubeloop.model import Deployment
from webapp_operator.types import WebApp, WebAppStatus

NAMESPACE = "team"
OURS = "webapp.example.com/cleanup"


def running(world: Any, reconcile: Any, **options: Any) -> RunningController:
    controller = Controller(WebApp, reconcile, field_manager="test", **options).owns(Deployment)
    return RunningController(controller, world.client, world.informers, clock=world.clock)


def process(made: RunningController) -> Any:
    return made.engine.process(f"{NAMESPACE}/hello")


def finalizers(world: Any) -> list[str]:
    found: list[str] = (world.live(WebApp) or {"metadata": {}})["metadata"].get("finalizers", [])
    return found


class TestFinalizer:
    def test_it_is_in_place_before_the_reconcile_runs(self, world: Any) -> None:
        """R0.16."""
        seen: list[Any] = []

        def reconcile(app: WebApp, _ctx: Context[WebApp]) -> Result:
            seen.append((list(app.metadata.finalizers), finalizers(world)))
            return Result()

        world.create(finalizers=["a.example/x"])
        world.see()
        process(running(world, reconcile, finalizer=OURS))

        assert seen == [(["a.example/x", OURS], ["a.example/x", OURS])]

    def test_a_list_that_somebody_changed_meanwhile_is_read_again(self, world: Any) -> None:
        world.create()
        world.see()
        patch = {"metadata": {"finalizers": ["a.example/x"]}}
        world.sandbox.patch("webapps.example.com", "hello", patch, NAMESPACE)
        outcome = process(running(world, lambda _app, _ctx: Result(), finalizer=OURS))

        assert outcome.end is End.DONE
        assert finalizers(world) == ["a.example/x", OURS]

    def test_it_is_never_proposed_for_an_object_that_is_being_deleted(self, world: Any) -> None:
        """cluster-api#8949, here with a cache that does not know of the deletion yet."""
        ran: list[str] = []

        def reconcile(_app: WebApp, _ctx: Context[WebApp]) -> Result:
            ran.append("reconcile")
            return Result()

        world.create(finalizers=["a.example/x"])
        world.see()
        world.sandbox.delete("webapps.example.com", "hello", NAMESPACE)
        made = running(world, reconcile, finalizer=OURS)

        assert process(made).end is End.GONE
        assert ran == []
        world.see()
        mark = world.mark()
        assert process(made).end is End.GONE
        assert world.requests(mark) == []

    def test_an_object_that_is_gone_already_is_no_error(self, world: Any) -> None:
        world.create()
        world.see()
        world.sandbox.delete("webapps.example.com", "hello", NAMESPACE)

        assert process(running(world, lambda _app, _ctx: Result(), finalizer=OURS)).end is End.GONE

    def test_only_a_successful_cleanup_removes_it_and_the_cause_of_a_failure_is_told(
        self, world: Any
    ) -> None:
        """R0.18, R0.19."""
        broken = [True]

        def cleanup(_app: WebApp, _ctx: Context[WebApp]) -> None:
            if broken[0]:
                raise ConnectionError("the DNS provider does not answer")

        made = running(world, lambda _app, _ctx: Result(), cleanup=cleanup, finalizer=OURS)
        world.create()
        world.see()
        process(made)
        world.sandbox.delete("webapps.example.com", "hello", NAMESPACE)
        world.see()
        outcome = process(made)
        assert outcome.end is End.FAILED
        assert "DNS provider" in str(outcome.error)
        assert finalizers(world) == [OURS]

        broken[0] = False
        assert process(made).end is End.GONE
        assert world.live(WebApp) is None
        assert process(made).end is End.GONE

    def test_removing_it_leaves_the_others_although_they_changed_meanwhile(self, world: Any) -> None:
        def cleanup(_app: WebApp, _ctx: Context[WebApp]) -> None:
            patch = {"metadata": {"finalizers": [OURS, "b.example/y"]}}
            world.sandbox.patch("webapps.example.com", "hello", patch, NAMESPACE)

        made = running(world, lambda _app, _ctx: Result(), cleanup=cleanup, finalizer=OURS)
        world.create(finalizers=["a.example/x", OURS, "b.example/y"])
        world.sandbox.delete("webapps.example.com", "hello", NAMESPACE)
        world.see()

        assert process(made).end is End.GONE
        assert finalizers(world) == ["b.example/y"]

    def test_an_object_that_was_deleted_while_nobody_looked_is_cleaned_up(self, world: Any) -> None:
        """postgres-operator#2678: the first sight of the object is already "deleting"."""
        ran: list[str] = []
        made = running(
            world,
            lambda _app, _ctx: Result(),
            cleanup=lambda app, _ctx: ran.append(app.name),
            finalizer=OURS,
        )
        world.create(finalizers=[OURS])
        world.sandbox.delete("webapps.example.com", "hello", NAMESPACE)
        world.see()

        assert process(made).end is End.GONE
        assert ran == ["hello"]
        assert world.live(WebApp) is None
        assert world.live(Deployment) is None


class Unreachable(Blocked):
    look_again = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("raised", "end", "after"),
    [
        pytest.param(Unreachable("x"), End.BLOCKED, timedelta(minutes=1), id="blocked"),
        pytest.param(TerminalError("x"), End.TERMINAL, None, id="terminal"),
        pytest.param(RuntimeError("x"), End.FAILED, None, id="any exception"),
        pytest.param(RecursionError("x"), End.FAILED, None, id="a panic"),
    ],
)
def test_how_a_reconcile_may_end(world: Any, raised: Exception, end: End, after: timedelta | None) -> None:
    """R0.14."""

    def reconcile(_app: WebApp, _ctx: Context[WebApp]) -> Result:
        raise raised

    world.create()
    world.see()
    outcome = process(running(world, reconcile))

    assert (outcome.end, outcome.requeue_after, outcome.error) == (end, after, raised)


def test_what_the_server_calls_invalid_is_asked_again_at_the_pace_of_a_resync(world: Any) -> None:
    """D4: a bad spec that the schema could not catch ends in no hot loop."""

    def reconcile(app: WebApp, ctx: Context[WebApp]) -> Result:
        ctx.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": app.name}, "spec": {}})
        return Result()

    world.create()
    world.see()
    outcome = process(running(world, reconcile))

    assert (outcome.end, outcome.requeue_after) == (End.TERMINAL, RESYNC)


def test_an_error_is_shown_in_the_status_once(world: Any) -> None:
    def reconcile(_app: WebApp, _ctx: Context[WebApp]) -> Result:
        raise RuntimeError("boom")

    def explain(_app: WebApp, error: Exception) -> WebAppStatus:
        return WebAppStatus(phase="Failed", selector=str(error))

    world.create()
    world.see()
    made = running(world, reconcile, on_error=explain)
    process(made)
    assert (world.live(WebApp) or {})["status"]["selector"] == "boom"

    mark = world.mark()
    process(made)
    assert world.requests(mark) == []


def test_an_error_while_an_error_is_shown_does_not_hide_the_first(world: Any) -> None:
    """R0.19."""

    def reconcile(_app: WebApp, _ctx: Context[WebApp]) -> Result:
        raise RuntimeError("first")

    def explain(_app: WebApp, _error: Exception) -> None:
        raise RuntimeError("second")

    world.create()
    world.see()

    assert str(process(running(world, reconcile, on_error=explain)).error) == "first"


@pytest.mark.parametrize("code", [429, 503])
def test_a_server_in_trouble_is_not_asked_to_keep_an_account_of_it(world: Any, code: int) -> None:
    """The status write that failed would be followed by one that says so, and that by the retries of both."""

    def reconcile(_app: WebApp, ctx: Context[WebApp]) -> Result:
        ctx.set_status(WebAppStatus(phase="Pending"))
        return Result()

    def explain(_app: WebApp, error: Exception) -> WebAppStatus:
        return WebAppStatus(phase="Failed", selector=str(error))

    world.create()
    world.see()
    world.sandbox.faults.add(verb="patch", resource="webapps/status", status=code, retry_after=30)
    mark = world.mark()
    outcome = process(running(world, reconcile, on_error=explain))
    assert isinstance(outcome.error, ApiError)
    assert world.requests(mark) == [("patch", "webapps/status")]  # told to wait for longer than a worker does


def test_a_status_that_reached_another_object_of_the_name_makes_that_one_looked_at(world: Any) -> None:
    """Deleted and made anew between the look and the write: the cache still shows the earlier one."""

    def reconcile(_app: WebApp, ctx: Context[WebApp]) -> Result:
        world.sandbox.delete("webapps.example.com", "hello", NAMESPACE)
        world.create()
        ctx.set_status(WebAppStatus(phase="Pending"))
        return Result()

    world.create()
    world.see()
    made = running(world, reconcile)
    assert process(made).again
    assert not made.writer.is_echo(WebApp.model_validate(world.live(WebApp)))


def test_a_change_that_came_with_the_answer_to_a_status_write_is_looked_at(world: Any) -> None:
    """Writing the answer into the cache swallows the event of the user's change."""

    def reconcile(_app: WebApp, ctx: Context[WebApp]) -> Result:
        world.sandbox.patch("webapps.example.com", "hello", {"spec": {"replicas": 9}}, NAMESPACE)
        ctx.set_status(WebAppStatus(phase="Pending"))
        return Result()

    world.create()
    world.see()

    assert process(running(world, reconcile)).again


def test_a_status_that_an_older_crd_prunes_is_written_once(world_with_older_crd: Any) -> None:
    """kopf#686: comparing with what the server kept would never come to rest."""
    world = world_with_older_crd
    world.settled()
    assert "conditions" not in (world.live(WebApp) or {})["status"]

    mark = world.mark()
    world.process()
    assert [verb for verb, _ in world.requests(mark)] == ["get"]  # of the schema, once for all objects

    mark = world.mark()
    world.process()
    assert world.requests(mark) == []


def test_what_an_older_crd_prunes_is_said_once_for_all_objects(
    world_with_older_crd: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Instead of the server's four warnings to each write of a status."""
    world = world_with_older_crd
    world.settled("one")
    world.settled("two")

    (said,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert "the CRD that is installed is older" in said.getMessage()
    assert "conditions" in said.__dict__["fields"]["dropped"]


def test_a_restart_over_statuses_that_an_older_crd_prunes_writes_nothing(world_with_older_crd: Any) -> None:
    """D1: the server is asked once which fields it keeps."""
    world = world_with_older_crd
    world.settled("one")
    world.settled("two")
    world.restart()
    for name in ("one", "two"):
        world.see_all(name)
    mark = world.mark()
    for name in ("one", "two", "one"):
        assert world.process(name).end is End.DONE

    requests = world.requests(mark)
    assert [verb for verb, _ in requests] == ["get"]


def test_a_status_that_was_pruned_is_completed_once_the_crd_has_been_upgraded(
    world_with_older_crd: Any,
) -> None:
    """Else `kubectl wait --for=condition=Ready` would wait until something changes, or for ever."""
    world = world_with_older_crd
    world.settled()
    world.sandbox.settle()
    world.see_all()
    world.process()
    assert "conditions" not in (world.live(WebApp) or {})["status"]

    world.sandbox.patch(
        "customresourcedefinitions.apiextensions.k8s.io",
        "webapps.example.com",
        {"spec": WebApp.crd()["spec"]},
    )
    world.sandbox.settle()
    world.clock.advance(SCHEMA_TTL + 1)
    assert world.process().end is End.DONE
    assert len((world.live(WebApp) or {})["status"]["conditions"]) == 3

    mark = world.mark()
    world.process()
    assert world.requests(mark) == []


def test_what_an_older_crd_keeps_of_a_status_is_still_kept_true(world_with_older_crd: Any) -> None:
    world = world_with_older_crd
    world.settled()
    world.restart()
    world.see_all()
    world.sandbox.patch(
        "webapps.example.com", "hello", {"status": {"ready": True}}, NAMESPACE, subresource="status"
    )
    world.see_all()
    world.process()

    assert (world.live(WebApp) or {})["status"]["ready"] is False


def test_a_child_of_an_undeclared_kind_is_refused_with_what_to_do(world: Any) -> None:
    def reconcile(app: WebApp, ctx: Context[WebApp]) -> Result:
        ctx.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": app.name}})
        return Result()

    world.create()
    world.see()

    assert "owns(Service)" in str(process(running(world, reconcile)).error)


@pytest.mark.parametrize("manifest", [{}, {"kind": "Deployment"}, {"kind": "Deployment", "metadata": {}}])
def test_a_manifest_without_kind_or_name_names_the_missing_key(world: Any, manifest: dict[str, Any]) -> None:
    """R0.12."""

    def reconcile(_app: WebApp, ctx: Context[WebApp]) -> Result:
        ctx.apply(manifest)
        return Result()

    world.create()
    world.see()

    assert "missing key ." in str(process(running(world, reconcile)).error)


def test_a_child_elsewhere_is_refused(world: Any) -> None:
    def reconcile(_app: WebApp, ctx: Context[WebApp]) -> Result:
        ctx.apply({"kind": "Deployment", "metadata": {"name": "x", "namespace": "kube-system"}})
        return Result()

    world.create()
    world.see()

    assert "its own namespace" in str(process(running(world, reconcile)).error)


def test_a_dry_run_tells_what_would_change_and_writes_nothing(world: Any) -> None:
    """D8."""
    world.create()
    world.see()
    made = RunningController(
        world.running.controller, world.client, world.informers, clock=world.clock, dry_run=True
    )
    mark = world.mark()
    outcome = process(made)

    assert [(c.verb.value, c.kind, c.subresource) for c in outcome.changes] == [
        ("changed", "WebApp", ""),
        ("created", "Deployment", ""),
        ("changed", "WebApp", "status"),
    ]
    assert not [e for e in world.sandbox.log.writes(since=mark) if e.wrote]
    assert world.live(Deployment) is None
    assert not outcome.again


def test_an_error_of_the_server_keeps_its_status(world: Any) -> None:
    """R0.12."""

    def reconcile(app: WebApp, ctx: Context[WebApp]) -> Result:
        ctx.client.get(Deployment.resource, app.name, app.namespace)
        return Result()

    world.create()
    world.see()
    error = process(running(world, reconcile)).error

    assert isinstance(error, ApiError)
    assert error.status["reason"] == "NotFound"
