"""The rules of `metadata` that all kinds share: shape, names, labels, owners, finalizers, immutability.

Texts are those of apimachinery's validation; the order of the causes is the order of its checks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from kubeloop.sandbox.registry import Object
from kubeloop.sandbox.status import Cause

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    f"'{_SUBDOMAIN}')"
)
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    f"'{_LABEL}')"
)
_LABEL_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
    f"validation is '{_LABEL_1035}')"
)
_QUALIFIED_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    f"'{_QUALIFIED}')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    "for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)

_subdomain = re.compile(_SUBDOMAIN)
_label = re.compile(_LABEL)
_label_1035 = re.compile(_LABEL_1035)
_qualified = re.compile(_QUALIFIED)

MAX_ANNOTATIONS = 256 * 1024
"""Total size of all annotations, in bytes (apimachinery's TotalAnnotationSizeLimitB)."""
STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def invalid_value(value: object, why: str, field: str) -> Cause:
    """A cause of reason FieldValueInvalid; strings are quoted as Go's %q does for plain text."""
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return Cause("FieldValueInvalid", f"Invalid value: {shown}: {why}", field)


def subdomain_faults(name: str) -> list[str]:
    """Why `name` is no RFC 1123 subdomain."""
    faults = []
    if len(name) > 253:
        faults.append("must be no more than 253 characters")
    if not _subdomain.fullmatch(name):
        faults.append(_SUBDOMAIN_TEXT)
    return faults


def name_faults(name: str, rule: str) -> list[str]:
    """Why `name` breaks the rule of its kind (see `Strategy.name_rule`)."""
    if rule == "path":
        if name in (".", ".."):
            return [f"may not be '{name}'"]
        return [f"may not contain '{char}'" for char in "/%" if char in name]
    if rule == "subdomain":
        return subdomain_faults(name)
    if rule == "label" and "." in name and subdomain_faults(name) == []:
        return ["must not contain dots"]
    pattern, text = (_label_1035, _LABEL_1035_TEXT) if rule == "label1035" else (_label, _LABEL_TEXT)
    faults = []
    if len(name) > 63:
        faults.append("must be no more than 63 characters")
    if not pattern.fullmatch(name):
        faults.append(text)
    return faults


def qualified_name_faults(key: str) -> list[str]:
    """Why `key` is no qualified name (label and annotation keys, finalizers)."""
    prefix, slash, name = key.rpartition("/")
    faults: list[str] = []
    if slash:
        if not prefix:
            faults.append("prefix part must be non-empty")
        elif "/" in prefix:
            return [
                "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start "
                "and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex "
                f"used for validation is '{_QUALIFIED}') with an optional DNS subdomain prefix and '/' (e.g. "
                "'example.com/MyName')"
            ]
        else:
            faults.extend(f"prefix part {fault}" for fault in subdomain_faults(prefix))
    if not name:
        faults.append("name part must be non-empty")
    elif len(name) > 63:
        faults.append("name part must be no more than 63 bytes")
    if not _qualified.fullmatch(name):
        faults.append(_QUALIFIED_TEXT)
    return faults


def label_value_faults(value: str) -> list[str]:
    """Why `value` is no label value."""
    faults = []
    if len(value) > 63:
        faults.append("must be no more than 63 bytes")
    if value and not _qualified.fullmatch(value):
        faults.append(_VALUE_TEXT)
    return faults


def validate_labels(labels: Mapping[str, str], field: str) -> list[Cause]:
    """Keys and values of a label map."""
    causes: list[Cause] = []
    for key, value in sorted(labels.items()):
        causes.extend(invalid_value(key, fault, field) for fault in qualified_name_faults(key))
        causes.extend(invalid_value(value, fault, field) for fault in label_value_faults(value))
    return causes


def _labels_annotations_owners(metadata: Mapping[str, Any]) -> list[Cause]:
    causes: list[Cause] = validate_labels(metadata.get("labels") or {}, "metadata.labels")
    size = 0
    for key, value in sorted((metadata.get("annotations") or {}).items()):
        faults = qualified_name_faults(key.lower())
        causes.extend(invalid_value(key, fault, "metadata.annotations") for fault in faults)
        size += len(key.encode()) + len(value.encode("utf-8", "replace"))
    if size > MAX_ANNOTATIONS:
        text = f"Too long: may not be more than {MAX_ANNOTATIONS} bytes"
        causes.append(Cause("FieldValueTooLong", text, "metadata.annotations"))
    return causes + _validate_owners(metadata.get("ownerReferences") or ())


def _validate_owners(owners: Sequence[Mapping[str, Any]]) -> list[Cause]:
    causes: list[Cause] = []
    field = "metadata.ownerReferences"
    controller = None
    for owner in owners:
        version = owner.get("apiVersion", "")
        if not version.rpartition("/")[2] or version.count("/") > 1:
            causes.append(invalid_value(version, "version must not be empty", f"{field}.apiVersion"))
        for name in ("kind", "name", "uid"):
            if not owner.get(name):
                causes.append(invalid_value("", "must not be empty", f"{field}.{name}"))
        if (version, owner.get("kind")) == ("v1", "Event"):
            shown = json.dumps(dict(owner), separators=(",", ":"))
            text = f"Invalid value: {shown}: /v1, Kind=Event is disallowed from being an owner"
            causes.append(Cause("FieldValueInvalid", text, field))
        if owner.get("controller"):
            if controller is not None:
                text = (
                    "Only one reference can have Controller set to true. Found "
                    f'"true" in references for {controller.get("kind")}/{controller.get("name")} and '
                    f"{owner.get('kind')}/{owner.get('name')}"
                )
                causes.append(
                    Cause("FieldValueInvalid", f"Invalid value: {_go_owners(owners)}: {text}", field)
                )
            controller = owner
    return causes


def _go_owners(owners: Sequence[Mapping[str, Any]]) -> str:
    """The references as JSON in the order of Go's struct fields."""
    fields = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
    listed = [{name: owner[name] for name in fields if name in owner} for owner in owners]
    return json.dumps(listed, separators=(",", ":"))


def validate_create(metadata: Mapping[str, Any], rule: str, *, namespaced: bool) -> list[Cause]:
    """ValidateObjectMeta: everything about an object that is to be created."""
    causes: list[Cause] = []
    name = metadata.get("name") or ""
    prefix = metadata.get("generateName") or ""
    if prefix:
        checked = prefix[:-1] + "a" if prefix.endswith(("-", ".")) else prefix
        causes.extend(
            invalid_value(prefix, fault, "metadata.generateName") for fault in name_faults(checked, rule)
        )
    if not name:
        text = "Required value: name or generateName is required"
        causes.append(Cause("FieldValueRequired", text, "metadata.name"))
    else:
        causes.extend(invalid_value(name, fault, "metadata.name") for fault in name_faults(name, rule))
    namespace = metadata.get("namespace") or ""
    if namespaced:
        if not namespace:
            causes.append(Cause("FieldValueRequired", "Required value", "metadata.namespace"))
        else:
            faults = name_faults(namespace, "label")
            causes.extend(invalid_value(namespace, fault, "metadata.namespace") for fault in faults)
    elif namespace:
        text = "Forbidden: not allowed on this type"
        causes.append(Cause("FieldValueForbidden", text, "metadata.namespace"))
    generation = metadata.get("generation") or 0
    if generation < 0:
        text = "must be greater than or equal to 0"
        causes.append(invalid_value(generation, text, "metadata.generation"))
    causes.extend(_labels_annotations_owners(metadata))
    return causes + _validate_finalizers(metadata.get("finalizers") or ())


def _validate_finalizers(finalizers: Sequence[str]) -> list[Cause]:
    causes: list[Cause] = []
    field = "metadata.finalizers"
    for name in finalizers:
        causes.extend(invalid_value(name, fault, field) for fault in qualified_name_faults(name))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        shown = ",".join(f'"{name}"' for name in finalizers)
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        causes.append(Cause("FieldValueInvalid", f"Invalid value: [{shown}]: {text}", field))
    return causes


def builtin_finalizers(metadata: Mapping[str, Any]) -> list[Cause]:
    """Finalizers of built-in kinds must be standard ones or qualified; elsewhere the server only warns."""
    text = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid_value(name, text, f"metadata.finalizers[{index}]")
        for index, name in enumerate(metadata.get("finalizers") or ())
        if "/" not in name and name not in STANDARD_FINALIZERS
    ]


