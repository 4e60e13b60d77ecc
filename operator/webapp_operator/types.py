"""The WebApp kind: what users write, what they read back, and the CRD that follows from both."""

from __future__ import annotations

from typing import Annotated, Literal

from kubeloop.model import (
    AGE,
    EMPTY,
    Column,
    Conditions,
    CustomResource,
    Field,
    Int32,
    Int64,
    Items,
    JsonObject,
    ListAtomic,
    ListMap,
    Map,
    Model,
    Quantity,
    Scale,
    custom_resource,
)

Phase = Literal["Pending", "Provisioning", "Ready", "Failed"]


class EnvVar(Model):
    """An environment variable of the container."""

    name: str = Field(min_length=1, description="Name of the variable.")
    value: str | None = Field(default=None, description="Its value; $(OTHER) refers to earlier variables.")
    value_from: JsonObject | None = Field(
        default=None, description="Where its value comes from, as in a Pod: secretKeyRef, fieldRef and so on."
    )


class EnvSource(Model):
    """A ConfigMap or Secret in the WebApp's namespace."""

    name: str = Field(min_length=1, description="Name of the object.")
    optional: bool | None = Field(default=None, description="Whether the pods may start without it.")


class EnvFrom(Model):
    """A ConfigMap or Secret all of whose entries become environment variables."""

    prefix: str | None = Field(default=None, description="Put before the name of each variable.")
    config_map_ref: EnvSource | None = Field(default=None, description="Take the entries of this ConfigMap.")
    secret_ref: EnvSource | None = Field(default=None, description="Take the entries of this Secret.")


class Resources(Model):
    """Compute resources of the container."""

    requests: Map[Quantity] = Field(
        default=EMPTY, description="What each pod is guaranteed: cpu, memory, ..."
    )
    limits: Map[Quantity] = Field(default=EMPTY, description="What each pod may use at most.")


class ImagePullSecret(Model):
    """A Secret with credentials for the image's registry."""

    name: str = Field(min_length=1, description="Name of the Secret.")


class WebAppSpec(Model):
    """What to run, and how many of it."""

    # Printable ASCII: the server refuses an image with white space around it, but only in the Deployment.
    image: str = Field(
        min_length=1,
        max_length=1024,
        pattern="^[!-~]+$",
        description="Container image to run, as in nginx:1.27.",
    )
    replicas: Int32 = Field(default=1, ge=0, description="Desired number of pods.")
    port: Int32 | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="Port that the container listens on. With it comes a Service of the same name.",
    )
    command: Items[str] = Field(default=(), description="Replaces the entrypoint of the image.")
    args: Items[str] = Field(default=(), description="Arguments of the entrypoint.")
    env: Annotated[Items[EnvVar], ListMap("name")] = Field(
        default=(), description="Environment variables of the container."
    )
    env_from: Annotated[Items[EnvFrom], ListAtomic()] = Field(
        default=(), description="ConfigMaps and Secrets whose entries become environment variables."
    )
    resources: Resources | None = Field(default=None, description="Compute resources of the container.")
    readiness_path: str | None = Field(
        default=None,
        pattern="^/",
        max_length=1024,
        description="A pod is ready once GET on this path of the port succeeds. Requires port.",
    )
    image_pull_secrets: Annotated[Items[ImagePullSecret], ListMap("name")] = Field(
        default=(), description="Secrets with credentials for the image's registry."
    )
    service_account_name: str | None = Field(
        default=None, min_length=1, max_length=253, description="Service account that the pods run as."
    )


class WebAppStatus(Model):
    """How the WebApp is doing, as last seen by the operator."""

    observed_generation: Int64 | None = Field(
        default=None, description="The metadata.generation that this status is about."
    )
    phase: Phase | None = Field(default=None, description="Where in its life the WebApp is.")
    ready: bool = Field(
        default=False, description="Whether all desired pods run the current spec and are available."
    )
    replicas: Int32 | None = Field(default=None, description="Number of pods that exist.")
    available_replicas: Int32 = Field(default=0, description="Number of pods that are available.")
    selector: str | None = Field(default=None, description="Label selector of the pods, for autoscalers.")
    conditions: Conditions = Field(default=(), description="Ready, Progressing and Degraded, with reasons.")


@custom_resource(
    "example.com/v1",
    short_names=("wa",),
    scale=Scale(label_selector_path=".status.selector"),
    columns=(
        Column("Image", ".spec.image"),
        Column("Replicas", ".spec.replicas"),
        Column("Available", ".status.availableReplicas"),
        Column("Ready", ".status.ready"),
        Column("Phase", ".status.phase"),
        AGE,
    ),
)
class WebApp(CustomResource[WebAppSpec, WebAppStatus]):
    """A web application: an image and the number of replicas to run of it."""
