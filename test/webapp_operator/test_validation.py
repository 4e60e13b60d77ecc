"""What a schema cannot catch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from webapp_operator.types import WebApp
from webapp_operator.validation import validate_spec

MakeApp = Callable[..., WebApp]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"port": 80, "readinessPath": "/"},
        {
            "env": [
                {"name": "A"},
                {"name": "b.c-d/1"},
                {"name": "E", "value": "", "valueFrom": {"fieldRef": {}}},
            ]
        },
        {"envFrom": [{"secretRef": {"name": "a"}}, {"configMapRef": {"name": "a"}}]},
        {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": 1}}},
        {"resources": {"requests": {"cpu": "1000m"}, "limits": {"cpu": "1", "example.com/gpu": "0"}}},
        {"serviceAccountName": "a.b-c", "imagePullSecrets": [{"name": "x"}]},
    ],
)
def test_a_good_spec_has_no_problems(make_app: MakeApp, spec: dict[str, Any]) -> None:
    assert validate_spec(make_app(**spec)) == []


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"readinessPath": "/"}, "spec.readinessPath: requires spec.port"),
        ({"env": [{"name": "A"}, {"name": "A"}]}, "spec.env[1].name: A is given twice"),
        ({"env": [{"name": "A=B"}]}, "spec.env[0].name: 'A=B' must be printable"),
        ({"env": [{"name": "ü"}]}, "spec.env[0].name: 'ü' must be printable"),
        ({"env": [{"name": "A", "value": "x", "valueFrom": {"a": 1}}]}, "spec.env[0]: A has both"),
        ({"envFrom": [{}]}, "spec.envFrom[0]: exactly one"),
        (
            {"envFrom": [{"secretRef": {"name": "a"}, "configMapRef": {"name": "b"}}]},
            "spec.envFrom[0]: exactly",
        ),
        (
            {"resources": {"requests": {"cpu": 2}, "limits": {"cpu": "1500m"}}},
            "spec.resources: the cpu request of 2 exceeds its limit of 1500m",
        ),
        ({"resources": {"limits": {"memory": "-1Gi"}}}, "spec.resources.limits.memory: -1Gi is negative"),
        # The pattern that CRDs use for quantities lets this through.
        (
            {"resources": {"requests": {"cpu": "1e1.5"}}},
            "spec.resources.requests.cpu: '1e1.5' is not a quantity",
        ),
        ({"serviceAccountName": "Robot"}, "spec.serviceAccountName: 'Robot' is not the name"),
        ({"imagePullSecrets": [{"name": "a_b"}]}, "spec.imagePullSecrets[0].name: 'a_b' is not the name"),
    ],
)
def test_each_problem_names_its_field(make_app: MakeApp, spec: dict[str, Any], problem: str) -> None:
    """D4."""
    (found,) = validate_spec(make_app(**spec))

    assert found.startswith(problem)


@pytest.mark.parametrize("name", ["a.b", "a" * 64])
def test_a_name_that_no_service_can_have_is_a_problem_only_with_a_port(make_app: MakeApp, name: str) -> None:
    assert validate_spec(make_app(name)) == []
    (problem,) = validate_spec(make_app(name, port=80))
    assert problem.startswith("spec.port: a Service has the WebApp's name")


@pytest.mark.parametrize("name", ["a" * 253, "1a"])
def test_long_names_and_leading_digits_are_fine(make_app: MakeApp, name: str) -> None:
    """Seen on Kubernetes 1.36: a Deployment of 253 characters gets its pods."""
    assert validate_spec(make_app(name)) == []


def test_all_problems_are_told_at_once(make_app: MakeApp) -> None:
    app = make_app("a.b", port=80, env=[{"name": "="}], envFrom=[{}], resources={"limits": {"cpu": "-1"}})

    assert len(validate_spec(app)) == 4
