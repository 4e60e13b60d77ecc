"""Whether a version's openAPIV3Schema is structural and can be enforced."""

from __future__ import annotations

from typing import Any

from kubeloop.sandbox.cel import RULES
from kubeloop.sandbox.crd import celrules
from kubeloop.sandbox.schema import causes
from kubeloop.sandbox.schema.compile import compile_structural
from kubeloop.sandbox.schema.formats import go_pattern
from kubeloop.sandbox.schema.structural import prune
from kubeloop.sandbox.schema.validate import Check, problems, to_causes
from kubeloop.sandbox.status import Cause

Object = dict[str, Any]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_FORBIDDEN = ("id", "patternProperties", "definitions", "dependencies", "$ref", "additionalItems")
_AT_ROOT_WITH_STATUS = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength "
    "Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example "
    "XPreserveUnknownFields XValidations"
)
_NOT_AT_ROOT_WITH_STATUS = (
    "minProperties",
    "maxProperties",
    "enum",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "additionalProperties",
    "nullable",
    "default",
)


def validate_schema(schema: Object, field: str, *, status: bool) -> list[Cause]:
    """ValidateCustomResourceDefinitionOpenAPISchema and the structural checks that follow it."""
    found: list[Cause] = []
    extra = [key for key in _NOT_AT_ROOT_WITH_STATUS if schema.get(key) is not None]
    if status and extra:
        text = (
            f"only [{_AT_ROOT_WITH_STATUS}] fields are allowed at the root of the schema if the status "
            "subresource is enabled"
        )
        found.append(causes.invalid(field, schema, text))
    found += _openapi(schema, field) + _types(schema, field)
    if found:
        return found
    found += _structural(schema, field, root=True)
    if not found:
        found += celrules.compile_all(schema, field)
    if not found:
        found += _defaults(schema, field)
    return found


def _children(schema: Object, field: str) -> list[tuple[Object, str]]:
    """The sub-schemas that describe values (not the logical ones)."""
    out: list[tuple[Object, str]] = []
    for key, child in sorted((schema.get("properties") or {}).items()):
        out.append((child, f"{field}.properties[{key}]"))
    if isinstance(schema.get("additionalProperties"), dict):
        out.append((schema["additionalProperties"], f"{field}.additionalProperties"))
    if isinstance(schema.get("items"), dict):
        out.append((schema["items"], f"{field}.items"))
    return out


def _logical(schema: Object, field: str) -> list[tuple[Object, str]]:
    out: list[tuple[Object, str]] = []
    for key in ("allOf", "anyOf", "oneOf"):
        for index, child in enumerate(schema.get(key) or ()):
            out.append((child, f"{field}.{key}[{index}]"))
    if isinstance(schema.get("not"), dict):
        out.append((schema["not"], f"{field}.not"))
    return out


def _openapi(schema: Object, field: str) -> list[Cause]:
    """What no schema of a CRD may use at all."""
    found: list[Cause] = []
    for key in _FORBIDDEN:
        if schema.get(key):
            found.append(causes.forbidden(f"{field}.{key}", f"{key} is not supported"))
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.append(causes.forbidden(f"{field}.uniqueItems", text))
    additional, properties = schema.get("additionalProperties"), schema.get("properties")
    if additional is not None and properties:
        text = "additionalProperties and properties are mutual exclusive"
        found.append(causes.forbidden(f"{field}.additionalProperties", text))
    if schema.get("type") == "array" and schema.get("items") is None:
        found.append(causes.required(f"{field}.items", "must be specified"))
    if isinstance(schema.get("items"), list):
        text = "items must be a schema object and not an array"
        found.append(causes.forbidden(f"{field}.items", text))
    pattern = schema.get("pattern")
    if pattern and go_pattern(pattern) is None:
        text = f"must be a valid regular expression, but isn't: {_regexp_error(pattern)}"
        found.append(causes.invalid(f"{field}.pattern", pattern, text))
    if schema.get("type") == "null":
        text = "type cannot be set to null, use nullable as an alternative"
        found.append(causes.forbidden(f"{field}.type", text))
    known = schema.get("properties") or schema.get("x-kubernetes-preserve-unknown-fields")
    if schema.get("x-kubernetes-embedded-resource") and schema.get("type") == "object" and not known:
        text = (
            "must not be empty if x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields"
        )
        found.append(causes.required(f"{field}.properties", text))
    found += _list_type(schema, field)
    found += celrules.validate_texts(schema, field)
    for child, where in _children(schema, field) + _logical(schema, field):
        found += _openapi(child, where)
    return found


