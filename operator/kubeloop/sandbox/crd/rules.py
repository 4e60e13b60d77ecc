"""Checks of a CRD's spec: names, versions, subresources, columns, conversion.

A CRD whose versions all look alike is seen by the server in an older shape, with one schema for all; that is
why messages of a single-version CRD speak of ``spec.validation`` and ``spec.subresources``.
"""

from __future__ import annotations

import json

from kubeloop.sandbox.crd.schemarules import validate_schema
from kubeloop.sandbox.pipeline.metadata import name_faults, subdomain_faults
from kubeloop.sandbox.registry import Object
from kubeloop.sandbox.schema import causes
from kubeloop.sandbox.schema.equality import same
from kubeloop.sandbox.status import Cause

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_APPROVAL = "api-approved.kubernetes.io"
_KINDS = ("kind", "listKind")


def validate_name(crd: Object) -> list[Cause]:
    """The object's name is made of its plural and group."""
    spec, name = crd["spec"], crd["metadata"].get("name", "")
    wanted = f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"
    if not name or name == wanted:
        return []
    return [causes.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')]


def validate_spec(spec: Object) -> list[Cause]:
    """validateCustomResourceDefinitionSpec."""
    found = _group(spec.get("group", ""))
    scope = spec.get("scope", "")
    if not scope:
        found.append(causes.required("spec.scope"))
    elif scope not in ("Cluster", "Namespaced"):
        found.append(causes.not_supported("spec.scope", scope, ("Cluster", "Namespaced")))
    versions = spec.get("versions") or []
    for index, version in enumerate(versions):
        if (version.get("schema") or {}).get("openAPIV3Schema") is None:
            found.append(causes.required(f"spec.versions[{index}].schema.openAPIV3Schema"))
    found += _versions(versions, given=spec.get("versions") is not None)
    found += _names(spec.get("names") or {})
    found += _shared(versions)
    if spec.get("preserveUnknownFields"):
        text = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema "
            "instead"
        )
        found.append(causes.invalid("spec.preserveUnknownFields", True, text))
    found += _selectable(versions)
    return found + _conversion(spec.get("conversion") or {})


def _group(group: str) -> list[Cause]:
    if not group:
        return [causes.required("spec.group")]
    faults = subdomain_faults(group)
    if faults:
        return [causes.invalid("spec.group", group, ",".join(faults))]
    if "." not in group:
        return [causes.invalid("spec.group", group, "should be a domain with at least one dot")]
    return []


def _alike(versions: list[Object], key: str) -> bool:
    first = versions[0].get(key) if versions else None
    return all(same(version.get(key), first) for version in versions)


