"""The server has come back with a backup's data, and the caches do not know yet."""

from __future__ import annotations

from typing import Any

from kubeloop.cache import Added, Deleted
from kubeloop.controller import Context, Controller, Result, RunningController
from webapp_operator.types import WebApp, WebAppStatus

KEY = "team/hello"


def test_it_is_not_patched_without_a_pause(world: Any) -> None:
    """Its answers are too old for the cache, which goes on to show what was there before."""

    def reconcile(_app: WebApp, ctx: Context[WebApp]) -> Result:
        ctx.set_status(WebAppStatus(phase="Pending"))
        return Result()

    world.create()
    backup = world.sandbox.backup()
    for replicas in (4, 5, 6, 7):
        world.sandbox.patch("webapps.example.com", "hello", {"spec": {"replicas": replicas}}, "team")
    world.see()
    world.sandbox.restart(backup)
    controller = Controller(WebApp, reconcile, field_manager="test")
    running = RunningController(controller, world.client, world.informers, clock=world.clock)
    outcome = running.engine.process(KEY)
    assert [change.subresource for change in outcome.changes] == ["status"]
    assert not outcome.again


def test_an_object_that_comes_back_at_a_version_that_was_written_here_is_looked_at(world: Any) -> None:
    """Our last write went to the object that is there again, not to the one that the cache still showed; with
    the end of that one all that was queued is dropped."""
    world.settled()
    controller = world.running
    app = world.informers[WebApp].store.get(KEY)
    assert controller.writer.is_echo(app)
    controller.queue.add(KEY)
    controller._on_main(Deleted(app), False)
    assert len(controller.queue) == 0
    controller._on_main(Added(app, own=True), False)
    assert len(controller.queue) == 1