def finalizer_warnings(obj: Object, old: Object | None) -> list[str]:
    """What the server warns of: finalizers that are new and not domain-qualified."""
    before = (old or {"metadata": {}})["metadata"].get("finalizers") or ()
    return [
        f'metadata.finalizers: "{name}": prefer a domain-qualified finalizer name to avoid accidental '
        "conflicts with other finalizer writers"
        for name in obj["metadata"].get("finalizers") or ()
        if "/" not in name and name not in STANDARD_FINALIZERS and name not in before
    ]


def without_repeated_owners(obj: Object) -> tuple[Object, list[str]]:
    """`obj` with every owner reference once, and what the server warns of then."""
    owners = obj["metadata"].get("ownerReferences") or []
    if len(owners) < 2:
        return obj, []
    kept: list[Any] = []
    for owner in owners:
        if owner not in kept:
            kept.append(owner)
    if len(kept) == len(owners):
        return obj, []
    twice = [owner.get("uid", "") for index, owner in enumerate(owners) if owner in owners[:index]]
    text = (
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, "
        "and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
        f"{', '.join(twice)}"
    )
    return {**obj, "metadata": {**obj["metadata"], "ownerReferences": kept}}, [text]


def validate_update(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[Cause]:
    """ValidateObjectMetaUpdate: what an update may not change, and the shape of what it may."""
    causes: list[Cause] = []
    if old.get("deletionTimestamp"):
        known = old.get("finalizers") or ()
        added = sorted(name for name in new.get("finalizers") or () if name not in known)
        if added:
            listed = ", ".join(f'"{name}"' for name in added)
            text = (
                "Forbidden: no new finalizers can be added if the object is being deleted, found new "
                f"finalizers []string{{{listed}}}"
            )
            causes.append(Cause("FieldValueForbidden", text, "metadata.finalizers"))
    for field in ("name", "namespace", "uid", "creationTimestamp"):
        if new.get(field) != old.get(field):
            causes.append(invalid_value(new.get(field) or "", "field is immutable", f"metadata.{field}"))
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        # Leaving them out is no change: the pipeline has put them back.
        if new.get(field) is not None and new.get(field) != old.get(field):
            causes.append(invalid_value(new[field], "field is immutable", f"metadata.{field}"))
    return causes + _labels_annotations_owners(new)


_STRINGS = ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "creationTimestamp")
_KNOWN = {
    *_STRINGS,
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
}
_OWNER_KNOWN = {"apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"}


