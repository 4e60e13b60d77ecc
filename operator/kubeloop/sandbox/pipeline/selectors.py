"""Label and field selectors: parsed with the server's error texts, matched on plain objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kubeloop.sandbox.pipeline.metadata import label_value_faults, qualified_name_faults
from kubeloop.sandbox.registry import Object, ResourceInfo
from kubeloop.sandbox.status import bad_request

_TOKEN = re.compile(r"\s*(==|!=|=|!|\(|\)|,|<|>|[^\s=!(),<>]+|$)")
_OPERATORS = ("in", "notin", "=", "==", "!=", ">", "<")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term; `operator` is in, notin, exists, !, gt or lt."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value in self.values
            case "notin":
                return value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
        if value is None or not re.fullmatch(r"-?\d+", value):
            return False
        bound = int(next(iter(self.values)))
        return int(value) > bound if self.operator == "gt" else int(value) < bound


class _Lexer:
    def __init__(self, text: str) -> None:
        self.tokens = [match for match in _TOKEN.findall(text) if match]
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self) -> str:
        token = self.peek()
        self.at += 1
        return token


@lru_cache(maxsize=512)
def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Requirements that must all hold; empty matches everything. Raises a 400 failure."""
    lexer = _Lexer(text)
    requirements: list[Requirement] = []
    if not text.strip():
        return ()
    while True:
        token = lexer.peek()
        if token == "!" or _identifier(token):
            requirements.append(_requirement(lexer))
            token = lexer.next()
            if token == "":
                return tuple(requirements)
            if token != ",":
                raise _refuse(f"found '{token}', expected: ',' or 'end of string'")
            if not (_identifier(lexer.peek()) or lexer.peek() == "!"):
                raise _refuse(f"found '{lexer.peek()}', expected: identifier after ','")
        elif token == "":
            return tuple(requirements)
        else:
            raise _refuse(f"found '{token}', expected: !, identifier, or 'end of string'")


def _requirement(lexer: _Lexer) -> Requirement:
    negated = lexer.peek() == "!"
    if negated:
        lexer.next()
    key = lexer.next()
    if not _identifier(key):
        raise _refuse(f"unable to parse requirement: found '{key}', expected: identifier")
    if negated:
        return _checked(Requirement(key, "!"))
    if lexer.peek() in ("", ","):
        return _checked(Requirement(key, "exists"))
    operator = lexer.next()
    if operator not in _OPERATORS:
        raise _refuse(
            f"unable to parse requirement: found '{operator}', expected: in, notin, =, ==, !=, gt, lt"
        )
    if operator in ("in", "notin"):
        return _checked(Requirement(key, operator, _values(lexer)))
    value = "" if lexer.peek() in ("", ",") else lexer.next()
    if value and not _identifier(value):
        raise _refuse(f"unable to parse requirement: found '{value}', expected: identifier")
    if operator in ("<", ">"):
        if not re.fullmatch(r"-?\d+", value):
            raise _refuse(
                f"unable to parse requirement: values[0]: Invalid value: \"{value}\": for 'Gt', 'Lt' "
                "operators, the value must be an integer"
            )
        return _checked(Requirement(key, "gt" if operator == ">" else "lt", frozenset((value,))))
    return _checked(Requirement(key, "notin" if operator == "!=" else "in", frozenset((value,))))


def _checked(requirement: Requirement) -> Requirement:
    """`requirement`, if its key and values could be labels at all."""
    faults = qualified_name_faults(requirement.key)
    if faults:
        listed = "; ".join(faults)
        raise _refuse(f'unable to parse requirement: <nil>: Invalid value: "{requirement.key}": {listed}')
    for index, value in enumerate(sorted(requirement.values)):
        faults = label_value_faults(value)
        if faults:
            where = f"values[{index}][{requirement.key}]"
            listed = "; ".join(faults)
            raise _refuse(f'unable to parse requirement: {where}: Invalid value: "{value}": {listed}')
    return requirement


def _values(lexer: _Lexer) -> frozenset[str]:
    if lexer.next() != "(":
        lexer.at -= 1
        raise _refuse(f"unable to parse requirement: found '{lexer.peek()}' expected: '('")
    values: set[str] = set()
    while True:
        token = lexer.next()
        if _identifier(token):
            values.add(token)
            token = lexer.next()
            if token == ")":
                return frozenset(values)
            if token != ",":
                raise _refuse(f"unable to parse requirement: found '{token}', expected: ',' or ')'")
            if lexer.peek() == ")":
                values.add("")
        elif token == ")":
            return frozenset(values or {""})
        elif token == ",":
            values.add("")
        else:
            raise _refuse(f"unable to parse requirement: found '{token}', expected: ',', ')' or identifier")


def _identifier(token: str) -> bool:
    return bool(token) and token[0] not in "=!(),<>"


def _refuse(text: str) -> Exception:
    return bad_request(text)


@dataclass(frozen=True, slots=True)
class FieldTerm:
    path: str
    value: str
    equal: bool


def parse_fields(text: str, info: ResourceInfo) -> tuple[FieldTerm, ...]:
    """Terms that must all hold. Raises a 400 failure, also for fields that are not selectable."""
    terms: list[FieldTerm] = []
    for part in re.split(r"(?<!\\),", text):
        if not part:
            continue
        match = re.fullmatch(r"(.*?)(==|!=|=)(.*)", part, re.S)
        if match is None:
            raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
        path, operator, value = match.groups()
        if path != "metadata.name" and path not in info.selectable_fields:
            supported = info.namespaced and path == "metadata.namespace"
            if not supported:
                label = f"field label not supported: {path}"
                raise bad_request(
                    label
                    if info.custom or info.selectable_fields
                    else f'"{path}" is not a known field selector: {KNOWN}'
                )
        terms.append(FieldTerm(path, re.sub(r"\\(.)", r"\1", value), operator != "!="))
    return tuple(terms)


def selected_name(fields: str) -> str:
    """The one name a field selector asks for, empty if it asks for none; never fails."""
    found = re.search(r"(?:^|,)\s*metadata\.name\s*==?\s*([^=!,\\\s]+)\s*(?:,|$)", fields)
    return found[1] if found else ""


KNOWN = 'only "metadata.name", "metadata.namespace"'


def field_value(obj: Object, path: str) -> str:
    """A selectable field as the server writes it for comparison; absent is empty."""
    value: Any = obj
    for part in path.split("."):
        if not isinstance(value, dict):
            return ""
        value = value.get(part)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


Predicate = Callable[[Object], bool]


def predicate(labels: str, fields: str, info: ResourceInfo) -> tuple[Predicate | None, str | None]:
    """What objects of `info` must satisfy (None: nothing), and the one name asked for, if any.

    Raises 400 failures.
    """
    requirements = parse_labels(labels) if labels else ()
    terms = parse_fields(fields, info) if fields else ()
    name = next((term.value for term in terms if term.path == "metadata.name" and term.equal), None)
    if not requirements and not terms:
        return None, None

    def matches(obj: Object) -> bool:
        found = obj["metadata"].get("labels") or {}
        return all(requirement.matches(found) for requirement in requirements) and all(
            (field_value(obj, term.path) == term.value) is term.equal for term in terms
        )

    return matches, name
