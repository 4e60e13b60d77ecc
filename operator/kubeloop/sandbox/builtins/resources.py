"""Validation of resource requirements."""

from __future__ import annotations

from typing import Any

from kubeloop.sandbox.pipeline.metadata import qualified_name_faults
from kubeloop.sandbox.schema import causes
from kubeloop.sandbox.schema.values import parse_quantity
from kubeloop.sandbox.status import Cause

Object = dict[str, Any]

_STANDARD = frozenset(("cpu", "memory", "ephemeral-storage"))


def _standard(name: str) -> bool:
    return name in _STANDARD or name.startswith("hugepages-")


def validate_resources(resources: Object, field: str) -> list[Cause]:
    """ValidateContainerResourceRequirements."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    found: list[Cause] = []
    for name in sorted(limits):
        found += _name(name, f"{field}.limits[{name}]")
        found += _amount(limits[name], f"{field}.limits[{name}]")
    for name in sorted(requests):
        limit = limits.get(name)
        asked = parse_quantity(str(requests[name]))
        most = parse_quantity(str(limit)) if limit is not None else None
        where = f"{field}.requests[{name}]"
        found += _name(name, where) + _amount(requests[name], where)
        if asked is None or most is None:
            continue
        if _standard(name):
            if asked > most:
                text = f"must be less than or equal to {name} limit of {limit}"
                found.append(causes.invalid(f"{field}.requests", str(requests[name]), text))
        elif asked != most:
            text = f"must be equal to {name} limit of {limit}"
            found.append(causes.invalid(f"{field}.requests", str(requests[name]), text))
    return found


def _amount(value: Any, field: str) -> list[Cause]:
    number = parse_quantity(str(value))
    if number is not None and number < 0:
        return [causes.invalid(field, str(value), "must be greater than or equal to 0")]
    return []


def _name(name: str, field: str) -> list[Cause]:
    found = [causes.invalid(field, name, fault) for fault in qualified_name_faults(name)]
    if found or _standard(name):
        return found
    if "/" not in name:
        return [
            causes.invalid(field, name, "must be a standard resource type or fully qualified"),
            causes.invalid(field, name, "must be a standard resource for containers"),
        ]
    return []
