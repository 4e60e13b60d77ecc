"""Deployment and ReplicaSet: defaults, validation, immutable selectors, generation."""

from __future__ import annotations

from typing import Any

from kubeloop.sandbox.builtins import checks
from kubeloop.sandbox.builtins.containers import validate_pod_template
from kubeloop.sandbox.builtins.defaulting import Object, fill, inside
from kubeloop.sandbox.builtins.podspec import default_template
from kubeloop.sandbox.builtins.warnings import pod_warnings
from kubeloop.sandbox.schema import causes
from kubeloop.sandbox.status import Cause
from kubeloop.sandbox.strategy import BuiltinStrategy

_DEPLOYMENT_SPEC = {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}
_ROLLING_UPDATE = {"maxUnavailable": "25%", "maxSurge": "25%"}


class DeploymentStrategy(BuiltinStrategy):
    """apps/v1 Deployment."""

    generation = True
    status_resets = (("spec",), ("metadata", "labels"))

    def __init__(self) -> None:
        super().__init__(status_subresource=True)

    def empty_status(self) -> Object:
        return {}

    def defaults(self, obj: Object) -> Object:
        return inside(obj, "spec", _default_deployment_spec)

    def prepare_status_update(self, obj: Object, old: Object) -> Object:
        metadata = {**obj["metadata"]}
        metadata.pop("labels", None)
        if "labels" in old["metadata"]:
            metadata["labels"] = old["metadata"]["labels"]
        return {**obj, "metadata": metadata, "spec": old["spec"]}

    def generation_moves(self, obj: Object, old: Object) -> bool:
        before, after = old["metadata"].get("annotations"), obj["metadata"].get("annotations")
        return bool(obj["spec"] != old["spec"] or (after or {}) != (before or {}))

    def validate_create(self, obj: Object) -> list[Cause]:
        return _deployment_spec(obj["spec"])

    def validate_update(self, obj: Object, old: Object) -> list[Cause]:
        selector = checks.immutable(obj["spec"].get("selector"), old["spec"].get("selector"), "spec.selector")
        return _deployment_spec(obj["spec"], old["spec"]) + selector

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        return _template_warnings(obj, old)

    def validate_status_update(self, obj: Object, old: Object) -> list[Cause]:
        del old
        return _counts(
            obj.get("status") or {},
            "status",
            (
                "observedGeneration",
                "replicas",
                "updatedReplicas",
                "readyReplicas",
                "availableReplicas",
                "unavailableReplicas",
                "collisionCount",
            ),
            total=("updatedReplicas", "readyReplicas", "availableReplicas"),
        )


