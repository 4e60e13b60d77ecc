"""Validation of a pod's volumes: names, exactly one source, what the usual sources require."""

from __future__ import annotations

from typing import Any

from kubeloop.sandbox.builtins import checks
from kubeloop.sandbox.schema import causes
from kubeloop.sandbox.status import Cause

Object = dict[str, Any]

_REQUIRED = {
    "secret": "secretName",
    "configMap": "name",
    "hostPath": "path",
    "persistentVolumeClaim": "claimName",
}
_FIRST = ("emptyDir", "hostPath", "gitRepo")
"""The order in which the server looks at sources; the second one found is the one it complains of."""


def validate_volumes(volumes: list[Object], field: str) -> tuple[list[Cause], set[str]]:
    """ValidateVolumes, and the names that containers may mount."""
    found: list[Cause] = []
    names: set[str] = set()
    for index, volume in enumerate(volumes):
        where = f"{field}[{index}]"
        name = volume.get("name", "")
        bad = _sources(volume, where)
        if not name:
            bad.append(causes.required(f"{where}.name"))
        else:
            bad += checks.names(name, "label", f"{where}.name")
        if name in names:
            bad.append(causes.duplicate(f"{where}.name", name))
        if not bad:
            names.add(name)
        found += bad
    return found, names


def _sources(volume: Object, field: str) -> list[Cause]:
    given = sorted(
        (name for name in volume if name != "name"),
        key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name),
    )
    if not given:
        return [causes.required(field, "must specify a volume type")]
    found: list[Cause] = []
    for extra in given[1:]:
        found.append(causes.forbidden(f"{field}.{extra}", "may not specify more than 1 volume type"))
    key = _REQUIRED.get(given[0])
    if key is not None and not volume[given[0]].get(key):
        found.append(causes.required(f"{field}.{given[0]}.{key}"))
    return found
