"""Captured values: taken out of an answer by a path, put into a later request as ``${name}``."""

import re
from collections.abc import Mapping
from typing import Any

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)([+-]\d+)?\}")
_PART = re.compile(
    r"\[(?P<index>\d+)\]|\[(?P<key>[\w.-]+)=(?P<value>[^\]]*)\]"
    r"|\['(?P<quoted>[^']*)'\]|(?P<name>[^.\[\]]+)"
)


class ScriptError(Exception):
    """A script that cannot be played: a mistake in it, or a step it builds on that failed."""


def substitute(value: Any, variables: Mapping[str, Any]) -> Any:
    """`value` with every ``${name}`` replaced; ``${rv+5}`` calculates.

    A string that is one variable and nothing else becomes that variable's value, of whatever type.
    Raises `ScriptError` for an unknown name.
    """
    if isinstance(value, str):
        whole = _VARIABLE.fullmatch(value)
        if whole is not None:
            return _value(whole, variables)
        return _VARIABLE.sub(lambda match: str(_value(match, variables)), value)
    if isinstance(value, Mapping):
        return {substitute(key, variables): substitute(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [substitute(item, variables) for item in value]
    return value


def _value(match: re.Match[str], variables: Mapping[str, Any]) -> Any:
    name, offset = match.groups()
    if name not in variables:
        raise ScriptError(f"no variable {name!r}: known are {', '.join(sorted(variables))}")
    value = variables[name]
    return str(int(value) + int(offset)) if offset else value


class Missing:
    """What `lookup` finds where nothing is."""

    def __repr__(self) -> str:
        return "<nothing>"


MISSING = Missing()


def lookup(value: Any, path: str) -> Any:
    """What stands at `path` (``status.conditions[type=Ready].status``, ``items[0]``, ``.`` for all).

    Gives `MISSING` where there is nothing.
    """
    for part in _PART.finditer(path):
        if (index := part["index"]) is not None:
            value = value[int(index)] if isinstance(value, list) and int(index) < len(value) else MISSING
        elif (key := part["key"]) is not None:
            found = (
                item
                for item in (value if isinstance(value, list) else [])
                if isinstance(item, dict) and str(item.get(key)) == part["value"]
            )
            value = next(found, MISSING)
        else:
            name = part["quoted"] if part["quoted"] is not None else part["name"]
            value = value.get(name, MISSING) if isinstance(value, dict) else MISSING
        if value is MISSING:
            return MISSING
    return value


def merge(base: Any, changes: Any) -> Any:
    """`base` with `changes` merged in: objects by key, null removes, everything else replaces."""
    if not isinstance(base, Mapping) or not isinstance(changes, Mapping):
        return changes
    result = dict(base)
    for key, value in changes.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key, {}), value) if isinstance(value, Mapping) else value
    return result