class ReplicaSetStrategy(BuiltinStrategy):
    """apps/v1 ReplicaSet."""

    generation = True
    status_resets = (("spec",),)

    def __init__(self) -> None:
        super().__init__(status_subresource=True)

    def empty_status(self) -> Object:
        return {"replicas": 0}

    def defaults(self, obj: Object) -> Object:
        return inside(obj, "spec", lambda s: inside(fill(s, {"replicas": 1}), "template", default_template))

    def generation_moves(self, obj: Object, old: Object) -> bool:
        return bool(obj["spec"] != old["spec"])

    def validate_create(self, obj: Object) -> list[Cause]:
        return _replica_set_spec(obj["spec"])

    def validate_update(self, obj: Object, old: Object) -> list[Cause]:
        selector = checks.immutable(obj["spec"].get("selector"), old["spec"].get("selector"), "spec.selector")
        return _replica_set_spec(obj["spec"], old["spec"]) + selector

    def validate_status_update(self, obj: Object, old: Object) -> list[Cause]:
        del old
        return _counts(
            obj.get("status") or {},
            "status",
            (
                "replicas",
                "fullyLabeledReplicas",
                "readyReplicas",
                "availableReplicas",
                "observedGeneration",
            ),
            total=("fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
        )


def _default_deployment_spec(spec: Object) -> Object:
    spec = fill(spec, _DEPLOYMENT_SPEC)
    spec = inside(spec, "template", default_template)
    return inside(spec, "strategy", _default_rollout)


def _default_rollout(strategy: Object) -> Object:
    if "type" not in strategy:
        strategy = {**strategy, "type": "RollingUpdate"}
    if strategy["type"] != "RollingUpdate":
        return strategy
    if "rollingUpdate" not in strategy:
        return {**strategy, "rollingUpdate": dict(_ROLLING_UPDATE)}
    return inside(strategy, "rollingUpdate", lambda rolling: fill(rolling, _ROLLING_UPDATE))


def _template_warnings(obj: Object, old: Object | None) -> list[str]:
    spec = obj.get("spec") or {}
    if old is not None and spec == old.get("spec"):
        return []
    template = spec.get("template") or {}
    return pod_warnings(template.get("metadata") or {}, template.get("spec") or {}, "spec.template.")


def _selector_and_template(spec: Object, old: Object | None) -> list[Cause]:
    if old is not None and all(spec.get(key) is old.get(key) for key in ("selector", "template")):
        return []  # the very objects that were found valid before
    selector = spec.get("selector")
    found: list[Cause] = []
    if selector is None:
        found.append(causes.required("spec.selector"))
    else:
        found += checks.label_selector(selector, "spec.selector")
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            found.append(causes.invalid("spec.selector", {}, "empty selector is invalid for deployment"))
        elif not checks.is_valid_selector(selector):
            # In the order of the Go struct, not of the alphabet.
            parts = [
                f"{causes.quote(key)}:{causes.shown(selector[key])}"
                for key in ("matchLabels", "matchExpressions")
                if key in selector
            ]
            text = f"Invalid value: {{{','.join(parts)}}}: invalid label selector"
            return [*found, Cause("FieldValueInvalid", text, "spec.selector")]
    return found + _template(spec["template"], selector)


def _template(template: Object, selector: Object | None) -> list[Cause]:
    field = "spec.template"
    labels = template.get("metadata", {}).get("labels")
    found: list[Cause] = []
    if selector is None or not checks.selects(selector, labels or {}):
        text = "`selector` does not match template `labels`"
        found.append(causes.invalid(f"{field}.metadata.labels", labels, text))
    found += validate_pod_template(template, field)
    pod = template["spec"]
    if pod.get("restartPolicy") != "Always":
        found += checks.supported(pod.get("restartPolicy", ""), ["Always"], f"{field}.spec.restartPolicy")
    if pod.get("activeDeadlineSeconds") is not None:
        text = "activeDeadlineSeconds in ReplicaSet is not Supported"
        found.append(causes.forbidden(f"{field}.spec.activeDeadlineSeconds", text))
    return found


def _deployment_spec(spec: Object, old: Object | None = None) -> list[Cause]:
    found = checks.non_negative(spec.get("replicas"), "spec.replicas")
    found += _selector_and_template(spec, old)
    found += _rollout(spec.get("strategy") or {}, "spec.strategy")
    found += checks.non_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    found += checks.non_negative(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit")
    deadline = spec.get("progressDeadlineSeconds")
    if isinstance(deadline, int):
        found += checks.non_negative(deadline, "spec.progressDeadlineSeconds")
        if deadline <= (spec.get("minReadySeconds") or 0):
            text = "must be greater than minReadySeconds"
            found.append(causes.invalid("spec.progressDeadlineSeconds", deadline, text))
    return found


def _replica_set_spec(spec: Object, old: Object | None = None) -> list[Cause]:
    found = checks.non_negative(spec.get("replicas"), "spec.replicas")
    found += checks.non_negative(spec.get("minReadySeconds"), "spec.minReadySeconds")
    return found + _selector_and_template(spec, old)


def _rollout(strategy: Object, field: str) -> list[Cause]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            text = "may not be specified when strategy `type` is 'Recreate'"
            return [causes.forbidden(f"{field}.rollingUpdate", text)]
        return []
    if kind != "RollingUpdate":
        shown = {"Type": kind, "RollingUpdate": rolling}
        return [_unsupported_rollout(shown, field)]
    if rolling is None:
        return [causes.required(f"{field}.rollingUpdate", "this should be defaulted and never be nil")]
    surge, unavailable = rolling.get("maxSurge"), rolling.get("maxUnavailable")
    where = f"{field}.rollingUpdate"
    found = checks.int_or_percent(unavailable, f"{where}.maxUnavailable")
    found += checks.int_or_percent(surge, f"{where}.maxSurge")
    if checks.is_zero(unavailable) and checks.is_zero(surge):
        text = "may not be 0 when `maxSurge` is 0"
        found.append(causes.invalid(f"{where}.maxUnavailable", unavailable, text))
    return found + checks.at_most_hundred_percent(unavailable, f"{where}.maxUnavailable")


def _unsupported_rollout(shown: dict[str, Any], field: str) -> Cause:
    kind = causes.shown(shown["Type"])
    rolling = causes.shown(shown["RollingUpdate"])
    value = f'{{"Type":{kind},"RollingUpdate":{rolling}}}'
    text = f'Unsupported value: {value}: supported values: "Recreate", "RollingUpdate"'
    return Cause("FieldValueNotSupported", text, field)


def _counts(status: Object, field: str, names: tuple[str, ...], *, total: tuple[str, ...]) -> list[Cause]:
    found: list[Cause] = []
    for name in names:
        found += checks.non_negative(status.get(name), f"{field}.{name}")
    replicas = status.get("replicas") or 0
    for name in total:
        if (status.get(name) or 0) > replicas:
            text = "cannot be greater than status.replicas"
            found.append(causes.invalid(f"{field}.{name}", status.get(name) or 0, text))
    if (status.get("availableReplicas") or 0) > (status.get("readyReplicas") or 0):
        text = "cannot be greater than readyReplicas"
        found.append(causes.invalid(f"{field}.availableReplicas", status["availableReplicas"], text))
    return found
