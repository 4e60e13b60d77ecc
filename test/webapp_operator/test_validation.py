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
                {"name": "E", "value": "", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            ]
        },
        {"envFrom": [{"secretRef": {"name": "a"}}, {"configMapRef": {"name": "a"}, "prefix": "A_"}]},
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
        (
            {"env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}]},
            "spec.env[0]: A has both",
        ),
        ({"envFrom": [{}]}, "spec.envFrom[0]: exactly one"),
        ({"envFrom": [{"secretRef": {"name": "a_b"}}]}, "spec.envFrom[0].secretRef.name: 'a_b' is not"),
        (
            {"envFrom": [{"configMapRef": {"name": "a"}, "prefix": "="}]},
            "spec.envFrom[0].prefix: '=' must be printable",
        ),
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


KEY = {"name": "s", "key": "k"}


@pytest.mark.parametrize(
    "source",
    [
        {"fieldRef": {"fieldPath": "metadata.labels['app']", "apiVersion": "v1"}},
        {"fieldRef": {"fieldPath": "a.path.of.a.newer.version"}},
        {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m", "containerName": "app"}},
        {"resourceFieldRef": {"resource": "limits.cpu", "divisor": 1}},
        {"resourceFieldRef": {"resource": "limits.cpu", "divisor": 0.001}},
        {"configMapKeyRef": {**KEY, "optional": True}},
        {"secretKeyRef": {**KEY, "key": ".dot-and_dash", "optional": None}},
        {"secretKeyRef": KEY, "configMapKeyRef": None},
        {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k", "optional": False}},
    ],
)
def test_a_value_from_elsewhere_as_the_server_takes_it(make_app: MakeApp, source: dict[str, Any]) -> None:
    assert validate_spec(make_app(env=[{"name": "A", "valueFrom": source}])) == []


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({}, ": exactly one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef must"),
        ({"secretKeyRef": None}, ": exactly one of"),
        ({"secretKeyRef": KEY, "configMapKeyRef": KEY}, ": exactly one of"),
        ({"secretRef": KEY}, ".secretRef: there is no such field; known are fieldRef,"),
        ({"secretKeyRef": {**KEY, "optinal": True}}, ".secretKeyRef.optinal: there is no such field; known"),
        ({"secretKeyRef": "s"}, ".secretKeyRef: must be an object"),
        ({"secretKeyRef": [KEY]}, ".secretKeyRef: must be an object"),
        ({"secretKeyRef": {"key": "k"}}, ".secretKeyRef.name: must be given"),
        ({"secretKeyRef": {"name": "s", "key": ""}}, ".secretKeyRef.key: must be given"),
        ({"secretKeyRef": {"name": "s", "key": 5}}, ".secretKeyRef.key: must be a string"),
        ({"secretKeyRef": {"name": 5, "key": "k"}}, ".secretKeyRef.name: must be a string"),
        ({"configMapKeyRef": {"name": "A", "key": "k"}}, ".configMapKeyRef.name: 'A' is not the name"),
        ({"configMapKeyRef": {"name": "a" * 254, "key": "k"}}, ".configMapKeyRef.name: 'aaa"),
        ({"configMapKeyRef": {"name": "s", "key": "a/b"}}, ".configMapKeyRef.key: 'a/b' is no key"),
        ({"configMapKeyRef": {"name": "s", "key": ".."}}, ".configMapKeyRef.key: '..' is no key"),
        ({"configMapKeyRef": {"name": "s", "key": "..a"}}, ".configMapKeyRef.key: '..a' is no key"),
        ({"configMapKeyRef": {"name": "s", "key": "k" * 254}}, ".configMapKeyRef.key: 'kkk"),
        ({"configMapKeyRef": {**KEY, "optional": "yes"}}, ".configMapKeyRef.optional: must be true or false"),
        ({"configMapKeyRef": {**KEY, "optional": 1}}, ".configMapKeyRef.optional: must be true or false"),
        ({"fieldRef": {}}, ".fieldRef.fieldPath: must be given"),
        ({"fieldRef": {"fieldPath": "a", "apiVersion": 1}}, ".fieldRef.apiVersion: must be a string"),
        (
            {"resourceFieldRef": {"resource": "cpu", "divisor": True}},
            ".resourceFieldRef.divisor: must be a q",
        ),
        (
            {"resourceFieldRef": {"resource": "cpu", "divisor": ""}},
            ".resourceFieldRef.divisor: '' is not a q",
        ),
        ({"resourceFieldRef": {"resource": "cpu", "divisor": "1Zi"}}, ".resourceFieldRef.divisor: '1Zi' is"),
        ({"fileKeyRef": {"volumeName": "v", "path": "p"}}, ".fileKeyRef.key: must be given"),
    ],
)
def test_a_value_from_elsewhere_that_the_server_would_not_take(
    make_app: MakeApp, source: dict[str, Any], problem: str
) -> None:
    """An unknown field, or one of another type, would be answered with 500 as often as it is applied."""
    (found,) = validate_spec(make_app(env=[{"name": "A"}, {"name": "B", "valueFrom": source}]))

    assert found.startswith(f"spec.env[1].valueFrom{problem}")


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
