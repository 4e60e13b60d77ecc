"""RBAC kinds and Leases."""

from __future__ import annotations

from datetime import datetime

from kubeloop.sandbox.builtins import checks
from kubeloop.sandbox.builtins.defaulting import Object, each, fill, inside
from kubeloop.sandbox.schema import causes
from kubeloop.sandbox.status import Cause
from kubeloop.sandbox.strategy import BuiltinStrategy

_GROUP = "rbac.authorization.k8s.io"


class RoleStrategy(BuiltinStrategy):
    """Role and ClusterRole."""

    name_rule = "path"
    allow_create_on_update = True

    def __init__(self, *, namespaced: bool) -> None:
        super().__init__()
        self._namespaced = namespaced

    def validate_create(self, obj: Object) -> list[Cause]:
        found: list[Cause] = []
        for index, rule in enumerate(obj.get("rules") or ()):
            found += _rule(rule, self._namespaced, f"rules[{index}]")
        aggregation = obj.get("aggregationRule")
        if aggregation is not None and not aggregation.get("clusterRoleSelectors"):
            text = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            return [causes.required("aggregationRule.clusterRoleSelectors", text)]
        return found

    def validate_update(self, obj: Object, old: Object) -> list[Cause]:
        del old
        return self.validate_create(obj)


def _rule(rule: Object, namespaced: bool, field: str) -> list[Cause]:
    found: list[Cause] = []
    if not rule.get("verbs"):
        found.append(causes.required(f"{field}.verbs", "verbs must contain at least one value"))
    if rule.get("nonResourceURLs"):
        if namespaced:
            text = "namespaced rules cannot apply to non-resource URLs"
            found.append(causes.invalid(f"{field}.nonResourceURLs", rule["nonResourceURLs"], text))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            text = "rules cannot apply to both regular resources and non-resource URLs"
            found.append(causes.invalid(f"{field}.nonResourceURLs", rule["nonResourceURLs"], text))
        return found
    if not rule.get("apiGroups"):
        text = "resource rules must supply at least one api group"
        found.append(causes.required(f"{field}.apiGroups", text))
    if not rule.get("resources"):
        text = "resource rules must supply at least one resource"
        found.append(causes.required(f"{field}.resources", text))
    return found


class BindingStrategy(BuiltinStrategy):
    """RoleBinding and ClusterRoleBinding."""

    name_rule = "path"
    allow_create_on_update = True

    def __init__(self, *, namespaced: bool) -> None:
        super().__init__()
        self._kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)

    def defaults(self, obj: Object) -> Object:
        obj = inside(obj, "roleRef", _default_role_ref)
        return each(obj, "subjects", _default_subject)

    def validate_create(self, obj: Object) -> list[Cause]:
        ref = obj.get("roleRef") or {}
        found: list[Cause] = []
        if ref.get("apiGroup") != _GROUP:
            found.append(causes.not_supported("roleRef.apiGroup", ref.get("apiGroup", ""), [_GROUP]))
        found += checks.supported(ref.get("kind", ""), self._kinds, "roleRef.kind")
        if not ref.get("name"):
            found.append(causes.required("roleRef.name"))
        for index, subject in enumerate(obj.get("subjects") or ()):
            found += _subject(subject, f"subjects[{index}]")
        return found

    def validate_update(self, obj: Object, old: Object) -> list[Cause]:
        found = self.validate_create(obj)
        if obj.get("roleRef") != old.get("roleRef"):
            shown = obj.get("roleRef") or {}
            ordered = {key: shown.get(key, "") for key in ("apiGroup", "kind", "name")}
            text = ",".join(f"{causes.quote(k)}:{causes.quote(v)}" for k, v in _internal(ordered).items())
            message = f"Invalid value: {{{text}}}: cannot change roleRef"
            found.append(Cause("FieldValueInvalid", message, "roleRef"))
        return found


def _internal(ref: Object) -> dict[str, str]:
    """The server shows its internal type here, whose fields are capitalised."""
    return {"APIGroup": ref["apiGroup"], "Kind": ref["kind"], "Name": ref["name"]}


def _default_role_ref(ref: Object) -> Object:
    return ref if ref.get("apiGroup") else {**ref, "apiGroup": _GROUP}


def _default_subject(subject: Object) -> Object:
    if subject.get("kind") in ("User", "Group"):
        return fill(subject, {"apiGroup": _GROUP})
    return subject


def _subject(subject: Object, field: str) -> list[Cause]:
    found: list[Cause] = []
    if not subject.get("name"):
        found.append(causes.required(f"{field}.name"))
    kind, group = subject.get("kind", ""), subject.get("apiGroup", "")
    if kind == "ServiceAccount":
        if subject.get("name"):
            found += checks.names(subject["name"], "subdomain", f"{field}.name")
        if group:
            found.append(causes.not_supported(f"{field}.apiGroup", group, [""]))
    elif kind in ("User", "Group"):
        if group != _GROUP:
            found.append(causes.not_supported(f"{field}.apiGroup", group, [_GROUP]))
    else:
        found += checks.supported(kind, ("ServiceAccount", "User", "Group"), f"{field}.kind")
    return found


class LeaseStrategy(BuiltinStrategy):
    """coordination.k8s.io Lease."""

    allow_create_on_update = True
    allow_unconditional_update = False

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        del now
        return _without_coordination(obj)

    def prepare_update(self, obj: Object, old: Object) -> Object:
        del old
        return _without_coordination(obj)

    def validate_create(self, obj: Object) -> list[Cause]:
        spec = obj.get("spec") or {}
        found: list[Cause] = []
        duration = spec.get("leaseDurationSeconds")
        if duration is not None and duration <= 0:
            found.append(causes.invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
        return found + checks.non_negative(spec.get("leaseTransitions"), "spec.leaseTransitions")

    def validate_update(self, obj: Object, old: Object) -> list[Cause]:
        del old
        return self.validate_create(obj)


def _without_coordination(obj: Object) -> Object:
    """Fields of coordinated leader election are dropped while that feature is off, as it is by default."""
    spec = obj.get("spec") or {}
    if "strategy" not in spec and "preferredHolder" not in spec:
        return obj
    kept = {key: value for key, value in spec.items() if key not in ("strategy", "preferredHolder")}
    return {**obj, "spec": kept}
