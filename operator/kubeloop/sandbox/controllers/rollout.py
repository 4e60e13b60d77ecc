"""The arithmetic of a rollout: pure functions on Deployments and their ReplicaSets.

The rules are those of kube-controller-manager's deployment controller (util and rolling.go).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubeloop.sandbox.registry import Object

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAX = "deployment.kubernetes.io/max-replicas"
_SAFE = "bcdfghjklmnpqrstvwxz2456789"


def replicas(obj: Object) -> int:
    """The wanted number of pods of a Deployment or ReplicaSet."""
    found = (obj.get("spec") or {}).get("replicas")
    return 1 if found is None else int(found)


def count(obj: Object, field: str) -> int:
    """A number of the status; absent is 0."""
    return int((obj.get("status") or {}).get(field) or 0)


def rolling(deployment: Object) -> bool:
    """Whether it replaces pods gradually."""
    strategy = deployment["spec"].get("strategy") or {}
    return bool(strategy.get("type", "RollingUpdate") == "RollingUpdate")


def share(value: Any, total: int, *, up: bool) -> int:
    """A number, or a percentage of `total` rounded up or down."""
    if isinstance(value, str) and value.endswith("%"):
        part = total * int(value[:-1])
        return -(-part // 100) if up else part // 100
    return int(value or 0)


def bounds(deployment: Object) -> tuple[int, int]:
    """(max surge, max unavailable) in pods; never both 0."""
    if not rolling(deployment):
        return 0, 0
    settings = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    wanted = replicas(deployment)
    surge = share(settings.get("maxSurge", "25%"), wanted, up=True)
    unavailable = share(settings.get("maxUnavailable", "25%"), wanted, up=False)
    if not surge and not unavailable:
        unavailable = 1
    return surge, min(unavailable, wanted) if wanted else unavailable


def template_of(replica_set: Object) -> Object:
    """A ReplicaSet's template without the label that makes it unique."""
    template: Object = replica_set["spec"]["template"]
    metadata = template.get("metadata") or {}
    labels = {k: v for k, v in (metadata.get("labels") or {}).items() if k != HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": labels}}


def find_new(deployment: Object, sets: Sequence[Object]) -> Object | None:
    """The ReplicaSet that has the Deployment's template; the oldest, should there be several."""
    wanted = template_of({"spec": {"template": deployment["spec"]["template"]}})
    for candidate in sorted(sets, key=_age):
        if template_of(candidate) == wanted:
            return candidate
    return None


def _age(obj: Object) -> tuple[str, str]:
    return obj["metadata"]["creationTimestamp"], obj["metadata"]["name"]


def by_age(sets: Sequence[Object]) -> list[Object]:
    """Oldest first."""
    return sorted(sets, key=_age)


def revision(obj: Object) -> int:
    """The revision annotation as a number; absent is 0."""
    text = (obj["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if text.isdigit() else 0


def template_hash(text: bytes) -> str:
    """A short name for a template (FNV-1a, written in letters that spell no words)."""
    value = 0x811C9DC5
    for byte in text:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return "".join(_SAFE[ord(char) % len(_SAFE)] for char in str(value))


def total(sets: Sequence[Object]) -> int:
    """Wanted pods of all sets."""
    return sum(replicas(item) for item in sets)


def new_set_replicas(deployment: Object, sets: Sequence[Object], new: Object | None) -> int:
    """How many pods the new ReplicaSet may want now (NewRSNewReplicas); `sets` includes it."""
    wanted = replicas(deployment)
    current = replicas(new) if new is not None else 0
    if not rolling(deployment):
        return wanted
    surge, _ = bounds(deployment)
    present = total(sets)
    limit = wanted + surge
    if present >= limit:
        return current
    return current + min(limit - present, wanted - current)


def scale_downs(deployment: Object, old: Sequence[Object], new: Object) -> list[tuple[Object, int]]:
    """Old ReplicaSets and the smaller numbers they should want now (reconcileOldReplicaSets)."""
    old = [item for item in by_age(old) if replicas(item)]
    if not old:
        return []
    _, unavailable = bounds(deployment)
    least = replicas(deployment) - unavailable
    unready_new = replicas(new) - count(new, "availableReplicas")
    removable = total([*old, new]) - least - unready_new
    if removable <= 0:
        return []
    wanted = {item["metadata"]["uid"]: replicas(item) for item in old}
    # First what does not run anyway, then as many running ones as may be missing.
    for item in old:
        if removable <= 0:
            break
        uid = item["metadata"]["uid"]
        dead = min(removable, wanted[uid] - count(item, "availableReplicas"))
        if dead > 0:
            wanted[uid] -= dead
            removable -= dead
    available = sum(count(item, "availableReplicas") for item in (*old, new))
    spare = available - least
    for item in old:
        if spare <= 0:
            break
        uid = item["metadata"]["uid"]
        step = min(spare, wanted[uid])
        wanted[uid] -= step
        spare -= step
    return [
        (item, wanted[item["metadata"]["uid"]])
        for item in old
        if wanted[item["metadata"]["uid"]] != replicas(item)
    ]


def status(deployment: Object, sets: Sequence[Object], new: Object | None) -> Object:
    """The numbers of the status (calculateStatus), zeros left out as the server does; conditions are kept."""
    wanted = sum(count(item, "replicas") for item in sets)
    available = sum(count(item, "availableReplicas") for item in sets)
    numbers = {
        "replicas": wanted,
        "updatedReplicas": count(new, "replicas") if new is not None else 0,
        "readyReplicas": sum(count(item, "readyReplicas") for item in sets),
        "availableReplicas": available,
        "unavailableReplicas": max(0, total(sets) - available),
    }
    result: Object = {"observedGeneration": deployment["metadata"].get("generation", 0)}
    result.update({key: number for key, number in numbers.items() if number})
    if all("terminatingReplicas" in (item.get("status") or {}) for item in sets):
        result["terminatingReplicas"] = sum(count(item, "terminatingReplicas") for item in sets)
    collisions = (deployment.get("status") or {}).get("collisionCount")
    if collisions is not None:
        result["collisionCount"] = collisions
    conditions = (deployment.get("status") or {}).get("conditions")
    if conditions:
        result["conditions"] = conditions
    return result


def complete(deployment: Object, state: Object) -> bool:
    """Whether the rollout is over: all pods are new, as many as wanted, and available."""
    wanted = replicas(deployment)
    numbers = [int(state.get(f"{kind}eplicas", 0)) for kind in ("r", "updatedR", "availableR")]
    observed = int(state.get("observedGeneration", 0))
    return numbers == [wanted] * 3 and observed >= int(deployment["metadata"].get("generation", 0))


def progressing(deployment: Object, state: Object) -> bool:
    """Whether `state` is nearer to the goal than the Deployment's present status."""
    was = deployment.get("status") or {}

    def grown(key: str) -> bool:
        return int(state.get(key, 0)) > int(was.get(key, 0))

    old_before = was.get("replicas", 0) - was.get("updatedReplicas", 0)
    old_now = state.get("replicas", 0) - state.get("updatedReplicas", 0)
    fewer_old = bool(old_now < old_before)
    return grown("updatedReplicas") or fewer_old or grown("readyReplicas") or grown("availableReplicas")
