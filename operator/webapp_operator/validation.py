"""What can be wrong with a WebApp although its schema accepts it. Pure.

The rules are those that a Deployment or Service would break on the server, so that a user reads in the
WebApp's conditions what to change, instead of the operator failing for ever.

Long names are no problem for Deployments: seen on Kubernetes 1.36, one of 253 characters gets its ReplicaSet
(the Deployment controller cuts the name to make room for the hash) and its pods (cut to 63). Services are
stricter. Whether their names may start with a digit depends on the version, and is left to the server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from kubeloop.model import Quantity
from webapp_operator.types import Resources, WebApp, WebAppSpec

_SERVICE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_ENV_NAME = re.compile(r"[ -<>-~]+")  # printable ASCII without '=', as the server has it since 1.34


def validate_spec(app: WebApp) -> list[str]:
    """What is wrong, in words for the user, each with the field it is about; empty if nothing is."""
    return [*_names(app), *_port(app.spec), *_environment(app.spec), *_resources(app.spec.resources)]


def _names(app: WebApp) -> Iterator[str]:
    if app.spec.port is not None and not _SERVICE_NAME.fullmatch(app.name):
        yield (
            "spec.port: a Service has the WebApp's name, and that of this one is no legal name for a Service:"
            " at most 63 lower-case letters, digits and '-', no dots"
        )
    account = app.spec.service_account_name
    if account is not None and not _OBJECT_NAME.fullmatch(account):
        yield f"spec.serviceAccountName: {account!r} is not the name of an object"
    for index, secret in enumerate(app.spec.image_pull_secrets):
        if not _OBJECT_NAME.fullmatch(secret.name):
            yield f"spec.imagePullSecrets[{index}].name: {secret.name!r} is not the name of an object"


def _port(spec: WebAppSpec) -> Iterator[str]:
    if spec.readiness_path is not None and spec.port is None:
        yield "spec.readinessPath: requires spec.port, the port to ask"


def _environment(spec: WebAppSpec) -> Iterator[str]:
    seen: set[str] = set()
    for index, variable in enumerate(spec.env):
        path = f"spec.env[{index}]"
        if variable.name in seen:
            yield f"{path}.name: {variable.name} is given twice"
        seen.add(variable.name)
        if not _ENV_NAME.fullmatch(variable.name):
            yield f"{path}.name: {variable.name!r} must be printable ASCII without '='"
        if variable.value and variable.value_from is not None:
            yield f"{path}: {variable.name} has both value and valueFrom"
    for index, source in enumerate(spec.env_from):
        if (source.config_map_ref is None) == (source.secret_ref is None):
            yield f"spec.envFrom[{index}]: exactly one of configMapRef and secretRef must be given"


def _resources(resources: Resources | None) -> Iterator[str]:
    if resources is None:
        return
    amounts: dict[tuple[str, str], Decimal] = {}
    for what, quantities in (("requests", resources.requests), ("limits", resources.limits)):
        for name, quantity in quantities.items():
            path = f"spec.resources.{what}.{name}"
            try:
                amounts[what, name] = Quantity(quantity).amount
            except ValueError as error:
                yield f"{path}: {error}"
                continue
            if amounts[what, name] < 0:
                yield f"{path}: {quantity} is negative"
    for name in resources.requests:
        request, limit = amounts.get(("requests", name)), amounts.get(("limits", name))
        if request is not None and limit is not None and limit < request:
            yield (
                f"spec.resources: the {name} request of {resources.requests[name]} exceeds its limit of"
                f" {resources.limits[name]}"
            )
