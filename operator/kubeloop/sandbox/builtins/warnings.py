"""What the server warns of in pods that it accepts (kubernetes: pkg/api/pod/warnings.go); the usual ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubeloop.sandbox.builtins.defaulting import Object
from kubeloop.sandbox.schema.values import parse_quantity

_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_BYTES = ("memory", "ephemeral-storage")


def pod_warnings(metadata: Object, spec: Object, prefix: str) -> list[str]:
    """Warnings about a pod or a pod template; `prefix` is where it stands (``spec.template.`` or empty)."""
    found = list(_annotations(metadata.get("annotations") or {}, f"{prefix}metadata.annotations"))
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            found += _container(container, f"{prefix}spec.{kind}[{index}]")
    return found


def _annotations(annotations: dict[str, str], field: str) -> Iterator[str]:
    for key in sorted(annotations):
        if key.startswith(_APPARMOR):
            yield f'{field}[{key}]: deprecated since v1.30; use the "appArmorProfile" field instead'


def _container(container: Object, field: str) -> Iterator[str]:
    resources = container.get("resources") or {}
    for kind in ("limits", "requests"):
        for name, value in sorted((resources.get(kind) or {}).items()):
            if name in _BYTES and _fractional(value):
                where = f"{field}.resources.{kind}[{name}]"
                yield f'{where}: fractional byte value "{value}" is invalid, must be an integer'
    names: set[str] = set()
    for index, variable in enumerate(container.get("env") or ()):
        name = variable.get("name", "")
        if name in names:
            yield (
                f'{field}.env[{index}]: hides previous definition of "{name}", which may be dropped when '
                "using apply"
            )
        names.add(name)
    ports: dict[tuple[Any, Any], int] = {}
    for index, port in enumerate(container.get("ports") or ()):
        key = (port.get("containerPort"), port.get("protocol"))
        if key in ports:
            other = f"{field}.ports[{ports[key]}]"
            yield f"{field}.ports[{index}]: duplicate port definition with {other}"
        ports.setdefault(key, index)


def _fractional(value: Any) -> bool:
    number = parse_quantity(str(value))
    return number is not None and number != number.to_integral_value()
