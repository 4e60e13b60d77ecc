"""What can be wrong with a WebApp although its schema accepts it. Pure.

The rules are those that a Deployment or Service would break on the server, so that a user reads in the
WebApp's conditions what to change, instead of the operator failing for ever. Above all, what is applied holds
only fields that the server knows, of the types that it expects: to an apply with any other it has no better
answer than 500. What depends on its version, like the paths that a fieldRef may name, is left to the server,
which says so with a 422. An end-to-end test asks it about each rule.

Long names are no problem for Deployments: seen on Kubernetes 1.36, one of 253 characters gets its ReplicaSet
(the Deployment controller cuts the name to make room for the hash) and its pods (cut to 63). Services are
stricter. Whether their names may start with a digit depends on the version, and is left to the server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from kubeloop.model import Quantity
from webapp_operator.types import Resources, WebApp, WebAppSpec

_SERVICE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_CONFIG_KEY = re.compile(r"(?!\.\.?$|\.\.)[-._a-zA-Z0-9]{1,253}")
_ENV_NAME = re.compile(r"[ -<>-~]+")  # printable ASCII without '=', as the server has it since 1.34


MAX_NAME = 253
"""Characters of an object's name."""

# The fields of an EnvVarSource (core/v1 of Kubernetes 1.36), what each holds, and whether it must be given.
_KEY_OF_OBJECT = {"name": ("name", True), "key": ("key", True), "optional": ("boolean", False)}
_SOURCES = {
    "fieldRef": {"apiVersion": ("string", False), "fieldPath": ("string", True)},
    "resourceFieldRef": {
        "containerName": ("string", False),
        "resource": ("string", True),
        "divisor": ("quantity", False),
    },
    "configMapKeyRef": _KEY_OF_OBJECT,
    "secretKeyRef": _KEY_OF_OBJECT,
    "fileKeyRef": {
        "volumeName": ("string", True),
        "path": ("string", True),
        "key": ("string", True),
        "optional": ("boolean", False),
    },
}


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
        if variable.value_from is not None:
            if variable.value:
                yield f"{path}: {variable.name} has both value and valueFrom"
            yield from _source(f"{path}.valueFrom", variable.value_from)
    for index, source in enumerate(spec.env_from):
        if (source.config_map_ref is None) == (source.secret_ref is None):
            yield f"spec.envFrom[{index}]: exactly one of configMapRef and secretRef must be given"
        if source.prefix and not _ENV_NAME.fullmatch(source.prefix):
            yield f"spec.envFrom[{index}].prefix: {source.prefix!r} must be printable ASCII without '='"
        for field, ref in (("configMapRef", source.config_map_ref), ("secretRef", source.secret_ref)):
            if ref is not None and (problem := _name_problem(ref.name)):
                yield f"spec.envFrom[{index}].{field}.name: {problem}"


def _source(path: str, source: Mapping[str, Any]) -> Iterator[str]:
    """A null is as good as nothing, for the server too."""
    given = [name for name, fields in source.items() if fields is not None]
    strange = [name for name in source if name not in _SOURCES]
    for name in strange:
        yield f"{path}.{name}: there is no such field; known are {', '.join(_SOURCES)}"
    if len(given) != 1 and not strange:
        yield f"{path}: exactly one of {', '.join(_SOURCES)} must be given"
    for name in given:
        if name in _SOURCES:
            yield from _source_fields(f"{path}.{name}", source[name], _SOURCES[name])


def _source_fields(path: str, fields: Any, known: Mapping[str, tuple[str, bool]]) -> Iterator[str]:
    if not isinstance(fields, Mapping):
        yield f"{path}: must be an object"
        return
    for name in fields:
        if name not in known:
            yield f"{path}.{name}: there is no such field; known are {', '.join(known)}"
    for name, (what, required) in known.items():
        value = fields.get(name)
        if value is not None and (problem := _PROBLEMS[what](value)):
            yield f"{path}.{name}: {problem}"
        elif required and value in (None, ""):
            yield f"{path}.{name}: must be given"


def _string_problem(value: Any) -> str | None:
    return None if isinstance(value, str) else "must be a string"


def _name_problem(value: Any) -> str | None:
    if not value or not isinstance(value, str) or (len(value) <= MAX_NAME and _OBJECT_NAME.fullmatch(value)):
        return _string_problem(value)
    return f"{value!r} is not the name of an object"


def _key_problem(value: Any) -> str | None:
    if not value or not isinstance(value, str) or _CONFIG_KEY.fullmatch(value):
        return _string_problem(value)
    return f"{value!r} is no key: at most 253 letters, digits, '-', '_' and '.', not beginning with two dots"


def _boolean_problem(value: Any) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _quantity_problem(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return "must be a quantity"
    try:
        # The server reads it without white space around it. What is no quantity raises.
        Quantity(str(value).strip()).amount  # noqa: B018
    except ValueError as error:
        return str(error)
    return None


_PROBLEMS: dict[str, Callable[[Any], str | None]] = {
    "string": _string_problem,
    "name": _name_problem,
    "key": _key_problem,
    "boolean": _boolean_problem,
    "quantity": _quantity_problem,
}
"""What is wrong with a value that is to hold such a thing; an empty text is told apart as not given."""


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
