"""Comparing normalised answers, and saying what differs so that a person sees it at once."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH = 400
"""Characters of a value that a message shows."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where an answer is not what the real server says. `step` counts from 1."""

    step: int
    label: str
    path: str
    real: Any
    ours: Any

    def __str__(self) -> str:
        return (
            f"step {self.step} ({self.label}) {self.path or 'answer'}:\n"
            f"    real {_shown(self.real)}\n    ours {_shown(self.ours)}"
        )


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


NOTHING = _Nothing()


def _shown(value: Any) -> str:
    text = repr(value) if value is NOTHING else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= WIDTH else f"{text[:WIDTH]}… ({len(text)} characters)"


def compare(real: Sequence[Mapping[str, Any]], ours: Sequence[Mapping[str, Any]]) -> list[Difference]:
    """Every difference, in the order of the steps."""
    result: list[Difference] = []
    for number in range(max(len(real), len(ours))):
        one = real[number] if number < len(real) else NOTHING
        other = ours[number] if number < len(ours) else NOTHING
        label = next((str(side["step"]) for side in (one, other) if isinstance(side, Mapping)), "")
        found = ((path, a, b) for path, a, b in _differences("", one, other))
        result += [Difference(number + 1, label, path, a, b) for path, a, b in found]
    return result


def _differences(path: str, real: Any, ours: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(real, Mapping) and isinstance(ours, Mapping):
        for key in sorted({*real, *ours}):
            below = f"{path}.{key}" if path else str(key)
            yield from _differences(below, real.get(key, NOTHING), ours.get(key, NOTHING))
    elif isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        for index, (one, other) in enumerate(zip(real, ours, strict=True)):
            yield from _differences(f"{path}[{index}]", one, other)
    # 1, 1.0 and true are three different JSON values, but equal to Python.
    elif type(real) is not type(ours) or real != ours:
        yield path, real, ours
