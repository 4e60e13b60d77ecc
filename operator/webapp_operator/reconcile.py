"""From a WebApp to its Deployment, Service and status; and what is left to do when it goes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

from kubeloop.controller import (
    RESYNC,
    Contended,
    Context,
    Controller,
    GoingAway,
    NotOurs,
    Result,
    TerminalError,
)
from kubeloop.model import Deployment, Service, format_time
from webapp_operator.lifecycle import Failed, Failure, Pending, observe, to_status
from webapp_operator.resources import MANAGER, build_deployment, build_service
from webapp_operator.types import WebApp, WebAppStatus
from webapp_operator.validation import validate_spec

FINALIZER = "webapp.example.com/cleanup"


class InvalidSpec(TerminalError):
    """The spec cannot work; only its author can help."""


def reconcile(app: WebApp, ctx: Context[WebApp], *, resync: timedelta = RESYNC) -> Result:
    """Apply branch: make Deployment and Service as the spec says, then say how they are doing."""
    try:
        if problems := validate_spec(app):
            raise InvalidSpec("; ".join(problems))
        deployment = ctx.apply(build_deployment(app))  # no request unless it drifted
        service = build_service(app)
        if service is None:
            ctx.delete(Service, app.name)
        else:
            ctx.apply(service)
    except Exception as error:
        _tell_trouble(ctx, error)
        raise
    finally:
        _tell_changes(ctx)
    ctx.set_status(to_status(observe(app, deployment), app, deployment))  # no request unless it changed
    return Result(requeue_after=resync)


def _tell_changes(ctx: Context[WebApp]) -> None:
    """Events for what had to be put right. What was asked for is no news: each Event is a write, and a WebApp
    that is made or changed says how it is doing in its status."""
    for change in ctx.changes:
        if change.repair:
            ctx.event("Repaired", f"Repaired {change.kind} {change.key.rpartition('/')[2]}", action="Apply")


def _tell_trouble(ctx: Context[WebApp], error: Exception) -> None:
    state = _state_of(error)
    if isinstance(state, Failed):
        ctx.event(state.reason.value, state.message, warning=True, action="Apply")


def cleanup(app: WebApp, ctx: Context[WebApp]) -> None:
    """Cleanup branch. Deployment and Service go with their owner, by the garbage collector; a WebApp has
    nothing outside the cluster that would have to be undone here."""
    ctx.log.info("cleanup of %s", app.kind)


def explain(app: WebApp, error: Exception) -> WebAppStatus:
    """What a failed reconcile looks like in the status."""
    return to_status(_state_of(error), app, None)


def _state_of(error: Exception) -> Failed | Pending:
    match error:
        case InvalidSpec():
            return Failed(Failure.INVALID_SPEC, str(error))
        case NotOurs():
            return Failed(Failure.CONFLICT, str(error))
        case Contended():
            return Failed(Failure.CONTENDED, str(error))
        case GoingAway():
            return Pending(str(error))
        case _:
            return Failed(Failure.APPLY_FAILED, str(error) or type(error).__name__)


def unreadable(message: str) -> dict[str, object]:
    """The status of a WebApp that does not even decode as one."""
    why = {"status": "False", "reason": Failure.INVALID_SPEC.value, "message": message}
    degraded = {**why, "type": "Degraded", "status": "True"}
    now = format_time(datetime.now(UTC))
    conditions = [{**each, "lastTransitionTime": now} for each in ({**why, "type": "Ready"}, degraded)]
    return {"phase": "Failed", "ready": False, "conditions": conditions}


def webapp_controller(*, resync: timedelta = RESYNC) -> Controller[WebApp]:
    """The controller: WebApps, and the Deployments and Services that they own. Each WebApp is looked at every
    `resync` at least."""
    return (
        Controller(
            WebApp,
            partial(reconcile, resync=resync),
            cleanup=cleanup,
            finalizer=FINALIZER,
            field_manager=MANAGER,
            on_error=explain,
            on_undecodable=unreadable,
            cleanup_reads_spec=False,
        )
        .owns(Deployment)
        .owns(Service)
    )
