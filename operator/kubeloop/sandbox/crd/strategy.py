"""The CRD kind itself: defaults, the checks of its spec, what an update may change."""

from __future__ import annotations

from datetime import datetime

from kubeloop.sandbox.crd import rules
from kubeloop.sandbox.crd.names import established
from kubeloop.sandbox.registry import Object
from kubeloop.sandbox.schema import causes
from kubeloop.sandbox.status import Cause, not_implemented_here
from kubeloop.sandbox.strategy import BuiltinStrategy


def default_crd(crd: Object) -> Object:
    """Names derived from the kind, and no conversion."""
    spec = crd.get("spec") or {}
    names = dict(spec.get("names") or {})
    kind = names.get("kind", "")
    if not names.get("singular") and kind:
        names["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        names["listKind"] = kind + "List"
    changed: Object = {}
    if names != (spec.get("names") or {}):
        changed["names"] = names
    conversion = spec.get("conversion")
    if conversion is None or not conversion.get("strategy"):
        changed["conversion"] = {**(conversion or {}), "strategy": "None"}
    return {**crd, "spec": {**spec, **changed}} if changed else crd


def accept(crd: Object) -> list[Cause]:
    """What is wrong with a defaulted CRD. ApiFailure 501: it needs the real server."""
    found = rules.validate_name(crd)
    found += rules.validate_spec(crd["spec"])
    found += rules.validate_stored_versions(crd)
    found += rules.validate_approval(crd)
    if not found and (crd["spec"].get("conversion") or {}).get("strategy") == "Webhook":
        raise not_implemented_here("conversion webhooks")
    return found


class CRDStrategy(BuiltinStrategy):
    """apiextensions.k8s.io/v1 CustomResourceDefinition."""

    allow_unconditional_update = False
    generation = True

    def __init__(self) -> None:
        super().__init__(status_subresource=True)

    def defaults(self, obj: Object) -> Object:
        return default_crd(obj)

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        del now
        versions = obj["spec"].get("versions") or ()
        stored = [v["name"] for v in versions if v.get("storage")][:1] or None
        status = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": stored,
        }
        return {**obj, "status": status}

    def prepare_update(self, obj: Object, old: Object) -> Object:
        return self._with_storage_version(super().prepare_update(obj, old))

    def prepare_status_update(self, obj: Object, old: Object) -> Object:
        return self._with_storage_version(super().prepare_status_update(obj, old))

    @staticmethod
    def _with_storage_version(obj: Object) -> Object:
        storage = next((v["name"] for v in obj["spec"].get("versions") or () if v.get("storage")), "")
        stored = (obj.get("status") or {}).get("storedVersions") or []
        if storage and storage not in stored:
            status = obj.get("status") or {}
            return {**obj, "status": {**status, "storedVersions": [*stored, storage]}}
        return obj

    def generation_moves(self, obj: Object, old: Object) -> bool:
        return bool(obj["spec"] != old["spec"])

    def validate_create(self, obj: Object) -> list[Cause]:
        return accept(obj)

    def validate_update(self, obj: Object, old: Object) -> list[Cause]:
        found = [cause for cause in accept(obj) if cause.field != "metadata.name"]
        new_spec, old_spec = obj["spec"], old["spec"]
        immutable: list[Cause] = []
        if established(old):
            immutable += _same(new_spec, old_spec, "scope")
            immutable += _same(new_spec["names"], old_spec["names"], "kind", "spec.names.kind")
        immutable += _same(new_spec, old_spec, "group")
        immutable += _same(new_spec["names"], old_spec["names"], "plural", "spec.names.plural")
        return found + immutable

    def validate_status_update(self, obj: Object, old: Object) -> list[Cause]:
        del old
        return rules.validate_stored_versions(obj)


def _same(new: Object, old: Object, key: str, field: str = "") -> list[Cause]:
    if new.get(key) == old.get(key):
        return []
    return [causes.invalid(field or f"spec.{key}", new.get(key), "field is immutable")]
