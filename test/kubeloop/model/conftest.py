"""A custom resource with one of everything that a schema can say, shared by the tests of this folder."""

from __future__ import annotations

import enum
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import pytest

from kubeloop.model import (
    AGE,
    EMPTY,
    Column,
    Conditions,
    CustomResource,
    Duration,
    EmbeddedObject,
    Field,
    Int32,
    Int64,
    IntOrString,
    Items,
    JsonObject,
    JsonValue,
    ListMap,
    Map,
    MapAtomic,
    Model,
    OneOf,
    Quantity,
    Rule,
    Scale,
    custom_resource,
)


class Colour(enum.Enum):
    """What it is painted in."""

    RED = "red"
    BLUE = "blue"


class Circle(Model):
    """A round one."""

    kind: Literal["circle"]
    size: Int32 = 3
    radius: float = Field(gt=0, lt=100)


class Box(Model):
    """A square one."""

    kind: Literal["box", "cube"]
    size: Int32 = 3
    side: str | None = None


class Disk(Model):
    path: str = Field(min_length=1)


class Source(OneOf):
    """Where the data comes from."""

    disk: Disk | None = None
    """A disk of this machine."""

    url: str | None = None


class Port(Model):
    name: str = Field(max_length=15)
    number: Int32 = Field(ge=1, le=65535)


class Retry(Model):
    times: Int64 = 7


class GadgetSpec(Model):
    """What the gadget is to be."""

    rules: ClassVar = (("self.low <= self.high", "low must not exceed high"), "size(self.word) < 9")

    word: str = Field(default="a", min_length=1, max_length=8, pattern="^a")
    """Described below the field."""
    low: Int32 = Field(default=1, ge=0, description="Described in the field.")
    high: Int64 = 9
    even: int = Field(default=0, multiple_of=2)
    flag: bool | None = Field(default=None, description="Null is not false.")
    port: Int32 | None = Field(default=None, ge=1, le=65535)
    colour: Colour | None = None
    shade: Literal["light", "dark"] = "light"
    share: int | str = "25%"
    surge: IntOrString | None = None
    amount: Quantity | None = None
    limits: Map[Quantity] = EMPTY
    names: Items[Annotated[str, Field(max_length=3)]] = Field(default=(), max_length=5)
    tags: frozenset[str] = frozenset()
    labels: Map[str] = Field(default=EMPTY, max_length=3)
    ports: Annotated[Items[Port], ListMap("name")] = ()
    retry: Retry = Retry()
    place: Annotated[Retry, MapAtomic()] = Retry()
    shape: Annotated[Circle | Box, Field(discriminator="kind")]
    other: Circle | Box | None = None
    source: Source | None = None
    wait: Duration | None = None
    since: datetime | None = None
    free: JsonObject | None = None
    anything: JsonValue = None
    template: Annotated[JsonObject, EmbeddedObject()] | None = None
    fixed: Annotated[str, Field(max_length=20), Rule("self == oldSelf", message="cannot be changed")] = "x"
    y: Int32 | None = None


class GadgetStatus(Model):
    """What the gadget is."""

    replicas: Int32 = 0
    selector: str | None = None
    conditions: Conditions = ()


@custom_resource(
    "things.example.com/v1",
    short_names=("gd",),
    categories=("all", "toys"),
    scale=Scale(".spec.low", ".status.replicas", ".status.selector"),
    columns=(
        Column("Word", ".spec.word", description="The word."),
        Column("Low", ".spec.low", format="int32"),
        Column("Since", ".spec.since", priority=1),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status', "string"),
        AGE,
    ),
    selectable_fields=(".spec.word",),
    rules=(Rule("self.metadata.name != 'no'", message="not this name", reason="FieldValueForbidden"),),
    deprecated="use v2",
    labels={"team": "toys"},
    annotations={"example.com/doc": "gadgets"},
)
class Gadget(CustomResource[GadgetSpec, GadgetStatus]):
    """A gadget.

    It gadgets.
    """


@pytest.fixture
def gadget() -> Any:
    """The Gadget class."""
    return Gadget


NOISE: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "hello",
        "namespace": "default",
        "uid": "0b2c7a4e-0000-4000-8000-1234567890ab",
        "resourceVersion": "123456",
        "generation": 2,
        "creationTimestamp": "2026-08-01T00:00:00Z",
        "labels": {
            "app.kubernetes.io/name": "webapp",
            "app.kubernetes.io/instance": "hello",
            "app.kubernetes.io/managed-by": "webapp-operator",
        },
        "annotations": {"deployment.kubernetes.io/revision": "1"},
        "ownerReferences": [
            {
                "apiVersion": "example.com/v1",
                "kind": "WebApp",
                "name": "hello",
                "uid": "0b2c7a4e-0000-4000-8000-1234567890ac",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": [
            {
                "manager": "webapp-operator",
                "operation": "Apply",
                "apiVersion": "apps/v1",
                "time": "2026-08-01T00:00:00Z",
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {}}}}},
            }
        ],
    },
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"webapp.example.com/name": "hello"}},
        "template": {
            "metadata": {"labels": {"webapp.example.com/name": "hello"}},
            "spec": {
                "containers": [
                    {
                        "name": "app",
                        "image": "nginx:1.27",
                        "resources": {},
                        "terminationMessagePath": "/dev/termination-log",
                        "terminationMessagePolicy": "File",
                        "imagePullPolicy": "IfNotPresent",
                    }
                ],
                "restartPolicy": "Always",
                "terminationGracePeriodSeconds": 30,
                "dnsPolicy": "ClusterFirst",
                "securityContext": {},
                "schedulerName": "default-scheduler",
            },
        },
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
        },
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    },
    "status": {
        "observedGeneration": 2,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "conditions": [
            {
                "type": "Available",
                "status": "True",
                "lastUpdateTime": "2026-08-01T00:00:00Z",
                "lastTransitionTime": "2026-08-01T00:00:00Z",
                "reason": "MinimumReplicasAvailable",
                "message": "Deployment has minimum availability.",
            }
        ],
    },
}


@pytest.fixture
def server_deployment() -> dict[str, Any]:
    """A Deployment with all that a server adds, as a dict of its own."""
    import copy

    return copy.deepcopy(NOISE)