class MetadataShapeError(ValueError):
    """`metadata` cannot be read as an ObjectMeta; the text is Go's."""


def normalise(raw: Any, *, typed: bool = False) -> tuple[dict[str, Any], list[str]]:
    """`metadata` as ObjectMeta holds it (null and empty dropped), and the paths of unknown fields.

    Raises `MetadataShapeError`.
    """
    if raw is None:
        return {}, []
    if not isinstance(raw, dict):
        raise MetadataShapeError(
            f"json: cannot unmarshal {_go_kind(raw)} into Go value of type v1.ObjectMeta"
        )
    result: dict[str, Any] = {}
    unknown: list[str] = []
    for key, value in raw.items():
        if key not in _KNOWN:
            unknown.append(f"metadata.{key}")
            continue
        if value is None or value in ("", {}, []):
            continue
        _check_shape(key, value, "ObjectMeta.metadata" if typed else "ObjectMeta")
        if key in ("labels", "annotations") and None in value.values():
            value = {name: "" if text is None else text for name, text in value.items()}
        result[key] = value
        if key == "ownerReferences":
            for index, owner in enumerate(value):
                extra = sorted(set(owner) - _OWNER_KNOWN)
                unknown.extend(f"metadata.ownerReferences[{index}].{name}" for name in extra)
            result[key] = [{k: v for k, v in owner.items() if k in _OWNER_KNOWN} for owner in value]
        elif key == "finalizers":
            result[key] = list(dict.fromkeys(value))
    result.pop("selfLink", None)
    return result, sorted(unknown)


def _check_shape(key: str, value: Any, owner: str) -> None:
    if key in _STRINGS or key == "deletionTimestamp":
        if not isinstance(value, str):
            raise _mismatch(value, f"{owner}.{key}", "string")
    elif key in ("labels", "annotations"):
        if not isinstance(value, dict):
            raise _mismatch(value, f"{owner}.{key}", "map[string]string")
        for text in value.values():
            if text is not None and not isinstance(text, str):
                raise _mismatch(text, f"{owner}.{key}", "string")
    elif key in ("generation", "deletionGracePeriodSeconds"):
        if not isinstance(value, int) or isinstance(value, bool):
            raise _mismatch(value, f"{owner}.{key}", "int64")
    elif not isinstance(value, list):
        go = {"ownerReferences": "[]v1.OwnerReference", "finalizers": "[]string"}
        raise _mismatch(value, f"{owner}.{key}", go.get(key, "[]v1.ManagedFieldsEntry"))
    elif key == "finalizers":
        for item in value:
            if not isinstance(item, str):
                raise _mismatch(item, f"{owner}.finalizers", "string")
    else:
        for item in value:
            if not isinstance(item, dict):
                raise _mismatch(item, f"{owner}.{key}", "v1.OwnerReference")


def _go_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    kinds: dict[type, str] = {int: "number", float: "number", str: "string", list: "array"}
    return kinds.get(type(value), "object")


def _mismatch(value: Any, field: str, go: str) -> MetadataShapeError:
    text = f"json: cannot unmarshal {_go_kind(value)} into Go struct field {field} of type {go}"
    return MetadataShapeError(text)
