"""Validation of custom resources against their structural schema, worded as kube-openapi words it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubeloop.sandbox.schema import causes
from kubeloop.sandbox.schema.equality import same
from kubeloop.sandbox.schema.formats import checker, go_pattern
from kubeloop.sandbox.schema.node import MISSING
from kubeloop.sandbox.status import Cause

_INT32 = 2**31
_INT64 = 2**63
_UNSET: Any = MISSING


class Problem:
    """A failed check: `path` relative to the validated root, `make` builds the cause for a field name.

    `composite` ones (oneOf and its kin) belong to no field.
    """

    __slots__ = ("make", "path")

    def __init__(self, path: str | None, make: Callable[[str], Cause]) -> None:
        self.path = path
        self.make = make

    def cause(self, prefix: str) -> Cause:
        if self.path is None:
            return self.make(prefix or "<nil>")
        name = self.path.removeprefix(".")
        if not name:
            return self.make(prefix or "<nil>")
        return self.make(f"{prefix}.{name}" if prefix else name)


def _plain(text: str) -> Problem:
    return Problem(None, lambda field: causes.invalid(field, "", text))


class Check:
    """A compiled schema node. `run` appends problems and returns how many checks passed (oneOf needs it)."""

    def __init__(self, schema: dict[str, Any]) -> None:
        get = schema.get
        self.int_or_string = bool(get("x-kubernetes-int-or-string"))
        type_ = get("type", "")
        self.types = ("integer", "string") if self.int_or_string else ((type_,) if type_ else ())
        self.nullable = bool(get("nullable"))
        self.format = get("format", "")
        text_format = type_ in ("", "string") and self.format
        self.format_check = checker(self.format) if text_format else None
        if not self.format_check and type_ not in ("integer", "number"):
            self.format = ""
        self.enum: list[Any] | None = get("enum") or None
        self.maximum, self.exclusive_maximum = get("maximum"), bool(get("exclusiveMaximum"))
        self.minimum, self.exclusive_minimum = get("minimum"), bool(get("exclusiveMinimum"))
        self.multiple_of = get("multipleOf")
        self.max_length, self.min_length = get("maxLength"), get("minLength")
        self.pattern_text: str = get("pattern", "")
        self.pattern = go_pattern(self.pattern_text) if self.pattern_text else None
        self.max_items, self.min_items = get("maxItems"), get("minItems")
        self.max_properties, self.min_properties = get("maxProperties"), get("minProperties")
        self.required: list[str] = get("required") or []
        self.properties = {key: Check(child) for key, child in sorted((get("properties") or {}).items())}
        additional = get("additionalProperties")
        self.additional = Check(additional) if isinstance(additional, dict) else None
        self.closed = additional is False
        items = get("items")
        self.items = Check(items) if isinstance(items, dict) else None
        self.list_keys = tuple(get("x-kubernetes-list-map-keys") or ())
        self.correlated = get("x-kubernetes-list-type") in ("map", "set")
        self.any_of = [Check(child) for child in get("anyOf") or ()]
        self.one_of = [Check(child) for child in get("oneOf") or ()]
        self.all_of = [Check(child) for child in get("allOf") or ()]
        not_ = get("not")
        self.not_ = Check(not_) if isinstance(not_, dict) else None
        self.composed = bool(self.any_of or self.one_of or self.all_of or self.not_)
        bounds = (self.maximum, self.minimum, self.multiple_of)
        self.numeric = any(bound is not None for bound in bounds) or type_ in ("integer", "number")
        lengths = self.max_length is not None or self.min_length is not None
        self.textual = lengths or bool(self.pattern_text) or self.format_check is not None

    def run(self, value: Any, path: str, out: list[Problem], old: Any = _UNSET) -> int:
        """Check `value` at `path`; problems of parts that equal `old` are forgiven (ratcheting)."""
        if old is _UNSET:
            return self._run(value, path, out, _UNSET)
        if value is old:
            return 1
        found: list[Problem] = []
        passed = self._run(value, path, found, old)
        if found and not same(value, old):
            out += found
        return passed

    def _run(self, value: Any, path: str, out: list[Problem], old: Any) -> int:
        before = len(out)
        if value is None:
            if self.types and not self.nullable:
                self._wrong_type(path, "null", out)
            if self.enum is not None:
                self._check_enum(value, path, out)
            return 1 if len(out) == before else 0
        kind = value.__class__
        found = _JSON_TYPES.get(kind, "object")
        if self.types and found not in self.types and not self._number_fits(value, found):
            self._wrong_type(path, found, out)
        passed = 1 if len(out) == before else 0
        if self.composed:
            passed += self._compose(value, path, out)
        if kind is str:
            if self.textual:
                self._check_string(value, path, out)
        elif kind is int or kind is float:
            if self.numeric:
                fine = len(out)
                self._check_number(value, path, out)
                # The server's number validator counts as passed even when it failed.
                passed += len(out) > fine
        elif kind is list:
            passed += self._check_list(value, path, out, old)
        if self.enum is not None:
            self._check_enum(value, path, out)
        if kind is dict:
            passed += self._check_map(value, path, out, old)
        return passed + (3 if len(out) == before else 0)

    def _number_fits(self, value: Any, found: str) -> bool:
        if found == "integer":
            return "number" in self.types
        return found == "number" and "integer" in self.types and float(value).is_integer()

    def _wrong_type(self, path: str, found: str, out: list[Problem]) -> None:
        wanted = ",".join(self.types)
        if self.format and found not in ("string", "array", "null"):
            # with a format set, the type check speaks of formats
            wanted, shown = self.format, _FORMAT_OF.get(found, "")
        else:
            shown = found
        text = f'{_name(path)} must be of type {wanted}: "{shown}"'
        out.append(Problem(path, lambda field: causes.type_invalid(field, shown, text)))

    def _invalid(self, path: str, value: Any, text: str, out: list[Problem]) -> None:
        message = f"{_name(path)} {text}"
        out.append(Problem(path, lambda field: causes.invalid(field, value, message)))

    def _check_string(self, value: str, path: str, out: list[Problem]) -> None:
        limit = self.max_length
        if limit is not None and len(value) > limit:
            out.append(Problem(path, lambda field: causes.too_long(field, limit)))
        elif self.min_length is not None and len(value) < self.min_length:
            self._invalid(path, value, f"should be at least {self.min_length} chars long", out)
        elif self.pattern_text and (self.pattern is None or not self.pattern.search(value)):
            self._invalid(path, value, f"should match '{self.pattern_text}'", out)
        if self.format_check is not None and not self.format_check(value):
            text = f"{_name(path)} must be of type {self.format}: {causes.quote(value)}"
            out.append(Problem(path, lambda field: causes.type_invalid(field, value, text)))

    def _check_number(self, value: int | float, path: str, out: list[Problem]) -> None:
        if self.types == ("integer",):
            limit = _INT32 if self.format == "int32" else _INT64
            if not (-limit <= value < limit and float(value).is_integer()):
                suffix = f"with format {self.format}" if self.format else "(default format)"
                out.append(
                    _plain(f"Checked value must be of type integer {suffix} in {path.removeprefix('.')}")
                )
        if self.multiple_of is not None and value % self.multiple_of != 0:
            self._invalid(path, value, f"should be a multiple of {causes.shown(self.multiple_of)}", out)
        least, most = self.minimum, self.maximum
        if least is not None and (value <= least if self.exclusive_minimum else value < least):
            word = "greater than" if self.exclusive_minimum else "greater than or equal to"
            self._invalid(path, value, f"should be {word} {_bound(least, value)}", out)
        if most is not None and (value >= most if self.exclusive_maximum else value > most):
            word = "less than" if self.exclusive_maximum else "less than or equal to"
            self._invalid(path, value, f"should be {word} {_bound(most, value)}", out)

    def _check_enum(self, value: Any, path: str, out: list[Problem]) -> None:
        enum = self.enum or []
        if not any(same(value, allowed) for allowed in enum):
            names = [item if isinstance(item, str) else causes.shown(item) for item in enum]
            out.append(Problem(path, lambda field: causes.not_supported(field, value, names)))

    def _check_list(self, value: list[Any], path: str, out: list[Problem], old: Any) -> int:
        passed = 0
        if self.items is not None:
            olds = self._old_items(value, old)
            for index, item in enumerate(value):
                passed += self.items.run(item, f"{path}[{index}]", out, olds[index] if olds else _UNSET)
        size, most, least = len(value), self.max_items, self.min_items
        if least is not None and size < least:
            self._invalid(path, size, f"should have at least {least} items", out)
        if most is not None and size > most:
            out.append(Problem(path, lambda field: causes.too_many(field, size, most)))
        return passed

    def _old_items(self, value: list[Any], old: Any) -> list[Any] | None:
        """What each item was before; only items of map and set lists can be recognised again."""
        if not isinstance(old, list) or not self.correlated:
            return None
        if not self.list_keys:
            return [item if any(same(item, other) for other in old) else _UNSET for item in value]
        known = {self._key(item): item for item in old if isinstance(item, dict)}
        return [known.get(self._key(item), _UNSET) if isinstance(item, dict) else _UNSET for item in value]

    def _key(self, item: dict[str, Any]) -> str:
        return causes.shown([item.get(key) for key in self.list_keys])

    def _check_map(self, value: dict[str, Any], path: str, out: list[Problem], old: Any) -> int:
        passed = 0
        least, most, size = self.min_properties, self.max_properties, len(value)
        if least is not None and size < least:
            self._invalid(path, size, f"should have at least {least} properties", out)
        if most is not None and size > most:
            out.append(Problem(path, lambda field: causes.too_many(field, size, most)))
        olds = old if isinstance(old, dict) else None
        properties = self.properties
        if self.closed:
            for key in sorted(value.keys() - properties.keys()):
                text = f"{_name(path, bare=True)}.{key} in body is a forbidden property"
                out.append(Problem(path, lambda f, k=key, t=text: causes.invalid(f, k, t)))  # type: ignore[misc]
        elif self.additional is not None:
            for key, item in value.items():
                if key not in properties:
                    before = _UNSET if olds is None else olds.get(key, _UNSET)
                    passed += self.additional.run(item, f"{path}.{key}", out, before)
        if olds is not None:
            # What is the very same as before needs no look; there is nothing to count either (see `run`).
            moved = sorted(
                key for key, item in value.items() if key in properties and item is not olds.get(key, _UNSET)
            )
            for key in moved:
                before = olds.get(key, _UNSET)
                passed += properties[key].run(value[key], f"{path}.{key}" if path else key, out, before)
        else:
            for key, check in properties.items():
                if key in value:
                    passed += check.run(value[key], f"{path}.{key}" if path else key, out)
        for key in self.required:
            if key not in value:
                out.append(Problem(f"{path}.{key}", causes.required))
        return passed

    def _compose(self, value: Any, path: str, out: list[Problem]) -> int:
        where = f'"{path}"'
        passed = 0
        if self.any_of:
            best, ok = _best(self.any_of, value, path, first=True)
            if not ok:
                out.append(_plain(f"{where} must validate at least one schema (anyOf)"))
                out += best
        if self.one_of:
            best, ok = _best(self.one_of, value, path, first=False)
            if ok != 1:
                why = f"Found {ok} valid alternatives" if ok else "Found none valid"
                out.append(_plain(f"{where} must validate one and only one schema (oneOf). {why}"))
                out += best
        if self.all_of:
            valid = 0
            for check in self.all_of:
                before = len(out)
                passed += check.run(value, path, out)
                valid += len(out) == before
            if valid != len(self.all_of):
                tail = ". None validated" if not valid else ""
                out.append(_plain(f"{where} must validate all the schemas (allOf){tail}"))
        if self.not_ is not None:
            found: list[Problem] = []
            self.not_.run(value, path, found)
            if not found:
                out.append(_plain(f"{where} must not validate the schema (not)"))
        return passed + 1


def _best(checks: list[Check], value: Any, path: str, *, first: bool) -> tuple[list[Problem], int]:
    """The problems of the alternative that came closest, and how many alternatives hold."""
    best: list[Problem] = []
    most, valid = -1, 0
    for check in checks:
        found: list[Problem] = []
        passed = check.run(value, path, found)
        if not found:
            valid += 1
            best = []
            if first:
                break
        elif not valid and passed > most:
            most, best = passed, found
    return best, valid


_JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
_FORMAT_OF = {"integer": "int64", "number": "float64"}


def _name(path: str, *, bare: bool = False) -> str:
    return path if bare else f"{path} in body"


def _bound(bound: float, value: float) -> str:
    return str(int(bound)) if isinstance(value, int) else causes.shown(float(bound))


def problems(check: Check, value: Any, old: Any = _UNSET) -> list[Problem]:
    """All failed checks of `value`."""
    out: list[Problem] = []
    check.run(value, "", out, old)
    return out


def to_causes(found: list[Problem], prefix: str = "") -> list[Cause]:
    """Causes with their full field names; repeated ones are dropped, as the server does."""
    return list(dict.fromkeys(problem.cause(prefix) for problem in found))
