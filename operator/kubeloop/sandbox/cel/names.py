"""How field names are written in expressions (apiserver: cel.Escape)."""

from __future__ import annotations

import re

_RESERVED = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_SPECIAL = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ESCAPED = re.compile(r"__|[./-]")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OLD_SELF = re.compile(r"\boldSelf\b")
_STRING = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")


def escape(name: str) -> str | None:
    """The name of a property in expressions; None when no expression can name it."""
    if name in _RESERVED:
        return f"__{name}__"
    escaped = _ESCAPED.sub(lambda found: _SPECIAL[found.group()], name)
    return escaped if _IDENTIFIER.fullmatch(escaped) else None


def uses_old_self(rule: str) -> bool:
    """Whether a rule is a transition rule."""
    return _OLD_SELF.search(_STRING.sub("''", rule)) is not None


def spellings(name: str) -> tuple[str, ...]:
    """Every name under which expressions see a property; reserved words that parse have two."""
    escaped = escape(name)
    if escaped is None:
        return ()
    return (escaped, name) if name in _RESERVED - _UNSPEAKABLE else (escaped,)


_UNSPEAKABLE = frozenset(("true", "false", "null", "in"))
_INDEX = re.compile(r"\.(?P<name>[A-Za-z_][A-Za-z0-9_]*)|\['(?P<quoted>(?:\\.|[^'\\])*)'\]")


def field_path(path: str) -> list[str] | None:
    """The property names of a rule's ``fieldPath``; None when it is none (apiextensions: ValidFieldPath)."""
    names: list[str] = []
    end = 0
    while end < len(path):
        found = _INDEX.match(path, end)
        if found is None:
            return None
        quoted = found["quoted"]
        names.append(found["name"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
        end = found.end()
    return names or None
