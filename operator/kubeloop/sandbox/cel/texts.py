"""Regular expressions in expressions."""

from __future__ import annotations

import re

from kubeloop.sandbox.schema.formats import go_pattern


def _compiled(pattern: str) -> re.Pattern[str]:
    found = go_pattern(pattern)
    if found is None:
        raise ValueError(f"Illegal regex: error parsing regexp: `{pattern}`")
    return found


def find(text: str, pattern: str) -> str:
    """The first match, or an empty string. Raises ValueError for a bad pattern."""
    found = _compiled(pattern).search(text)
    return found.group() if found else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """All matches, at most `limit` when that is not negative. Raises ValueError for a bad pattern."""
    matches = [match.group() for match in _compiled(pattern).finditer(text)]
    return matches if limit < 0 else matches[:limit]
