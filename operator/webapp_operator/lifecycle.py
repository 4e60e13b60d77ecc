"""How a WebApp is doing: Pending → Provisioning → Ready, or Failed. Pure.

The four states are four types, each with just its own data, so that "ready, but rolling out" or "failed for
no reason" cannot be said. `observe` tells the state from the Deployment; `to_status` puts it into words for
the API:

| state | phase | Ready | Progressing | Degraded |
| --- | --- | --- | --- | --- |
| Pending | Pending | False | True | False |
| Provisioning | Provisioning | False | True | False |
| Ready | Ready | True | False | False |
| Failed | Failed | False | False | True |

"Ready" is about the current spec: all desired pods run it and are available, and nothing of an older one is
left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import assert_never

from kubeloop.controller import applied_generation
from kubeloop.model import Condition, Deployment
from kubeloop.model.kinds import DeploymentStatus
from webapp_operator.resources import selector_string
from webapp_operator.types import Phase, WebApp, WebAppStatus


class Failure(StrEnum):
    """Why a WebApp is Failed."""

    INVALID_SPEC = "InvalidSpec"
    """The spec cannot work; waits for a change of it."""
    CONFLICT = "Conflict"
    """An object of the same name belongs to somebody else; waits until the name is free."""
    CONTENDED = "Contended"
    """Somebody else keeps changing what belongs to the WebApp; repaired, but more and more slowly."""
    OVERRIDDEN = "Overridden"
    """The server stores another number of replicas than it is sent: an admission policy or webhook."""
    APPLY_FAILED = "ApplyFailed"
    """The server refused a write; retried."""
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
    """The Deployment gave up waiting for its pods."""
    REPLICA_FAILURE = "ReplicaFailure"
    """The Deployment cannot create pods, for example for lack of quota."""


@dataclass(frozen=True, slots=True)
class Pending:
    """There is no Deployment yet, or it is being deleted."""

    message: str = "the Deployment is not there yet"


@dataclass(frozen=True, slots=True)
class Provisioning:
    """On its way: some of `desired` pods are not updated or not available, or old ones remain."""

    desired: int
    updated: int
    available: int
    surplus: int = 0
    observed: bool = True

    def __post_init__(self) -> None:
        """Raises ValueError for counts below zero, and for a rollout with nothing left to do."""
        if min(self.desired, self.updated, self.available, self.surplus) < 0:
            raise ValueError("counts of pods cannot be negative")
        done = self.updated >= self.desired and self.available >= self.desired and not self.surplus
        if done and self.observed:
            raise ValueError("nothing is left to provision: this is Ready")

    @property
    def reason(self) -> str:
        """`RollingOut` while pods are replaced or added, `PodsUnavailable` if only availability lacks."""
        rolling = not self.observed or self.surplus or self.updated < self.desired
        return "RollingOut" if rolling else "PodsUnavailable"

    @property
    def message(self) -> str:
        """The progress in numbers."""
        if not self.observed:
            return "waiting for the Deployment controller to see the new spec"
        text = f"{self.updated} of {self.desired} pods updated, {self.available} available"
        return f"{text}, {self.surplus} old to go" if self.surplus else text


@dataclass(frozen=True, slots=True)
class Ready:
    """All `replicas` pods run the current spec and are available."""

    replicas: int

    def __post_init__(self) -> None:
        """Raises ValueError for a negative count."""
        if self.replicas < 0:
            raise ValueError("counts of pods cannot be negative")


@dataclass(frozen=True, slots=True)
class Failed:
    """Something is wrong that time alone may not mend."""

    reason: Failure
    message: str

    def __post_init__(self) -> None:
        """Raises ValueError without a message: a failure is always explained."""
        if not self.message:
            raise ValueError("a failure needs a message")


Lifecycle = Pending | Provisioning | Ready | Failed


def observe(app: WebApp, deployment: Deployment | None) -> Lifecycle:
    """The state that a WebApp's own Deployment shows; None if there is none."""
    if deployment is None:
        return Pending()
    if deployment.deleting:
        return Pending("the Deployment is being deleted")
    status = deployment.status or DeploymentStatus()
    desired = app.spec.replicas
    # What drifted has been repaired by now; what still differs was changed by the server itself.
    stored = deployment.spec_replicas
    if stored is not None and stored != desired:
        message = (
            f"the Deployment is stored with {stored} replicas instead of {desired}: a policy overrides it"
        )
        return Failed(Failure.OVERRIDDEN, message)
    # What others do later, a new annotation say, moves the generation too, and must not make a WebApp that is
    # ready look as if it were rolling out.
    ours = applied_generation(deployment)
    wanted = deployment.generation if ours is None else min(ours, deployment.generation)
    if status.observed_generation < wanted:
        return Provisioning(desired, 0, 0, observed=False)
    if (failure := _failure(status)) is not None:
        return failure
    surplus = max(0, status.replicas - status.updated_replicas)
    updated, available = status.updated_replicas, status.available_replicas
    # More pods than desired are a scale-down under way.
    surplus += max(0, updated - desired)
    if updated < desired or available < desired or surplus:
        return Provisioning(desired, updated, available, surplus)
    return Ready(desired)


