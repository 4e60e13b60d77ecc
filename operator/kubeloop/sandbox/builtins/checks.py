"""Checks that several built-in kinds share, worded as apimachinery's and core's validation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from kubeloop.sandbox.pipeline.metadata import (
    label_value_faults,
    name_faults,
    qualified_name_faults,
    validate_labels,
)
from kubeloop.sandbox.schema import causes
from kubeloop.sandbox.status import Cause

Object = dict[str, Any]

IMMUTABLE = "field is immutable"
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_PERCENT = re.compile(r"[0-9]+%")
_PORT_NAME = re.compile(r"[-a-z0-9]+")
_PERCENT_TEXT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex "
    "used for validation is '[0-9]+%')"
)


def immutable(new: Any, old: Any, field: str) -> list[Cause]:
    """ValidateImmutableField."""
    return [] if new == old else [causes.invalid(field, new, IMMUTABLE)]


def non_negative(value: Any, field: str) -> list[Cause]:
    """A count that may be absent but not negative."""
    if isinstance(value, int) and value < 0:
        return [causes.invalid(field, value, "must be greater than or equal to 0")]
    return []


def names(value: str, rule: str, field: str) -> list[Cause]:
    """`value` against a name rule (``label``, ``subdomain``)."""
    return [causes.invalid(field, value, fault) for fault in name_faults(value, rule)]


def supported(value: Any, allowed: Iterable[str], field: str) -> list[Cause]:
    """An enumeration; `allowed` in the order in which messages list it."""
    listed = list(allowed)
    return [] if value in listed else [causes.not_supported(field, value, listed)]


def labels(value: Mapping[str, str] | None, field: str) -> list[Cause]:
    return validate_labels(value or {}, field)


def annotation_keys(value: Mapping[str, str] | None, field: str) -> list[Cause]:
    found: list[Cause] = []
    for key in sorted(value or ()):
        found += [causes.invalid(field, key, fault) for fault in qualified_name_faults(key.lower())]
    return found


def config_key(key: str, field: str) -> list[Cause]:
    """A key of a ConfigMap or Secret."""
    if len(key) > 253:
        return [causes.invalid(field, key, "must be no more than 253 characters")]
    if not _CONFIG_KEY.fullmatch(key):
        text = (
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  "
            "or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
        )
        return [causes.invalid(field, key, text)]
    if key in (".", ".."):
        return [causes.invalid(field, key, f"must not be '{key}'")]
    if key.startswith(".."):
        return [causes.invalid(field, key, "must not start with '..'")]
    return []


def port_number(value: Any, field: str) -> list[Cause]:
    if isinstance(value, int) and not 1 <= value <= 65535:
        return [causes.invalid(field, value, "must be between 1 and 65535, inclusive")]
    return []


def port_name(value: str, field: str) -> list[Cause]:
    """An IANA service name, as container ports have it."""
    faults = []
    if len(value) > 15:
        faults.append("must be no more than 15 characters")
    if not _PORT_NAME.fullmatch(value):
        faults.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", value):
        faults.append("must contain at least one letter (a-z)")
    if "--" in value:
        faults.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        faults.append("must not begin or end with a hyphen")
    return [causes.invalid(field, value, fault) for fault in faults]


def int_or_percent(value: Any, field: str) -> list[Cause]:
    """maxSurge and maxUnavailable."""
    if isinstance(value, str):
        return [] if _PERCENT.fullmatch(value) else [causes.invalid(field, value, _PERCENT_TEXT)]
    return non_negative(value, field)


def at_most_hundred_percent(value: Any, field: str) -> list[Cause]:
    if isinstance(value, str) and _PERCENT.fullmatch(value) and int(value[:-1]) > 100:
        return [causes.invalid(field, value, "must not be greater than 100%")]
    return []


def is_zero(value: Any) -> bool:
    """Whether an int-or-percent stands for nothing."""
    return value in (0, None) or (isinstance(value, str) and value.rstrip("%").strip("0") == "")


def label_selector(selector: Object, field: str) -> list[Cause]:
    """ValidateLabelSelector."""
    found = labels(selector.get("matchLabels"), f"{field}.matchLabels")
    for index, term in enumerate(selector.get("matchExpressions") or ()):
        found += _selector_term(term, f"{field}.matchExpressions[{index}]")
    return found


def _selector_term(term: Object, field: str) -> list[Cause]:
    operator, key, values = term.get("operator", ""), term.get("key", ""), term.get("values") or []
    found: list[Cause] = []
    if operator in ("In", "NotIn"):
        if not values:
            text = "must be specified when `operator` is 'In' or 'NotIn'"
            found.append(causes.required(f"{field}.values", text))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            found.append(causes.forbidden(f"{field}.values", text))
    else:
        found.append(causes.invalid(f"{field}.operator", operator, "not a valid selector operator"))
    found += [causes.invalid(f"{field}.key", key, fault) for fault in qualified_name_faults(key)]
    for index, value in enumerate(values):
        faults = label_value_faults(value)
        found += [causes.invalid(f"{field}.values[{index}]", value, fault) for fault in faults]
    return found


def selects(selector: Object, found: Mapping[str, str]) -> bool:
    """Whether a valid label selector matches these labels."""
    if any(found.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    for term in selector.get("matchExpressions") or ():
        present, values = term["key"] in found, term.get("values") or []
        match term["operator"]:
            case "In":
                holds = present and found[term["key"]] in values
            case "NotIn":
                holds = not present or found[term["key"]] not in values
            case "Exists":
                holds = present
            case _:
                holds = not present
        if not holds:
            return False
    return True


def is_valid_selector(selector: Object) -> bool:
    """Whether the terms of a label selector can be evaluated at all."""
    for term in selector.get("matchExpressions") or ():
        operator, values = term.get("operator"), term.get("values") or []
        if operator in ("In", "NotIn") and not values:
            return False
        if operator in ("Exists", "DoesNotExist") and values:
            return False
        if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            return False
        if qualified_name_faults(term.get("key", "")):
            return False
    return True
