"""Several versions of one custom resource in one CRD."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from kubeloop.model.problems import did_you_mean


class MergeError(ValueError):
    """CRDs that cannot be versions of one another; the text says which and why."""


def merge_crds(crds: Iterable[dict[str, Any]], stored_version: str) -> dict[str, Any]:
    """One CRD with the versions of all of `crds`, of which `stored_version` is the one that is stored.

    Each CRD brings exactly one version, and all must agree on group, kind, plural and scope. The stored one
    is the base: its names, labels and annotations are taken, and its version comes first; the others follow
    in the given order, no longer stored. The inputs are not changed. Raises MergeError.
    """
    inputs = list(crds)
    if not inputs:
        raise MergeError("no CRD was given to merge")
    by_version: dict[str, dict[str, Any]] = {}
    for crd in inputs:
        versions = crd["spec"]["versions"]
        if len(versions) != 1:
            raise MergeError(f"{crd['metadata']['name']} must bring exactly one version, not {len(versions)}")
        name = versions[0]["name"]
        if name in by_version:
            raise MergeError(f"version {name} is given twice")
        by_version[name] = crd
    if stored_version not in by_version:
        guess = did_you_mean(stored_version, by_version)
        raise MergeError(
            f"the version to store, {stored_version}, is not among {', '.join(by_version)}{guess}"
        )
    merged = copy.deepcopy(by_version.pop(stored_version))
    merged["spec"]["versions"][0]["storage"] = True
    for name, crd in by_version.items():
        for path in (("group",), ("names", "kind"), ("names", "plural"), ("scope",)):
            ours, theirs = _dig(merged["spec"], path), _dig(crd["spec"], path)
            if ours != theirs:
                raise MergeError(
                    f"{'.'.join(path)} differs: {stored_version} has {ours!r}, {name} has {theirs!r}"
                )
        version = copy.deepcopy(crd["spec"]["versions"][0])
        version["storage"] = False
        merged["spec"]["versions"].append(version)
    return merged


def _dig(node: dict[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = node
    for step in path:
        value = value.get(step)
    return value