def invalid_spec(problems: Sequence[str]) -> Failed:
    """The state of a WebApp with these problems (see `validation`); there must be at least one."""
    return Failed(Failure.INVALID_SPEC, "; ".join(problems))


def phase_of(state: Lifecycle) -> Phase:
    """The state in a word, for the phase column."""
    match state:
        case Pending():
            return "Pending"
        case Provisioning():
            return "Provisioning"
        case Ready():
            return "Ready"
        case Failed():
            return "Failed"
        case _:
            assert_never(state)


def to_status(state: Lifecycle, app: WebApp, deployment: Deployment | None) -> WebAppStatus:
    """The status to publish; the runtime dates its transitions, and writes it only if it says anything new.

    `deployment` gives the counts of pods, whatever the state says: a WebApp with a bad spec may well have
    pods of an earlier one. Conditions of other types than ours, which somebody else has set, stay.
    """
    before = app.status
    replicas, available = 0, 0
    if deployment is not None and deployment.status is not None:
        replicas, available = deployment.status.replicas, deployment.status.available_replicas
    elif deployment is None and before is not None and isinstance(state, Failed):
        # A failure to write says nothing about the pods: the last that was seen of them stands.
        replicas, available = before.replicas or 0, before.available_replicas
    existing = before.conditions if before is not None else ()
    return WebAppStatus(
        observed_generation=app.generation,
        phase=phase_of(state),
        ready=isinstance(state, Ready),
        replicas=replicas,
        available_replicas=available,
        selector=selector_string(app),
        conditions=_beside(existing, _conditions(state, app.generation)),
    )


def _beside(existing: tuple[Condition, ...], ours: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """`ours` in the places of their predecessors, the others as they are."""
    new = {condition.type: condition for condition in ours}
    return (*(new.pop(condition.type, condition) for condition in existing), *new.values())


def _failure(status: DeploymentStatus) -> Failed | None:
    """What the Deployment itself calls a failure."""
    for condition in status.conditions:
        if condition.type == "Progressing" and condition.reason == Failure.PROGRESS_DEADLINE_EXCEEDED:
            message = condition.message or "the Deployment did not progress in time"
            return Failed(Failure.PROGRESS_DEADLINE_EXCEEDED, message)
    for condition in status.conditions:
        if condition.type == "ReplicaFailure" and condition.status == "True":
            return Failed(Failure.REPLICA_FAILURE, condition.message or "the Deployment cannot create pods")
    return None


@lru_cache(maxsize=128)
def _conditions(state: Lifecycle, generation: int) -> tuple[Condition, Condition, Condition]:
    progressing: tuple[str, str] | None = None
    degraded: tuple[str, str] | None = None
    match state:
        case Pending(message):
            ready, progressing = ("DeploymentMissing", message), ("Creating", message)
        case Provisioning():
            ready = progressing = (state.reason, state.message)
        case Ready(replicas):
            ready = ("DeploymentAvailable", _all_available(replicas))
        case Failed(reason, message):
            ready = degraded = (reason.value, message)
        case _:
            assert_never(state)
    is_ready = isinstance(state, Ready)
    failed = isinstance(state, Failed)
    idle = ready if failed else ("RolloutComplete", "nothing is left to roll out")

    def condition(kind: str, holds: bool, why: tuple[str, str]) -> Condition:
        return Condition(
            type=kind,
            status="True" if holds else "False",
            reason=why[0],
            message=why[1],
            observed_generation=generation,
        )

    return (
        condition("Ready", is_ready, ready),
        condition("Progressing", progressing is not None, progressing or idle),
        condition("Degraded", failed, degraded or ("AsExpected", "nothing is wrong")),
    )


def _all_available(replicas: int) -> str:
    if replicas == 0:
        return "scaled to zero, as desired"
    return "the pod is available" if replicas == 1 else f"all {replicas} pods are available"
