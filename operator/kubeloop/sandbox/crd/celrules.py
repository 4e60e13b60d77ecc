"""Validation rules of a schema, judged when the CRD is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kubeloop.sandbox.cel import RULES, require, uses_rules
from kubeloop.sandbox.cel.names import field_path, uses_old_self
from kubeloop.sandbox.schema import causes
from kubeloop.sandbox.status import Cause

if TYPE_CHECKING:
    from kubeloop.sandbox.cel.compiling import Checker
    from kubeloop.sandbox.cel.types import TypeBook

Object = dict[str, Any]

_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_BREAKS = ("\n", "\r")


def validate_texts(schema: Object, field: str) -> list[Cause]:
    """What can be said of a schema's rules without compiling them."""
    found: list[Cause] = []
    for index, rule in enumerate(schema.get(RULES) or ()):
        where = f"{field}.{RULES}[{index}]"
        text, message, expression = (rule.get(key) or "" for key in ("rule", "message", "messageExpression"))
        if not text.strip():
            found.append(causes.required(f"{where}.rule", "rule is not specified"))
        if message and not message.strip():
            found.append(causes.invalid(f"{where}.message", message, "must be non-empty if specified"))
        elif _broken(message.strip()):
            found.append(causes.invalid(f"{where}.message", message, "must not contain line breaks"))
        elif not message and _broken(text.strip()):
            need = "message must be specified if rule contains line breaks"
            found.append(causes.required(f"{where}.message", need))
        if expression and not expression.strip():
            need = "messageExpression must be non-empty if specified"
            found.append(causes.required(f"{where}.messageExpression", need))
        reason, path = rule.get("reason"), rule.get("fieldPath") or ""
        if reason is not None and reason not in _REASONS:
            found.append(causes.not_supported(f"{where}.reason", reason, _REASONS))
        if path:
            if not path.strip():
                found.append(causes.invalid(f"{where}.fieldPath", path, "must be non-empty if specified"))
            if not _leads_somewhere(schema, field_path(path)):
                found.append(causes.invalid(f"{where}.fieldPath", path, "must be a valid path"))
    return found


def _broken(text: str) -> bool:
    return any(char in text for char in _BREAKS)


def _leads_somewhere(schema: Object, names: list[str] | None) -> bool:
    for name in names or ():
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        child = properties.get(name, additional)
        if not isinstance(child, dict):
            return False
        schema = child
    return bool(names)


def compile_all(schema: Object, field: str) -> list[Cause]:
    """Compile every rule of a version's schema. ApiFailure 501: what only the real server can do."""
    if not uses_rules(schema):
        return []
    require()
    from kubeloop.sandbox.cel.compiling import Checker
    from kubeloop.sandbox.cel.types import TypeBook

    book = TypeBook()
    found: list[Cause] = []
    for node, where, uncorrelatable, kind in list(_places(schema, field, "", book, root=True)):
        checker = Checker(book, kind)
        for index, rule in enumerate(node[RULES]):
            found += _compile(checker, rule, f"{where}.{RULES}[{index}]", uncorrelatable)
    return found


def of_default(schema: Object, value: Any, field: str) -> list[Cause]:
    """What the rules of a schema say of its own default."""
    if not uses_rules(schema):
        return []
    from kubeloop.sandbox.cel.rules import compile_rules, evaluate

    rules = compile_rules(schema, root=False)
    return [] if rules is None else evaluate(rules, value, path=field)


def _places(
    schema: Object, field: str, uncorrelatable: str, book: TypeBook, *, root: bool
) -> Iterator[tuple[Object, str, str, str]]:
    """Every node with rules: its place, the list above it whose items cannot be correlated, and its type."""
    if schema.get(RULES):
        yield schema, field, uncorrelatable, book.type_of(schema, root=root)
    for key, child in sorted((schema.get("properties") or {}).items()):
        yield from _places(child, f"{field}.properties[{key}]", uncorrelatable, book, root=False)
    additional, items = schema.get("additionalProperties"), schema.get("items")
    if isinstance(additional, dict):
        yield from _places(additional, f"{field}.additionalProperties", uncorrelatable, book, root=False)
    if isinstance(items, dict):
        below = uncorrelatable or ("" if schema.get("x-kubernetes-list-type") == "map" else field)
        yield from _places(items, f"{field}.items", below, book, root=False)


def _compile(checker: Checker, rule: Object, where: str, uncorrelatable: str) -> list[Cause]:
    text, expression = rule["rule"], rule.get("messageExpression") or ""
    optional = bool(rule.get("optionalOldSelf"))
    transition = uses_old_self(text)
    found: list[Cause] = []
    shown = {
        "Rule": text,
        "Message": rule.get("message", ""),
        "MessageExpression": expression,
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath", ""),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
    wrong = checker.check(text, optional=optional, wanted="bool")
    if wrong:
        detail = f"cel expression {wrong}" if wrong.startswith("must") else wrong
        found.append(_invalid(f"{where}.rule", shown, detail))
        transition = False
    elif transition and uncorrelatable and not optional:
        detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
        found.append(causes.invalid(f"{where}.rule", text, detail))
    if expression:
        wrong = checker.check(expression, optional=optional, wanted="string")
        if wrong:
            found.append(_invalid(f"{where}.messageExpression", shown, f"messageExpression {wrong}"))
    if rule.get("optionalOldSelf") is not None and not transition:
        detail = "may not be set if oldSelf is not used in rule"
        found.append(causes.invalid(f"{where}.optionalOldSelf", rule["optionalOldSelf"], detail))
    return found


def _invalid(field: str, shown: Object, detail: str) -> Cause:
    """As `causes.invalid`, with the keys of a Go struct in their own order."""
    text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Cause("FieldValueInvalid", f"Invalid value: {text}: {detail}", field)