def _regexp_error(pattern: str) -> str:
    if pattern.count("(") > pattern.count(")"):
        return f"error parsing regexp: missing closing ): `{pattern}`"
    if pattern.count("[") > pattern.count("]"):
        return f"error parsing regexp: missing closing ]: `{pattern[pattern.rindex('[') :]}`"
    return f"error parsing regexp: `{pattern}`"


def _list_type(schema: Object, field: str) -> list[Cause]:
    found: list[Cause] = []
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or []
    items = schema.get("items") if isinstance(schema.get("items"), dict) else None
    where = f"{field}.x-kubernetes-list-type"
    if kind is not None and kind not in ("atomic", "set", "map"):
        found.append(causes.not_supported(where, kind, ("atomic", "set", "map")))
    if kind in ("atomic", "set", "map") and schema.get("type") != "array":
        found.append(
            causes.invalid(
                f"{field}.type",
                schema.get("type", ""),
                "must be array if x-kubernetes-list-type is specified",
            )
        )
    if kind == "map":
        found += _map_keys(keys, items or {}, field)
    elif keys:
        text = "must be map if x-kubernetes-list-map-keys is non-empty"
        found.append(causes.required(where, text) if kind is None else causes.invalid(where, kind, text))
    shown = (items or {}).get("x-kubernetes-map-type")
    if kind == "set" and (items or {}).get("type") == "object" and shown != "atomic":
        text = "must be atomic as item of a list with x-kubernetes-list-type=set"
        found.append(causes.invalid(f"{field}.items.x-kubernetes-map-type", shown, text))
    map_type = schema.get("x-kubernetes-map-type")
    if map_type is not None and map_type not in ("atomic", "granular"):
        found.append(causes.not_supported(f"{field}.x-kubernetes-map-type", map_type, ("atomic", "granular")))
    return found


def _map_keys(keys: list[str], items: Object, field: str) -> list[Cause]:
    found: list[Cause] = []
    if not keys:
        text = "must not be empty if x-kubernetes-list-type is map"
        found.append(causes.required(f"{field}.x-kubernetes-list-map-keys", text))
    if items.get("type") != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        return [*found, causes.invalid(f"{field}.items.type", items.get("type", ""), text)]
    properties = items.get("properties") or {}
    where = f"{field}.x-kubernetes-list-map-keys"
    for index, key in enumerate(keys):
        child = properties.get(key)
        if key in keys[:index]:
            found.append(causes.duplicate(f"{where}[{index}]", key))
        if child is None:
            found.append(causes.invalid(where, keys, "entries must all be names of item properties"))
        elif child.get("type") in ("array", "object"):
            text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            found.append(causes.invalid(f"{field}.items.properties[{key}].type", child["type"], text))
        elif child.get("default") is None and key not in (items.get("required") or ()):
            text = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required "
                "property"
            )
            found.append(causes.required(f"{field}.items.properties[{key}].default", text))
    return found


