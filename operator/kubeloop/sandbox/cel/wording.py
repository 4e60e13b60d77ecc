"""The library's complaints in the server's words (the server uses cel-go, the library is cel-cpp)."""

from __future__ import annotations

import re

_STATUS = re.compile(r"^[A-Z_]+: (.*) \[[A-Z_]+\]$", re.DOTALL)
_BLOCK = re.compile(r"^ERROR: <input>:(\d+):(\d+): (.*?)(\n \| .*)?$", re.DOTALL)
_START = re.compile(r"(?:^|\n)(?=ERROR: <input>:)")
_QUALIFIED = re.compile(r"undeclared reference to '([^']+)\.[^'.]+' \(in container ''\)")
_OVERLOAD = re.compile(r"found no matching overload for '(\w+)' applied to '\((.*)\)'")
_COMPILING = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"(undefined field '[^']*') not found in struct '[^']*'", r"\1"),
        (
            r"expression of type '([^']*)' cannot be the operand of a select operation",
            r"type '\1' does not support field selection",
        ),
        (r"has\(\) argument must be a field selection", "invalid argument to has() macro"),
        (r"optional_type<[^>]*>\(", "optional_type("),
        (r"\bnull_type\b", "null"),
        (r"\bgoogle\.protobuf\.Timestamp\b", "timestamp"),
        (r"\bgoogle\.protobuf\.Duration\b", "duration"),
    )
)


def undeclared(text: str) -> list[str]:
    """The names that a compilation error calls undeclared."""
    return re.findall(r"undeclared reference to '([^']+)'", text)


def compilation(text: str, expression: str, *, shifted: bool) -> str:
    """A compilation error; `shifted` says that a line was put before the expression."""
    found = _STATUS.match(text)
    lines = expression.split("\n")
    blocks: list[tuple[int, int, str]] = []
    for part in _START.split(found[1] if found else text):
        block = _BLOCK.match(part)
        if block is None:
            blocks.append((0, 0, part))
            continue
        line, column = int(block[1]) - shifted, int(block[2])
        source = lines[line - 1] if 0 < line <= len(lines) else ""
        blocks.append(_reworded(line, column, block[3], source))
    # What follows from an error before it is not told; the others come in the order of the text.
    kept = [
        part for part in sorted(blocks, key=lambda part: part[:2]) if part[2] and "'*error*'" not in part[2]
    ]
    return "\n".join(part[2] for part in kept)


def _reworded(line: int, column: int, text: str, source: str) -> tuple[int, int, str]:
    for pattern, words in _COMPILING:
        text = pattern.sub(words, text)
    qualified = _QUALIFIED.fullmatch(text)
    if qualified:
        name = qualified[1].partition(".")[0]
        text = f"undeclared reference to '{name}' (in container '')"
        column = max(1, column - len(qualified[1]))
    overload = _OVERLOAD.fullmatch(text)
    if overload and source[: column - 1].endswith(f".{overload[1]}"):
        receiver, _, rest = overload[2].partition(", ")
        if "(" not in receiver or ")" in receiver:
            text = f"found no matching overload for '{overload[1]}' applied to '{receiver}.({rest})'"
    shown = f"\n | {source}\n | {'.' * (column - 1)}^" if source else ""
    return line, column, f"ERROR: <input>:{line}:{column}: {text}{shown}"


_RUNNING = tuple(
    (re.compile(pattern, re.DOTALL), words)
    for pattern, words in (
        (r'Key not found in map : "(.*)"', r"no such key: \1"),
        (r"Key not found in map : (.*)", r"no such key: \1"),
        (r"Index error: index=(-?\d+) size=\d+", r"index out of bounds: \1"),
        (r"divide by zero", "division by zero"),
        (r"cannot convert string to (\w+)", r"type conversion error from 'string' to '\1'"),
        (r"Type conversion error from 'string' to 'bool'", r"type conversion error from 'string' to 'bool'"),
        (
            r"String to (Duration|Timestamp) conversion failed",
            r"type conversion error from 'string' to 'google.protobuf.\1'",
        ),
        (r"No matching overloads found : \((?:\w+)\)\.(\w+)\(.*", r"no such overload: \1"),
        (r"No matching overloads found : ([a-z]\w*)\(.*", r"no such overload: \1"),
        (r"No matching overloads found : .*", "no such overload"),
        (r"invalid regular expression: missing \]: (.*)", r"error parsing regexp: missing closing ]: `\1`"),
        (r"invalid regular expression: missing \): (.*)", r"error parsing regexp: missing closing ): `\1`"),
    )
)


def evaluation(text: str) -> str:
    """A run-time error."""
    text = re.sub(r"^[A-Z_]+: ", "", text)
    for pattern, words in _RUNNING:
        found = pattern.fullmatch(text)
        if found:
            return found.expand(words)
    return text
