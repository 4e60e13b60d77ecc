"""What belongs to a WebApp."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webapp_operator.resources import (
    SELECTOR_LABEL,
    build_deployment,
    build_service,
    label_value,
    labels,
    selector_string,
)
from webapp_operator.types import WebApp

MakeApp = Callable[..., WebApp]
NAMES = st.from_regex(
    r"\A[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?){0,4}\Z"
).filter(lambda name: len(name) <= 253)
LABEL_VALUE = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]")


def test_image_and_replicas_make_the_minimal_deployment_and_nothing_more(make_app: MakeApp) -> None:
    """R0.8, D6."""
    all_labels = {
        "app.kubernetes.io/name": "webapp",
        "app.kubernetes.io/instance": "hello",
        "app.kubernetes.io/managed-by": "webapp-operator",
        "webapp.example.com/name": "hello",
    }
    assert build_deployment(make_app(replicas=3)) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "hello",
            "namespace": "shop",
            "labels": all_labels,
            "ownerReferences": [
                {
                    "apiVersion": "example.com/v1",
                    "kind": "WebApp",
                    "name": "hello",
                    "uid": "u-1",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"webapp.example.com/name": "hello"}},
            "template": {
                "metadata": {"labels": all_labels},
                "spec": {"containers": [{"name": "app", "image": "nginx:1.27"}]},
            },
        },
    }
    assert build_service(make_app(replicas=3)) is None


def test_all_optional_fields_reach_the_pod(make_app: MakeApp) -> None:
    """D6."""
    app = make_app(
        port=8080,
        readinessPath="/ready",
        command=["run"],
        args=["--fast"],
        env=[
            {"name": "A", "value": "ü"},
            {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
        envFrom=[{"prefix": "X_", "secretRef": {"name": "s", "optional": True}}],
        resources={"requests": {"cpu": "50m"}, "limits": {"cpu": 1}},
        imagePullSecrets=[{"name": "registry"}],
        serviceAccountName="robot",
    )
    pod = build_deployment(app)["spec"]["template"]["spec"]

    assert pod == {
        "containers": [
            {
                "name": "app",
                "image": "nginx:1.27",
                "command": ["run"],
                "args": ["--fast"],
                "env": [
                    {"name": "A", "value": "ü"},
                    {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                ],
                "envFrom": [{"prefix": "X_", "secretRef": {"name": "s", "optional": True}}],
                "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "50m"}, "limits": {"cpu": "1"}},
                "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
            }
        ],
        "imagePullSecrets": [{"name": "registry"}],
        "serviceAccountName": "robot",
    }


def test_a_port_makes_a_service_of_the_same_name(make_app: MakeApp) -> None:
    """D6."""
    service = build_service(make_app(port=8080))

    assert service is not None
    assert service["metadata"] == build_deployment(make_app(port=8080))["metadata"]
    assert service["spec"] == {
        "selector": {"webapp.example.com/name": "hello"},
        "ports": [{"name": "http", "port": 8080, "targetPort": "http", "protocol": "TCP"}],
    }


@pytest.mark.parametrize("spec", [{}, {"image": "other:2", "replicas": 9, "port": 1, "command": ["x"]}])
def test_the_selector_depends_on_nothing_but_the_name(make_app: MakeApp, spec: dict[str, Any]) -> None:
    """R0.8: a selector can never be changed; this literal is a promise to all later versions."""
    selector = build_deployment(make_app(**spec))["spec"]["selector"]

    assert selector == {"matchLabels": {"webapp.example.com/name": "hello"}}


def test_the_selector_in_the_status_is_the_one_of_the_deployment(make_app: MakeApp) -> None:
    """D5: autoscalers read it."""
    assert selector_string(make_app()) == "webapp.example.com/name=hello"


def test_bodies_are_plain_json(make_app: MakeApp) -> None:
    app = make_app(
        port=1, env=[{"name": "A", "valueFrom": {"x": [{"y": 1}]}}], resources={"limits": {"cpu": 1}}
    )
    body = build_deployment(app)

    assert json.loads(json.dumps(body)) == body


def test_a_webapp_that_was_never_stored_cannot_own_anything(make_app: MakeApp) -> None:
    app = make_app()
    unsaved = app.replace(metadata=app.metadata.replace(uid=""))

    with pytest.raises(ValueError, match="no uid"):
        build_deployment(unsaved)


@settings(max_examples=50)
@given(NAMES)
def test_every_legal_name_gives_legal_labels(make_app: MakeApp, name: str) -> None:
    """R0.8: names of up to 253 characters."""
    for key, value in labels(make_app(name)).items():
        assert LABEL_VALUE.fullmatch(value), (key, value)
    assert labels(make_app(name))[SELECTOR_LABEL] == label_value(name)


@settings(max_examples=50)
@given(NAMES, NAMES)
def test_different_names_give_different_labels(one: str, other: str) -> None:
    """R0.8: two WebApps never select each other's pods."""
    assert (label_value(one) == label_value(other)) == (one == other)


def test_names_that_differ_at_the_very_end_or_look_like_a_shortened_one_stay_apart() -> None:
    long = "a" * 253
    values = [
        label_value(name) for name in (long, long[:-1] + "b", long[:-1], label_value(long).replace("_", "-"))
    ]

    assert len(set(values)) == 4
    assert all(len(value) <= 63 for value in values)
    assert label_value("a" * 63) == "a" * 63


def test_label_values_never_change_over_versions() -> None:
    """They are part of the selector: this literal is a promise."""
    assert label_value("a" * 64) == "a" * 46 + "_ffe054fe7ae0cb6d"
