"""Adding and removing one finalizer without touching anybody else's.

Both are JSON patches whose ``test`` operations make them a compare-and-swap: the object must still be
the same (uid) and the list must be as we saw it, because an index could by now be another's entry and
Kubernetes does not deduplicate the list (kube-rs#964). Guarantee: once Apply has run, Cleanup must
succeed before the object can go; Cleanup must tolerate that Apply never ran.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any


class Phase(enum.Enum):
    """Where an object stands with respect to our finalizer."""

    ADD = "add"
    APPLY = "apply"
    CLEANUP = "cleanup"
    GONE = "gone"
    """Being deleted and not, or no longer, ours to clean up: nothing may be done for it."""


def phase_of(finalizers: Sequence[str], finalizer: str | None, *, deleting: bool) -> Phase:
    """What is to be done for an object; without a `finalizer` there is only Apply and nothing."""
    if deleting:
        # Never add a finalizer here: the server refuses it for ever (cluster-api#8949).
        return Phase.CLEANUP if finalizer is not None and finalizer in finalizers else Phase.GONE
    return Phase.APPLY if finalizer is None or finalizer in finalizers else Phase.ADD


def add_patch(uid: str, finalizers: Sequence[str], finalizer: str) -> list[dict[str, Any]]:
    """JSON patch that adds `finalizer` to an object seen with these `finalizers`."""
    same_object = {"op": "test", "path": "/metadata/uid", "value": uid}
    if not finalizers:
        return [
            same_object,
            {"op": "test", "path": "/metadata/finalizers", "value": None},
            {"op": "add", "path": "/metadata/finalizers", "value": [finalizer]},
        ]
    return [
        same_object,
        {"op": "test", "path": "/metadata/finalizers", "value": list(finalizers)},
        {"op": "add", "path": "/metadata/finalizers/-", "value": finalizer},
    ]


def remove_patch(uid: str, finalizers: Sequence[str], finalizer: str) -> list[dict[str, Any]]:
    """JSON patch that removes `finalizer` from an object seen with these `finalizers`."""
    path = f"/metadata/finalizers/{list(finalizers).index(finalizer)}"
    return [
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "test", "path": path, "value": finalizer},
        {"op": "remove", "path": path},
    ]
