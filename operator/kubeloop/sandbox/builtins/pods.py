"""Pods: defaults, what admission adds, and how little of them may be changed."""

from __future__ import annotations

from datetime import datetime

from kubeloop.sandbox.builtins.containers import validate_image_names, validate_pod_spec
from kubeloop.sandbox.builtins.defaulting import Object, fill, inside
from kubeloop.sandbox.builtins.podspec import (
    default_host_ports,
    default_pod_spec,
    default_requests,
    quality_of_service,
)
from kubeloop.sandbox.builtins.warnings import pod_warnings
from kubeloop.sandbox.schema import causes
from kubeloop.sandbox.status import Cause
from kubeloop.sandbox.strategy import BuiltinStrategy

_TOLERATION_SECONDS = 300
_ADMITTED = {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
_CHANGEABLE = (
    "spec.containers[*].image",
    "spec.initContainers[*].image",
    "spec.activeDeadlineSeconds",
    "spec.tolerations",
    "spec.terminationGracePeriodSeconds",
)
_ONLY = {
    "spec.tolerations": " (only additions to existing tolerations)",
    "spec.terminationGracePeriodSeconds": " (allow it to be set to 1 if it was previously negative)",
}


class PodStrategy(BuiltinStrategy):
    """Pods, with the priority and the tolerations that admission adds."""

    generation = True
    graceful = True
    status_resets = (
        ("spec",),
        ("metadata", "deletionTimestamp"),
        ("metadata", "ownerReferences"),
    )

    def __init__(self) -> None:
        super().__init__(status_subresource=True)

    def defaults(self, obj: Object) -> Object:
        return inside(obj, "spec", _default_spec)

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        del now
        spec = _admitted(obj["spec"])
        status = {"phase": "Pending", "qosClass": quality_of_service(spec)}
        return {**obj, "spec": spec, "status": status}

    def prepare_update(self, obj: Object, old: Object) -> Object:
        obj = super().prepare_update(obj, old)
        return obj if obj["spec"] is old["spec"] else {**obj, "spec": _tolerating(obj["spec"])}

    def prepare_status_update(self, obj: Object, old: Object) -> Object:
        metadata = {k: v for k, v in obj["metadata"].items() if k != "ownerReferences"}
        if "ownerReferences" in old["metadata"]:
            metadata["ownerReferences"] = old["metadata"]["ownerReferences"]
        status = fill(obj.get("status") or {}, {"qosClass": (old.get("status") or {}).get("qosClass")})
        return {**obj, "metadata": metadata, "spec": old["spec"], "status": status}

    def generation_moves(self, obj: Object, old: Object) -> bool:
        return bool(obj["spec"] != old["spec"])

    def validate_create(self, obj: Object) -> list[Cause]:
        return validate_pod_spec(obj["spec"], "spec") + validate_image_names(obj["spec"], "spec")

    def validate_update(self, obj: Object, old: Object) -> list[Cause]:
        found = validate_pod_spec(obj["spec"], "spec")
        if _fixed_part(obj["spec"]) != _fixed_part(old["spec"]):
            listed = ",".join(f"`{name}`{_ONLY.get(name, '')}" for name in _CHANGEABLE)
            text = f"pod updates may not change fields other than {listed}"
            found.append(causes.forbidden("spec", text))
        return found

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        if old is not None and old["spec"] == obj["spec"]:
            return []
        return pod_warnings(obj["metadata"], obj["spec"], "")


def _default_spec(spec: Object) -> Object:
    spec = fill(default_pod_spec(spec), {"enableServiceLinks": True})
    return default_host_ports(default_requests(spec))


def _admitted(spec: Object) -> Object:
    account = spec.get("serviceAccountName") or "default"
    spec = _tolerating(spec)
    return {**_ADMITTED, **spec, "serviceAccountName": account, "serviceAccount": account}


def _tolerating(spec: Object) -> Object:
    """With the default tolerations of nodes that are lost (admission plugin DefaultTolerationSeconds)."""
    tolerations = list(spec.get("tolerations") or ())
    for condition in ("not-ready", "unreachable"):
        key = f"node.kubernetes.io/{condition}"
        if not any(
            t.get("key") in (key, None) and t.get("effect") in ("NoExecute", None) for t in tolerations
        ):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _TOLERATION_SECONDS,
                }
            )
    return {**spec, "tolerations": tolerations}


def _fixed_part(spec: Object) -> Object:
    fixed = {
        key: value
        for key, value in spec.items()
        if key not in ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds")
    }
    for key in ("containers", "initContainers"):
        if key in fixed:
            fixed[key] = [{k: v for k, v in c.items() if k != "image"} for c in fixed[key]]
    return fixed
