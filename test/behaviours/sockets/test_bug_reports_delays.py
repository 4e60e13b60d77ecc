"""The report on huge delays, on the machine's own clock: only a real wait can overflow."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kubeloop.clock import StopEvent
from kubeloop.controller import Context, Controller, Result
from kubeloop.manager import Manager
from kubeloop.manager.checks import liveness
from webapp_operator.types import WebApp


@pytest.mark.parametrize("where", ["requeue", "list", "watch", "get"])
def test_no_delay_is_too_long_to_be_waited_for(make_live: Any, run: Any, where: str) -> None:
    """kube-rs/kube#1772: a huge delay panics the scheduler; Python's waits raise OverflowError."""
    live = make_live()
    if where != "requeue":
        live.sandbox.faults.add(verb=where, resource="webapps", status=429, retry_after=10**12)
        if where == "list":
            live.sandbox.faults.add(verb="watch", resource="webapps", status=422)
    ends: list[str] = []

    def reconcile(app: WebApp, ctx: Context[WebApp]) -> Result:
        ends.append("begun")
        if where == "get":
            ctx.client.get(WebApp.resource, app.name, app.namespace)
        return Result(timedelta.max)

    stop = StopEvent()
    manager = Manager(live.client(stop=stop))
    manager.add(Controller(WebApp, reconcile, field_manager="test"))
    run(manager, stop)
    live.make()
    if where in ("list", "watch"):
        live.until(lambda: any("429" in i.state for i in manager.informers.values()))
    else:
        live.until(lambda: ends)
        live.until(lambda: not manager.controllers[0].queue.busy())
        live.make("second")
        live.until(lambda: len(ends) >= 2)
        live.until(lambda: not manager.controllers[0].queue.busy())
    StopEvent().wait(0.1)  # whoever waits does so by now

    assert {check() for check in liveness(manager).values()} == {""}
    assert not manager.controllers[0].workers.dead
