"""Pending → Provisioning → Ready → Failed, and the status that follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeloop.controller.drift import APPLIED
from kubeloop.model import Deployment, find_condition, is_true
from webapp_operator.lifecycle import (
    Failed,
    Failure,
    Lifecycle,
    Pending,
    Provisioning,
    Ready,
    invalid_spec,
    observe,
    phase_of,
    to_status,
)
from webapp_operator.types import WebApp

MakeApp = Callable[..., WebApp]
STATES: list[Lifecycle] = [
    Pending(),
    Provisioning(3, 1, 1),
    Provisioning(3, 3, 2),
    Provisioning(3, 0, 0, observed=False),
    Ready(0),
    Ready(1),
    Ready(3),
    *(Failed(reason, "why") for reason in Failure),
]


def deployment(generation: int = 2, deleting: bool = False, **status: Any) -> Deployment:
    metadata: dict[str, Any] = {"name": "hello", "namespace": "shop", "generation": generation}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return Deployment.model_validate(
        {"metadata": metadata, "status": {"observedGeneration": 2, **status} if status else None}
    )


DONE = {"replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3}


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        (None, Pending()),
        (deployment(deleting=True, **DONE), Pending("the Deployment is being deleted")),
        (deployment(), Provisioning(3, 0, 0, observed=False)),
        (deployment(generation=3, **DONE), Provisioning(3, 0, 0, observed=False)),
        (deployment(replicas=0), Provisioning(3, 0, 0)),
        (deployment(**DONE), Ready(3)),
        (deployment(**{**DONE, "availableReplicas": 2}), Provisioning(3, 3, 2)),
        (deployment(**{**DONE, "updatedReplicas": 1}), Provisioning(3, 1, 3, surplus=2)),
        (deployment(**{**DONE, "replicas": 4}), Provisioning(3, 3, 3, surplus=1)),
        (
            deployment(replicas=5, updatedReplicas=5, availableReplicas=5),
            Provisioning(3, 5, 5, surplus=2),
        ),
        (
            deployment(
                conditions=[
                    {
                        "type": "Progressing",
                        "status": "False",
                        "reason": "ProgressDeadlineExceeded",
                        "message": "m",
                    }
                ]
            ),
            Failed(Failure.PROGRESS_DEADLINE_EXCEEDED, "m"),
        ),
        (
            deployment(conditions=[{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}]),
            Failed(Failure.REPLICA_FAILURE, "the Deployment cannot create pods"),
        ),
        (
            deployment(conditions=[{"type": "ReplicaFailure", "status": "False"}], **DONE),
            Ready(3),
        ),
    ],
)
def test_the_deployment_tells_the_state(make_app: MakeApp, seen: Deployment | None, state: Lifecycle) -> None:
    """R0.25."""
    assert observe(make_app(replicas=3), seen) == state


def test_zero_replicas_are_ready_when_all_pods_are_gone(make_app: MakeApp) -> None:
    app = make_app(replicas=0)

    assert observe(app, deployment(replicas=0)) == Ready(0)
    assert observe(app, deployment(replicas=2, updatedReplicas=2)) == Provisioning(0, 2, 0, surplus=2)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Provisioning(3, 3, 3),
        lambda: Provisioning(0, 0, 0),
        lambda: Provisioning(1, -1, 0),
        lambda: Ready(-1),
        lambda: Failed(Failure.CONFLICT, ""),
        lambda: invalid_spec([]),
    ],
)
def test_an_illegal_state_cannot_be_built(build: Callable[[], object]) -> None:
    """R0.25: a closed type without illegal combinations."""
    with pytest.raises(ValueError, match=r"."):
        build()


@pytest.mark.parametrize("state", STATES)
def test_phase_ready_and_conditions_always_agree(make_app: MakeApp, state: Lifecycle) -> None:
    """D4."""
    status = to_status(state, make_app(), deployment(**DONE))
    conditions = {condition.type: condition.status == "True" for condition in status.conditions}

    assert status.phase == phase_of(state)
    assert conditions == {
        "Ready": status.phase == "Ready",
        "Progressing": status.phase in ("Pending", "Provisioning"),
        "Degraded": status.phase == "Failed",
    }
    assert status.ready == conditions["Ready"]
    assert status.observed_generation == 4
    for condition in status.conditions:
        assert condition.reason
        assert condition.message
        assert condition.observed_generation == 4


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (Pending(), "DeploymentMissing"),
        (Provisioning(3, 1, 1), "RollingOut"),
        (Provisioning(3, 3, 2), "PodsUnavailable"),
        (Ready(3), "DeploymentAvailable"),
        (Failed(Failure.CONFLICT, "m"), "Conflict"),
        (invalid_spec(["a", "b"]), "InvalidSpec"),
    ],
)
def test_the_ready_condition_says_why(make_app: MakeApp, state: Lifecycle, reason: str) -> None:
    found = find_condition(to_status(state, make_app(), None).conditions, "Ready")

    assert found is not None
    assert found.reason == reason


def test_the_status_has_the_fields_of_the_tutorial_and_those_for_scaling(make_app: MakeApp) -> None:
    """R0.3, D5."""
    wire = to_status(Provisioning(3, 3, 2), make_app(), deployment(replicas=3, availableReplicas=2)).to_wire()

    assert {key: wire[key] for key in ("availableReplicas", "ready", "replicas", "selector")} == {
        "availableReplicas": 2,
        "ready": False,
        "replicas": 3,
        "selector": "webapp.example.com/name=hello",
    }


def test_conditions_of_others_stay_where_they_are(make_app: MakeApp) -> None:
    theirs = {"type": "Paused", "status": "True", "reason": "ByHand"}
    app = make_app(status={"conditions": [{"type": "Ready", "status": "False"}, theirs]})

    status = to_status(Ready(3), app, deployment(**DONE))

    assert [condition.type for condition in status.conditions] == [
        "Ready",
        "Paused",
        "Progressing",
        "Degraded",
    ]
    assert status.conditions[0].status == "True"
    assert status.conditions[1] == find_condition(app.status.conditions if app.status else (), "Paused")


def test_a_failure_without_news_of_the_pods_keeps_their_last_counts(make_app: MakeApp) -> None:
    """D4: the pods of an earlier spec go on running while the present one is wrong."""
    app = make_app(status={"replicas": 3, "availableReplicas": 2})

    failed = to_status(Failed(Failure.APPLY_FAILED, "m"), app, None)
    assert (failed.replicas, failed.available_replicas) == (3, 2)
    pending = to_status(Pending(), app, None)
    assert (pending.replicas, pending.available_replicas) == (0, 0)


@given(
    desired=st.integers(0, 5),
    total=st.integers(0, 8),
    updated=st.integers(0, 8),
    available=st.integers(0, 8),
)
def test_ready_means_exactly_the_desired_pods_all_updated_and_available(
    make_app: MakeApp, desired: int, total: int, updated: int, available: int
) -> None:
    seen = deployment(replicas=total, updatedReplicas=updated, availableReplicas=available)
    state = observe(make_app(replicas=desired), seen)

    complete = updated == desired and total <= desired and available >= desired
    assert isinstance(state, Ready) == complete
    status = to_status(state, make_app(replicas=desired), seen)
    assert is_true(status.conditions, "Ready") == complete


def test_a_policy_that_overrides_the_replicas_is_called_by_its_name(make_app: MakeApp) -> None:
    """Not a roll-out that never ends: the server stores another number than it is sent."""
    app = make_app(replicas=1)
    seen = Deployment.model_validate(
        {
            "metadata": {"name": app.name, "generation": 1},
            "spec": {"replicas": 3},
            "status": {"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3},
        }
    )
    state = observe(app, seen)

    assert isinstance(state, Failed)
    assert state.reason is Failure.OVERRIDDEN
    assert "3 replicas instead of 1" in state.message


def test_what_others_annotate_is_no_roll_out(make_app: MakeApp) -> None:
    """D1: an annotation moves a Deployment's generation too; the status must not flip there and back."""
    applied = {"annotations": {APPLIED: "digest:2"}, "name": "hello", "generation": 3}
    status = {"observedGeneration": 2, **DONE}
    seen = Deployment.model_validate({"metadata": applied, "status": status})
    assert observe(make_app(replicas=3), seen) == Ready(3)
    behind = Deployment.model_validate({"metadata": applied, "status": {**status, "observedGeneration": 1}})
    assert isinstance(observe(make_app(replicas=3), behind), Provisioning)
