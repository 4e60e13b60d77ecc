"""What is wrong with a declaration, all of it at once, with a guess at what was meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DefinitionError(TypeError):
    """A model or custom resource is declared in a way that cannot work here or on the API server.

    `problems` has one sentence for each fault; the message lists them all.
    """

    def __init__(self, subject: str, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        lines = "".join(f"\n  - {problem}" for problem in self.problems)
        super().__init__(f"{subject} is not declared right:{lines}")


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """` (did you mean 'x'?)` for the nearest candidate, or nothing when none is near."""
    near = difflib.get_close_matches(word, list(candidates), n=1, cutoff=0.6)
    return f" (did you mean {near[0]!r}?)" if near else ""