def _versions(versions: list[Object], *, given: bool) -> list[Cause]:
    found: list[Cause] = []
    for index, version in enumerate(versions):
        where = f"spec.versions[{index}]"
        name = version.get("name", "")
        faults = name_faults(name, "label1035")
        if faults:
            found.append(causes.invalid(f"{where}.name", name, ",".join(faults)))
        if version.get("deprecationWarning") and not version.get("deprecated"):
            text = "can only be set for deprecated versions"
            found.append(causes.invalid(f"{where}.deprecationWarning", version["deprecationWarning"], text))
        found += _version_parts(version, where, versions)
    names = [version.get("name") for version in versions]
    if len(set(names)) != len(names):
        found.append(_versions_cause(versions, "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        text = "must have exactly one version marked as storage version"
        found.append(
            _versions_cause(versions, text) if given else causes.invalid("spec.versions", None, text)
        )
    if versions:
        faults = name_faults(versions[0].get("name", ""), "label1035")
        if faults:
            found.append(causes.invalid("spec.version", versions[0].get("name", ""), ",".join(faults)))
    return found


def _version_parts(version: Object, where: str, versions: list[Object]) -> list[Cause]:
    """Parts that differ between the versions, and are therefore spoken of per version."""
    found: list[Cause] = []
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is not None and not _alike(versions, "schema"):
        found += validate_schema(schema, f"{where}.schema.openAPIV3Schema", status=_has_status(version))
    if not _alike(versions, "subresources"):
        found += _subresources(version.get("subresources") or {}, f"{where}.subresources")
    if not _alike(versions, "additionalPrinterColumns"):
        found += _columns(version, f"{where}.additionalPrinterColumns")
    return found


def _shared(versions: list[Object]) -> list[Cause]:
    """Parts that are the same in all versions."""
    if not versions:
        return []
    found: list[Cause] = []
    first = versions[0]
    schema = (first.get("schema") or {}).get("openAPIV3Schema")
    if schema is not None and _alike(versions, "schema"):
        status = any(_has_status(version) for version in versions)
        found += validate_schema(schema, "spec.validation.openAPIV3Schema", status=status)
    if _alike(versions, "subresources"):
        found += _subresources(first.get("subresources") or {}, "spec.subresources")
    if _alike(versions, "additionalPrinterColumns"):
        found += _columns(first, "spec.additionalPrinterColumns")
    return found


def _has_status(version: Object) -> bool:
    return (version.get("subresources") or {}).get("status") is not None


def _versions_cause(versions: list[Object], text: str) -> Cause:
    alike = {key: _alike(versions, key) for key in ("schema", "subresources", "additionalPrinterColumns")}
    shown = [
        {
            "Name": version.get("name", ""),
            "Served": bool(version.get("served")),
            "Storage": bool(version.get("storage")),
            "Deprecated": bool(version.get("deprecated")),
            "DeprecationWarning": version.get("deprecationWarning"),
            "Schema": None if alike["schema"] else version.get("schema"),
            "Subresources": None if alike["subresources"] else version.get("subresources"),
            "AdditionalPrinterColumns": (
                None if alike["additionalPrinterColumns"] else version.get("additionalPrinterColumns")
            ),
            "SelectableFields": version.get("selectableFields"),
        }
        for version in versions
    ]
    listed = json.dumps(shown, separators=(",", ":"), ensure_ascii=False)
    return Cause("FieldValueInvalid", f"Invalid value: {listed}: {text}", "spec.versions")


def _names(names: Object) -> list[Cause]:
    found: list[Cause] = []
    for key in ("plural", "singular", "kind", "listKind"):
        if not names.get(key):
            found.append(causes.required(f"spec.names.{key}"))
    for key in ("plural", "singular", *_KINDS):
        value = names.get(key) or ""
        faults = name_faults(value.lower() if key in _KINDS else value, "label1035") if value else []
        if faults:
            text = ",".join(faults)
            if key in _KINDS:
                text = "may have mixed case, but should otherwise match: " + text
            found.append(causes.invalid(f"spec.names.{key}", value, text))
    found += _name_list(names, "shortNames")
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        text = "kind and listKind may not be the same"
        found.append(causes.invalid("spec.names.listKind", names["listKind"], text))
    return found + _name_list(names, "categories")


def _name_list(names: Object, key: str) -> list[Cause]:
    found: list[Cause] = []
    for index, name in enumerate(names.get(key) or ()):
        faults = name_faults(name, "label1035")
        if faults:
            found.append(causes.invalid(f"spec.names.{key}[{index}]", name, ",".join(faults)))
    return found


def _simple_path(path: str, field: str) -> list[Cause]:
    if not path.startswith("."):
        return [causes.invalid(field, path, "must be a simple json path starting with .")]
    return []


def _subresources(subresources: Object, field: str) -> list[Cause]:
    scale = subresources.get("scale")
    if scale is None:
        return []
    found: list[Cause] = []
    for key, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        where, path = f"{field}.scale.{key}", scale.get(key) or ""
        if not path:
            found.append(causes.required(where))
            continue
        bad = _simple_path(path, where)
        if not bad and not path.startswith(root + "."):
            bad = [causes.invalid(where, path, f"should be a json path under {root}")]
        found += bad
    path = scale.get("labelSelectorPath") or ""
    if path:
        where = f"{field}.scale.labelSelectorPath"
        bad = _simple_path(path, where)
        if not bad and not path.startswith((".spec.", ".status.")):
            bad = [causes.invalid(where, path, "should be a json path under either .spec or .status")]
        found += bad
    return found


def _columns(version: Object, field: str) -> list[Cause]:
    found: list[Cause] = []
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        where = f"{field}[{index}]"
        if not column.get("name"):
            found.append(causes.required(f"{where}.name"))
        kind = column.get("type", "")
        text = f"must be one of {','.join(_COLUMN_TYPES)}"
        if not kind:
            found.append(causes.required(f"{where}.type", text))
        elif kind not in _COLUMN_TYPES:
            found.append(causes.invalid(f"{where}.type", kind, text))
        form = column.get("format", "")
        if form and form not in _COLUMN_FORMATS:
            text = f"must be one of {','.join(_COLUMN_FORMATS)}"
            found.append(causes.invalid(f"{where}.format", form, text))
        if not column.get("jsonPath"):
            found.append(causes.required(f"{where}.JSONPath"))
        else:
            found += _simple_path(column["jsonPath"], f"{where}.JSONPath")
    return found


def _selectable(versions: list[Object]) -> list[Cause]:
    found: list[Cause] = []
    alike = _alike(versions, "selectableFields")
    for index, version in enumerate(versions[:1] if alike else versions):
        field = "spec.selectableFields" if alike else f"spec.versions[{index}].selectableFields"
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        seen: set[str] = set()
        for position, item in enumerate(version.get("selectableFields") or ()):
            where, path = f"{field}[{position}].jsonPath", item.get("jsonPath", "")
            target = _property(schema, path)
            if not path:
                found.append(causes.required(where))
                continue
            if target is None:
                text = "is an invalid path: does not refer to a valid field"
                found.append(causes.invalid(where, path, text))
                continue
            if target.get("type") not in ("string", "boolean", "integer"):
                text = (
                    "must point to a field of type string, boolean or integer. Enum string fields and "
                    "strings with formats are allowed."
                )
                found.append(causes.invalid(where, path, text))
            if path in seen:
                found.append(causes.duplicate(where, path))
            seen.add(path)
    return found


def _property(schema: Object, path: str) -> Object | None:
    for part in path.removeprefix(".").split("."):
        child = (schema.get("properties") or {}).get(part)
        if child is None:
            return None
        schema = child
    return schema


def _conversion(conversion: Object) -> list[Cause]:
    strategy = conversion.get("strategy", "")
    if strategy not in ("None", "Webhook"):
        return [causes.not_supported("spec.conversion.strategy", strategy, ("None", "Webhook"))]
    found: list[Cause] = []
    webhook = conversion.get("webhook") or {}
    if strategy == "Webhook":
        if not webhook.get("clientConfig"):
            text = "required when strategy is set to Webhook"
            found.append(causes.required("spec.conversion.webhookClientConfig", text))
        if not webhook.get("conversionReviewVersions"):
            found.append(causes.required("spec.conversion.conversionReviewVersions"))
    return found


def validate_stored_versions(crd: Object) -> list[Cause]:
    """status.storedVersions names only versions that exist, the storage version among them."""
    stored = (crd.get("status") or {}).get("storedVersions")
    field = "status.storedVersions"
    if not stored:
        return [causes.invalid(field, stored, "must have at least one stored version")]
    versions = crd["spec"].get("versions") or ()
    found: list[Cause] = []
    names = {version["name"] for version in versions}
    for index, name in enumerate(stored):
        if name not in names:
            text = f"missing from spec.versions; {name} was previously a storage version, and must remain in "
            text += "spec.versions until a storage migration ensures no data remains persisted in "
            text += f"{name} and removes {name} from status.storedVersions"
            found.append(causes.invalid(f"{field}[{index}]", name, text))
    for version in versions:
        if version.get("storage") and version["name"] not in stored:
            found.append(causes.invalid(field, stored, f"must have the storage version {version['name']}"))
    return found


def validate_approval(crd: Object) -> list[Cause]:
    """Groups of the Kubernetes project itself need an approval annotation."""
    group = crd["spec"].get("group", "")
    protected = group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))
    if not protected or (crd["metadata"].get("annotations") or {}).get(_APPROVAL):
        return []
    text = (
        f'protected groups must have approval annotation "{_APPROVAL}", see '
        "https://github.com/kubernetes/enhancements/pull/1111"
    )
    return [causes.required(f"metadata.annotations[{_APPROVAL}]", text)]
