"""The part of kubectl's JSON path that printer columns and selectable fields use.

Fields (``.a.b``, ``['a']``, ``.a\\.b``), indices, wildcards, and filters that compare one field with a
literal (``[?(@.type=="Ready")]``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

Step = Callable[[Any], Iterator[Any]]

_TOKEN = re.compile(
    r"""\.(?P<name>(?:[^.\[\\]|\\.)+)
      | \[(?P<index>-?\d+)\]
      | \[(?P<quote>['"])(?P<key>.*?)(?P=quote)\]
      | (?P<all>\[\*\]|\.\*)
      | \[\?\(\s*@(?P<path>[^=!<>\s]*?)\s*(?P<op>==|!=|<=|>=|<|>)\s*(?P<literal>.*?)\s*\)\]
      | \[\?\(\s*@(?P<exists>[^=!<>]*?)\s*\)\]""",
    re.VERBOSE,
)


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _item(index: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _every(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()


def _literal(text: str) -> Any:
    if text[:1] in ("'", '"'):
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text


def _holds(found: Any, operator: str, wanted: Any) -> bool:
    if isinstance(found, bool) != isinstance(wanted, bool):
        return False
    if operator == "==":
        return bool(found == wanted)
    if operator == "!=":
        return bool(found != wanted)
    try:
        match operator:
            case "<":
                return bool(found < wanted)
            case "<=":
                return bool(found <= wanted)
            case ">":
                return bool(found > wanted)
            case _:
                return bool(found >= wanted)
    except TypeError:
        return False


def _filter(path: str, operator: str, literal: str) -> Step:
    wanted = _literal(literal)

    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            if any(_holds(found, operator, wanted) for found in find(item, path)):
                yield item

    return step


def _having(path: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        for item in value if isinstance(value, list) else ():
            if find(item, path):
                yield item

    return step


@lru_cache(maxsize=512)
def _steps(path: str) -> tuple[Step, ...] | None:
    steps: list[Step] = []
    position = 0
    text = path if path.startswith((".", "[")) or not path else "." + path
    if text == ".":
        return ()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            return None
        position = match.end()
        part = match.groupdict()
        if part["name"] == "*" or part["all"]:
            steps.append(_every)
        elif part["name"] is not None:
            steps.append(_field(re.sub(r"\\(.)", r"\1", part["name"])))
        elif part["index"] is not None:
            steps.append(_item(int(part["index"])))
        elif part["key"] is not None:
            steps.append(_field(part["key"]))
        elif part["op"]:
            steps.append(_filter(part["path"], part["op"], part["literal"]))
        else:
            steps.append(_having(part["exists"]))
    return tuple(steps)


def is_valid(path: str) -> bool:
    """Whether this module can evaluate the path."""
    return _steps(path) is not None


def find(value: Any, path: str) -> list[Any]:
    """Everything `path` selects in `value`; an invalid path selects nothing."""
    found = [value]
    for step in _steps(path) or ():
        found = [result for item in found for result in step(item)]
    return found if _steps(path) is not None else []