def _structural(schema: Object, field: str, *, root: bool) -> list[Cause]:
    """KEP 20190425: types everywhere, nothing structural inside logical parts."""
    found: list[Cause] = []
    for child, where in _logical(schema, field):
        found += _inside_logic(child, where, _is_int_or_string_choice(schema))
    kind = schema.get("type", "")
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if not kind:
        if root:
            found.append(causes.required(f"{field}.type", "must not be empty at the root"))
        elif not free:
            place = "array items" if field.endswith(".items") else "object fields"
            found.append(causes.required(f"{field}.type", f"must not be empty for specified {place}"))
    if root and kind and kind != "object":
        found.append(causes.invalid(f"{field}.type", kind, "must be object at the root"))
    if schema.get("x-kubernetes-embedded-resource") and kind != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        found.append(causes.invalid(f"{field}.type", kind, text))
    if root:
        found += _root_properties(schema, field)
    for child, where in _children(schema, field):
        found += _structural(child, where, root=False)
    return found


def _is_int_or_string_choice(schema: Object) -> bool:
    return bool(schema.get("x-kubernetes-int-or-string"))


def _root_properties(schema: Object, field: str) -> list[Cause]:
    """What the root says of the fields that every object has."""
    properties = schema.get("properties") or {}
    found: list[Cause] = []
    for key in ("apiVersion", "kind"):
        kind = (properties.get(key) or {}).get("type", "string")
        if kind != "string":
            found.append(causes.invalid(f"{field}.properties[{key}].type", kind, "must be string"))
    metadata = properties.get("metadata")
    if metadata is None:
        return found
    declared = set(metadata.get("properties") or {})
    extra = {k for k in metadata if k not in ("type", "properties", "description", "required")}
    if declared - {"name", "generateName"} or extra:
        text = (
            "must not specify anything other than name and generateName, but metadata is implicitly specified"
        )
        found.append(causes.forbidden(f"{field}.properties[metadata]", text))
    return found


def _inside_logic(schema: Object, field: str, int_or_string: bool) -> list[Cause]:
    """Sub-schemas of allOf & co. only restrict values; they may not describe structure."""
    found: list[Cause] = []
    if schema.get("default") is not None:
        found.append(causes.forbidden(f"{field}.default", "must be undefined to be structural"))
    for key in ("description", "title"):
        if schema.get(key):
            found.append(causes.forbidden(f"{field}.{key}", "must be empty to be structural"))
    if schema.get("type") and not int_or_string:
        found.append(causes.forbidden(f"{field}.type", "must be empty to be structural"))
    if schema.get(RULES):
        found.append(causes.forbidden(f"{field}.{RULES}", "must be empty to be structural"))
    if schema.get("nullable"):
        found.append(causes.forbidden(f"{field}.nullable", "must be false to be structural"))
    if schema.get("additionalProperties") is not None:
        text = "must be undefined to be structural"
        found.append(causes.forbidden(f"{field}.additionalProperties", text))
    for key in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
        if schema.get(key):
            found.append(causes.forbidden(f"{field}.{key}", "must be false to be structural"))
    for child, where in _children(schema, field) + _logical(schema, field):
        found += _inside_logic(child, where, False)
    return found


def _types(schema: Object, field: str) -> list[Cause]:
    found: list[Cause] = []
    kind = schema.get("type", "")
    if kind and kind not in _TYPES:
        found.append(causes.not_supported(f"{field}.type", kind, _TYPES))
    for child, where in _children(schema, field):
        found += _types(child, where)
    return found


def _defaults(schema: Object, field: str) -> list[Cause]:
    """A default must be valid where it stands, and complete: nothing in it may be pruned."""
    found: list[Cause] = []
    value = schema.get("default")
    if value is not None:
        unknown: list[str] = []
        prune(value, compile_structural(schema), "", unknown)
        if unknown:
            found.append(causes.invalid(f"{field}.default", value, "must not have unknown fields"))
        else:
            found += to_causes(problems(Check(schema), value), f"{field}.default")
            found += celrules.of_default(schema, value, f"{field}.default")
    for child, where in _children(schema, field):
        found += _defaults(child, where)
    return found
