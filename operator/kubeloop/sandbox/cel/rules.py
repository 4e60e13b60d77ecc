"""The rules of a whole schema: their evaluation over an object (apiextensions: cel.Validator)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from kubeloop.sandbox.cel.compiling import RuleError, program
from kubeloop.sandbox.cel.names import field_path, uses_old_self
from kubeloop.sandbox.cel.values import Convert, converter
from kubeloop.sandbox.schema import causes
from kubeloop.sandbox.schema.equality import same
from kubeloop.sandbox.status import Cause

Object = dict[str, Any]
Warn = Callable[[str], None]
Unchanged = Callable[[], bool]
_ABSENT: Final = object()
"""There is no old value to compare with."""


class Rule:
    """One entry of x-kubernetes-validations."""

    def __init__(self, raw: Object) -> None:
        self.text: str = raw["rule"]
        self.message: str = (raw.get("message") or "").strip()
        self.message_expression: str = raw.get("messageExpression") or ""
        self.reason: str = raw.get("reason") or "FieldValueInvalid"
        self.transition = uses_old_self(self.text)
        self.optional = bool(raw.get("optionalOldSelf"))
        names = field_path(raw["fieldPath"]) if raw.get("fieldPath") else None
        self.path = "".join(f".{name}" for name in names or ())

    @property
    def shown(self) -> str:
        return self.message or self.text.strip()

    @cached_property
    def _run(self) -> Callable[[Any, Any, bool], Any]:
        return program(self.text, optional=self.optional)

    def check(self, value: Any, kind: str, seen: tuple[Any, Any, bool], field: str) -> Cause | None:
        """What the rule has to say of `value` (`seen` is what expressions see of it)."""
        shown = _NOTHING if kind in ("object", "array") else value
        try:
            if self._run(*seen) is True:
                return None
        except RuleError as error:
            return causes.invalid(field, kind, self._failure(str(error)))
        return self._cause(field + self.path, shown, self._detail(seen))

    def _failure(self, error: str) -> str:
        if "no such overload" in error:
            return (
                f"'{error}': call arguments did not match a supported operator, function or macro signature "
                f"for rule: {self.shown}"
            )
        return f"{error} evaluating rule: {self.shown}"

    def _detail(self, seen: tuple[Any, Any, bool]) -> str:
        if self.message_expression:
            try:
                made = program(self.message_expression, optional=self.optional)(*seen)
            except RuleError:
                made = ""
            if isinstance(made, str) and made.strip() and "\n" not in made:
                return made.strip()
        return self.message or f"failed rule: {self.text.strip()}"

    def _cause(self, field: str, value: Any, detail: str) -> Cause:
        match self.reason:
            case "FieldValueRequired":
                return causes.required(field, detail)
            case "FieldValueForbidden":
                return causes.forbidden(field, detail)
            case "FieldValueDuplicate":
                if value is _NOTHING:
                    return Cause(self.reason, "Duplicate value", field)
                return causes.duplicate(field, value)
        if value is _NOTHING:
            return Cause("FieldValueInvalid", f"Invalid value: {detail}", field)
        return causes.invalid(field, value, detail)


_NOTHING: Final = object()
"""Objects and lists are not shown."""


class Rules:
    """The rules of a schema node and of what is below it; only nodes that lead to rules exist."""

    def __init__(self, schema: Object, *, root: bool) -> None:
        self.kind = "object" if schema.get("x-kubernetes-int-or-string") else schema.get("type", "")
        self.own = [Rule(raw) for raw in schema.get("x-kubernetes-validations") or ()]
        self._convert: Convert | None = converter(schema, ordered=True, root=root) if self.own else None
        transitions = any(rule.transition for rule in self.own)
        self._convert_both = converter(schema, ordered=False, root=root) if transitions else None
        self.fields: dict[str, Rules] = {}
        for key, child in (schema.get("properties") or {}).items():
            self._add(key, child)
        additional = schema.get("additionalProperties")
        self.element = _some(additional) if isinstance(additional, dict) else None
        items = schema.get("items")
        self.items = _some(items) if isinstance(items, dict) else None
        self._keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())

    def _add(self, key: str, child: Object) -> None:
        below = _some(child)
        if below is not None:
            self.fields[key] = below

    def __bool__(self) -> bool:
        return bool(self.own or self.fields or self.element is not None or self.items is not None)

    def run(self, value: Any, old: Any, field: str, to: _Findings, above: Unchanged) -> None:
        """Find what is wrong with `value`.

        `above` tells whether the nearest part around it whose old value is known is unchanged: items of
        lists that are not maps are forgiven with the whole list.
        """
        unchanged = above if old is _ABSENT else lambda: same(value, old)
        if self.own and value is not None:
            self._run_own(value, old, field, to, unchanged)
        if isinstance(value, dict):
            for key, item in value.items():
                below = self.fields.get(key)
                where = f"{field}.{key}" if field else key
                if below is None:
                    below, where = self.element, f"{field}[{key}]"
                if below is not None:
                    before = old.get(key, _ABSENT) if isinstance(old, dict) else _ABSENT
                    below.run(item, before, where, to, unchanged)
        elif isinstance(value, list) and self.items is not None:
            for index, item in enumerate(value):
                self.items.run(item, self._old_item(item, old), f"{field}[{index}]", to, unchanged)

    def _run_own(self, value: Any, old: Any, field: str, to: _Findings, unchanged: Unchanged) -> None:
        if self._convert is None:
            return
        known = old is not _ABSENT and old is not None
        seen = (self._convert(value), None, False)
        for rule in self.own:
            view = seen
            if rule.transition:
                if not known and not rule.optional:
                    continue
                both = self._convert_both or self._convert
                view = (both(value), both(old) if known else None, known)
            cause = rule.check(value, self.kind, view, field or "<nil>")
            if cause is None:
                continue
            if not rule.transition and unchanged():
                to.warn(f"{cause.field}: {cause.message}")
            else:
                to.causes.append(cause)

    def _old_item(self, item: Any, old: Any) -> Any:
        """The same item before; only those of map lists can be recognised."""
        if not self._keys or not isinstance(old, list) or not isinstance(item, dict):
            return _ABSENT
        key = [item.get(name) for name in self._keys]
        for other in old:
            if isinstance(other, dict) and [other.get(name) for name in self._keys] == key:
                return other
        return _ABSENT


def _some(schema: Object) -> Rules | None:
    made = Rules(schema, root=False)
    return made if made else None


def compile_rules(schema: Object, *, root: bool = True) -> Rules | None:
    """The rules of a schema, or None when it has none."""
    made = Rules(schema, root=root)
    return made if made else None


def _ignore(text: str) -> None:
    del text


@dataclass(slots=True)
class _Findings:
    """What a run over an object found, and who is told of what it forgave."""

    warn: Warn
    causes: list[Cause] = field(default_factory=list)


def evaluate(
    rules: Rules, obj: Any, old: Any = _ABSENT, path: str = "", warn: Warn | None = None
) -> list[Cause]:
    """What the rules find wrong with `obj`, given that it replaces `old`.

    What they would find in parts that are as they were goes to `warn`.
    """
    found = _Findings(warn or _ignore)
    rules.run(obj, old, path, found, lambda: False)
    return found.causes


def unchecked() -> Cause:
    """Said instead of evaluating rules over an object whose types are wrong."""
    text = (
        "some validation rules were not checked because the object was invalid; correct the existing errors "
        "to complete validation"
    )
    return causes.invalid("<nil>", None, text)
