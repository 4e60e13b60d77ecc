"""What belongs to a WebApp: its Deployment, and its Service if it has a port. Pure functions.

They return bodies for server-side apply that hold just what the operator wants to own; everything else is
left to the server's defaults and to other owners.
"""

from __future__ import annotations

import hashlib
from typing import Any

from webapp_operator.types import WebApp, WebAppSpec

MANAGER = "webapp-operator"
"""Field manager, and value of app.kubernetes.io/managed-by."""

SELECTOR_LABEL = "webapp.example.com/name"
"""The one label that Deployments and Services select by.

A Deployment's selector can never be changed, so neither can this. It is in our own domain, where nobody else
labels pods.
"""

CONTAINER = "app"
"""Name of the container. Merges and `kubectl logs -c` go by it, so it stays."""

PORT_NAME = "http"
"""Name of the port. The Service targets it by name, so that pods with the old and the new number serve."""

_MAX_LABEL_VALUE = 63  # apimachinery, validation.LabelValueMaxLength


def label_value(name: str) -> str:
    """A legal label value that stands for an object name of up to 253 characters, a different one for each.

    Names of up to 63 characters stand for themselves. Longer ones are cut and get a hash after an underscore,
    which no object name can hold: so no short name is ever taken for a long one.
    """
    if len(name) <= _MAX_LABEL_VALUE:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{name[: _MAX_LABEL_VALUE - 17]}_{digest}"


def selector_labels(app: WebApp) -> dict[str, str]:
    """The labels that pick out the pods of this WebApp within its namespace."""
    return {SELECTOR_LABEL: label_value(app.name)}


def selector_string(app: WebApp) -> str:
    """The same as a label selector in text, for status.selector."""
    return ",".join(f"{key}={value}" for key, value in selector_labels(app).items())


def labels(app: WebApp) -> dict[str, str]:
    """The labels of everything that belongs to this WebApp."""
    return {
        "app.kubernetes.io/name": "webapp",
        "app.kubernetes.io/instance": label_value(app.name),
        "app.kubernetes.io/managed-by": MANAGER,
        **selector_labels(app),
    }


def build_deployment(app: WebApp) -> dict[str, Any]:
    """The Deployment of a WebApp, a body for server-side apply.

    With only image and replicas given it says nothing more than those. Raises ValueError for a WebApp without
    uid.
    """
    spec = app.spec
    pod: dict[str, Any] = {"containers": [_container(spec)]}
    if spec.image_pull_secrets:
        pod["imagePullSecrets"] = [secret.to_wire() for secret in spec.image_pull_secrets]
    if spec.service_account_name is not None:
        pod["serviceAccountName"] = spec.service_account_name
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(app),
        "spec": {
            "replicas": spec.replicas,
            "selector": {"matchLabels": selector_labels(app)},
            "template": {"metadata": {"labels": labels(app)}, "spec": pod},
        },
    }


def build_service(app: WebApp) -> dict[str, Any] | None:
    """The Service of a WebApp, a body for server-side apply; None if it has no port.

    Raises ValueError for a WebApp without uid.
    """
    if app.spec.port is None:
        return None
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(app),
        "spec": {
            "selector": selector_labels(app),
            "ports": [
                {"name": PORT_NAME, "port": app.spec.port, "targetPort": PORT_NAME, "protocol": "TCP"},
            ],
        },
    }


def _metadata(app: WebApp) -> dict[str, Any]:
    return {
        "name": app.name,
        "namespace": app.namespace,
        "labels": labels(app),
        "ownerReferences": [app.owner_reference()],
    }


def _container(spec: WebAppSpec) -> dict[str, Any]:
    container: dict[str, Any] = {"name": CONTAINER, "image": spec.image}
    if spec.command:
        container["command"] = list(spec.command)
    if spec.args:
        container["args"] = list(spec.args)
    if spec.env:
        container["env"] = [variable.to_wire() for variable in spec.env]
    if spec.env_from:
        container["envFrom"] = [source.to_wire() for source in spec.env_from]
    if spec.port is not None:
        container["ports"] = [{"name": PORT_NAME, "containerPort": spec.port, "protocol": "TCP"}]
    if spec.resources is not None and (resources := spec.resources.to_wire()):
        container["resources"] = resources
    if spec.readiness_path is not None and spec.port is not None:
        container["readinessProbe"] = {"httpGet": {"path": spec.readiness_path, "port": PORT_NAME}}
    return container
