"""Namespace, ConfigMap, Secret and ServiceAccount."""

from __future__ import annotations

import base64
import json
from datetime import datetime

from kubeloop.sandbox.builtins import checks
from kubeloop.sandbox.builtins.defaulting import Object
from kubeloop.sandbox.pipeline.metadata import STANDARD_FINALIZERS, qualified_name_faults
from kubeloop.sandbox.registry import without
from kubeloop.sandbox.schema import causes
from kubeloop.sandbox.status import Cause
from kubeloop.sandbox.strategy import BuiltinStrategy

NAME_LABEL = "kubernetes.io/metadata.name"
MAX_SECRET_SIZE = 1024 * 1024
"""Bytes of all values of a Secret or ConfigMap (core: MaxSecretSize)."""
_FROZEN = "field is immutable when `immutable` is set"


class NamespaceStrategy(BuiltinStrategy):
    """Namespaces: Active with the ``kubernetes`` finalizer in their spec, labelled with their own name."""

    name_rule = "label"

    def __init__(self) -> None:
        super().__init__(status_subresource=True)

    def empty_status(self) -> Object:
        return {"phase": "Active"}

    def defaults(self, obj: Object) -> Object:
        name = obj["metadata"].get("name")
        labels = obj["metadata"].get("labels") or {}
        if not name or labels.get(NAME_LABEL) == name:
            return obj
        return {**obj, "metadata": {**obj["metadata"], "labels": {**labels, NAME_LABEL: name}}}

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        obj = super().prepare_create(obj, now)
        spec = obj.get("spec") or {}
        finalizers = spec.get("finalizers") or []
        if "kubernetes" in finalizers:
            return obj
        return {**obj, "spec": {**spec, "finalizers": [*finalizers, "kubernetes"]}}

    def prepare_update(self, obj: Object, old: Object) -> Object:
        obj = super().prepare_update(obj, old)
        return {**obj, "spec": old["spec"]} if obj.get("spec") is not old.get("spec") else obj

    def validate_create(self, obj: Object) -> list[Cause]:
        found: list[Cause] = []
        for name in (obj.get("spec") or {}).get("finalizers") or ():
            found += [causes.invalid("spec.finalizers", name, f) for f in qualified_name_faults(name)]
            if "/" not in name and name not in STANDARD_FINALIZERS:
                text = "name is neither a standard finalizer name nor is it fully qualified"
                found.append(causes.invalid("spec.finalizers", name, text))
        return found

    def validate_status_update(self, obj: Object, old: Object) -> list[Cause]:
        del old
        phase = (obj.get("status") or {}).get("phase", "")
        if obj["metadata"].get("deletionTimestamp"):
            if phase != "Terminating":
                text = "may only be 'Terminating' if `deletionTimestamp` is not empty"
                return [causes.invalid("status.Phase", phase, text)]
        elif phase != "Active":
            text = "may only be 'Active' if `deletionTimestamp` is empty"
            return [causes.invalid("status.Phase", phase, text)]
        return []


class ConfigMapStrategy(BuiltinStrategy):
    """ConfigMaps."""

    def validate_create(self, obj: Object) -> list[Cause]:
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        found: list[Cause] = []
        for key in sorted(data):
            found += checks.config_key(key, f"data[{key}]")
            if key in binary:
                text = "duplicate of key present in binaryData"
                found.append(causes.invalid(f"data[{key}]", key, text))
        for key in sorted(binary):
            found += checks.config_key(key, f"binaryData[{key}]")
        size = sum(len(value.encode("utf-8", "replace")) for value in data.values())
        size += sum(len(value) * 3 // 4 for value in binary.values())
        if size > MAX_SECRET_SIZE:
            found.append(causes.too_long("", MAX_SECRET_SIZE))
        return found

    def validate_update(self, obj: Object, old: Object) -> list[Cause]:
        found = _frozen(obj, old, ("data", "binaryData"))
        return found + self.validate_create(obj)


_NO_PEM = "tls: failed to find any PEM data in certificate input"


class SecretStrategy(BuiltinStrategy):
    """Secrets: `stringData` is write-only and lands in `data`."""

    def defaults(self, obj: Object) -> Object:
        if obj.get("stringData"):
            extra = {key: _encoded(value) for key, value in obj["stringData"].items()}
            obj = {**without(obj, "stringData"), "data": {**(obj.get("data") or {}), **extra}}
        return obj if obj.get("type") else {**obj, "type": "Opaque"}

    def validate_create(self, obj: Object) -> list[Cause]:
        data = obj.get("data") or {}
        found: list[Cause] = []
        for key in sorted(data):
            found += checks.config_key(key, f"data[{key}]")
        if sum(len(value) * 3 // 4 for value in data.values()) > MAX_SECRET_SIZE:
            found.append(causes.too_long("data", MAX_SECRET_SIZE))
        return found + _secret_type(obj, data)

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        if obj.get("type") != "kubernetes.io/tls" or (old is not None and old.get("data") == obj.get("data")):
            return []
        # Only that there is nothing like a certificate at all is noticed here.
        certificate = base64.b64decode((obj.get("data") or {}).get("tls.crt") or "")
        return [] if b"-----BEGIN " in certificate else [_NO_PEM]

    def validate_update(self, obj: Object, old: Object) -> list[Cause]:
        found = checks.immutable(obj.get("type"), old.get("type"), "type")
        found += _frozen(obj, old, ("data",))
        return found + self.validate_create(obj)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()


def _secret_type(obj: Object, data: Object) -> list[Cause]:
    match obj.get("type"):
        case "kubernetes.io/service-account-token":
            annotation = "kubernetes.io/service-account.name"
            if not (obj["metadata"].get("annotations") or {}).get(annotation):
                return [causes.required(f"metadata.annotations[{annotation}]")]
        case "kubernetes.io/dockerconfigjson" | "kubernetes.io/dockercfg" as kind:
            key = ".dockerconfigjson" if kind.endswith("json") else ".dockercfg"
            if key not in data:
                return [causes.required(f"data[{key}]")]
            text = base64.b64decode(data[key]).decode("utf-8", "replace")
            try:
                json.loads(text)
            except ValueError:
                first = text[:1]
                why = (
                    f"invalid character '{first}' looking for beginning of value"
                    if first
                    else "unexpected end of JSON input"
                )
                return [causes.invalid(f"data[{key}]", "<secret contents redacted>", why)]
        case "kubernetes.io/basic-auth":
            if "username" not in data and "password" not in data:
                return [causes.required("data[username]"), causes.required("data[password]")]
        case "kubernetes.io/ssh-auth":
            if not data.get("ssh-privatekey"):
                return [causes.required("data[ssh-privatekey]")]
        case "kubernetes.io/tls":
            return [causes.required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]
    return []


def _frozen(obj: Object, old: Object, fields: tuple[str, ...]) -> list[Cause]:
    if not old.get("immutable"):
        return []
    found = []
    if not obj.get("immutable"):
        found.append(causes.forbidden("immutable", _FROZEN))
    for field in fields:
        if (obj.get(field) or {}) != (old.get(field) or {}):
            found.append(causes.forbidden(field, _FROZEN))
    return found


class ServiceAccountStrategy(BuiltinStrategy):
    """ServiceAccounts."""
