"""The few built-in kinds that controllers here read, cut down to what they look at."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import AliasPath

from kubeloop.model.base import Field, Model
from kubeloop.model.conditions import ConditionStatus
from kubeloop.model.frozen import Items, RawJson
from kubeloop.model.kubeobject import KubeObject
from kubeloop.model.resource import Resource

_NO_SPEC = RawJson(b"{}")


class DeploymentCondition(Model):
    """`Available`, `Progressing` or `ReplicaFailure` of a Deployment."""

    type: str
    status: ConditionStatus
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class DeploymentStatus(Model):
    """How far a Deployment's pods have come. The server leaves out counts that are zero."""

    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    conditions: Items[DeploymentCondition] = ()


class Deployment(KubeObject):
    """apps/v1 Deployment. The spec is kept as bytes, see `RawJson`; what is looked at most is at hand."""

    resource: ClassVar[Resource] = Resource("apps", "v1", "deployments", "Deployment")

    raw_spec: RawJson = Field(default=_NO_SPEC, alias="spec")
    spec_replicas: int | None = Field(
        default=None, validation_alias=AliasPath("spec", "replicas"), exclude=True
    )
    """spec.replicas."""
    status: DeploymentStatus | None = None

    @property
    def spec(self) -> dict[str, Any]:
        """The spec as a fresh dict, parsed at each call."""
        return self.raw_spec.value()


class Service(KubeObject):
    """core/v1 Service. The spec is kept as bytes, see `RawJson`."""

    resource: ClassVar[Resource] = Resource("", "v1", "services", "Service")

    raw_spec: RawJson = Field(default=_NO_SPEC, alias="spec")

    @property
    def spec(self) -> dict[str, Any]:
        """The spec as a fresh dict, parsed at each call."""
        return self.raw_spec.value()


class NamespaceStatus(Model):
    """Whether a namespace is `Active` or `Terminating`."""

    phase: str = ""


class Namespace(KubeObject):
    """core/v1 Namespace."""

    resource: ClassVar[Resource] = Resource("", "v1", "namespaces", "Namespace", namespaced=False)

    status: NamespaceStatus | None = None
