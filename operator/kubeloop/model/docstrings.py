"""Descriptions out of docstrings: the class' own, and strings written below its attributes.

Attribute docstrings are not kept by Python, so they are read from the source file. Where only byte code is
shipped they are missing; `Field(description=...)` never is, and wins where both are given.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache
from itertools import pairwise


@cache
def attribute_docs(cls: type) -> dict[str, str]:
    """{attribute: docstring} of a class and its bases, nearest first; empty where there is no source."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__ != "builtins":
            docs.update(_own_docs(base))
    return docs


def _own_docs(cls: type) -> dict[str, str]:
    try:
        source = textwrap.dedent(inspect.getsource(cls))
        tree = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError):
        return {}  # a class made at run time, or shipped without source
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    docs = {}
    for statement, follower in pairwise(body):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(follower, ast.Expr)
            and isinstance(follower.value, ast.Constant)
            and isinstance(follower.value.value, str)
        ):
            docs[statement.target.id] = inspect.cleandoc(follower.value.value)
    return docs
