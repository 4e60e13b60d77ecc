"""The tutorial's WebApp, whole, in one file: ``python examples/webapp.py``; with ``crd`` it prints the CRD.

An image and a number of replicas become a Deployment that is kept that way. The product (`webapp_operator`)
knows more fields and more ways to fail; the shape is the same.
"""

import sys
from typing import Any

import kubeloop
from kubeloop import RESYNC, Context, Controller, CustomResource, Deployment, Field, Model, Result
from kubeloop.model import AGE, Column, Condition, Conditions, Int32, Int64, Scale
from kubeloop.observe import configure_logging

MANAGER = "tutorial-operator"


class WebAppSpec(Model):
    """What to run."""

    image: str = Field(min_length=1, description="Container image to run.")
    replicas: Int32 = Field(default=1, ge=0, description="Desired number of pods.")


class WebAppStatus(Model):
    """How it is doing."""

    observed_generation: Int64 | None = Field(default=None, description="Generation this is about.")
    replicas: Int32 = Field(default=0, description="Number of pods that exist.")
    available_replicas: Int32 = Field(default=0, description="Number of pods that are available.")
    ready: bool = Field(default=False, description="Whether all desired pods are available.")
    conditions: Conditions = Field(default=(), description="Ready, with a reason.")


@kubeloop.custom_resource(
    "example.com/v1",
    short_names=("wa",),
    scale=Scale(),
    columns=(Column("Image", ".spec.image"), Column("Ready", ".status.ready"), AGE),
)
class WebApp(CustomResource[WebAppSpec, WebAppStatus]):
    """A web application."""


def build_deployment(app: WebApp) -> dict[str, Any]:
    """What we want, and no more than that: everything else is the server's and others'."""
    labels = {"app.kubernetes.io/name": "webapp", "webapp.example.com/uid": app.uid}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": app.name, "labels": labels},
        "spec": {
            "replicas": app.spec.replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "app", "image": app.spec.image}]},
            },
        },
    }


def status_of(app: WebApp, deployment: Deployment) -> WebAppStatus:
    """What the Deployment tells about the WebApp."""
    seen, wanted = deployment.status, app.spec.replicas
    current = seen is not None and seen.observed_generation >= deployment.generation
    available = seen.available_replicas if seen is not None else 0
    ready = current and seen is not None and seen.updated_replicas >= wanted and available >= wanted
    condition = Condition(
        type="Ready",
        status="True" if ready else "False",
        reason="DeploymentAvailable" if ready else "RollingOut",
        message=f"{available} of {wanted} pods are available",
        observed_generation=app.generation,
    )
    return WebAppStatus(
        observed_generation=app.generation,
        replicas=seen.replicas if seen is not None else 0,
        available_replicas=available,
        ready=ready,
        conditions=(condition,),
    )


def reconcile(app: WebApp, ctx: Context[WebApp]) -> Result:
    """The Apply branch."""
    deployment = ctx.apply(build_deployment(app))  # no request unless it drifted
    ctx.set_status(status_of(app, deployment))  # no request unless it changed
    return Result(requeue_after=RESYNC)


def cleanup(app: WebApp, ctx: Context[WebApp]) -> None:
    """The Cleanup branch: what is outside the cluster would be undone here."""
    ctx.log.info("cleanup of %s", app.kind)


def main() -> int:
    """Print the CRD, or run until stopped."""
    if sys.argv[1:] == ["crd"]:
        print(WebApp.crd_yaml(), end="")
        return 0
    configure_logging()
    manager = kubeloop.Manager(kubeloop.connect(kubeloop.load_config()))
    finalizer = "webapp.example.com/cleanup"
    controller = Controller(WebApp, reconcile, cleanup=cleanup, finalizer=finalizer, field_manager=MANAGER)
    manager.add(controller.owns(Deployment))
    stop = kubeloop.StopEvent()
    with kubeloop.stop_on_signals(stop):
        return 0 if manager.run(stop) else 1


if __name__ == "__main__":
    sys.exit(main())
