"""From the text of a rule to something that can be run, or to what the server says is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

from kubeloop.sandbox.cel import library, wording
from kubeloop.sandbox.cel.types import TypeBook, signature
from kubeloop.sandbox.status import not_implemented_here

_TWO_VARIABLES = re.compile(
    r"\.\s*(?:all|exists|existsOne|exists_one)\s*\(\s*[A-Za-z_]\w*\s*,\s*[A-Za-z_]\w*\s*,"
)


@cache
def _shared() -> list[Any]:
    return [ext_strings.ExtStrings(), ext_optional.ExtOptional()]


@cache
def _checked() -> cel.CelExtension:
    return library.checked()


@cache
def _runner() -> cel.Env:
    names = ("self", "oldSelf", _OLD, _HAS_OLD)
    return cel.NewEnv(
        variables=dict.fromkeys(names, cel.Type.DYN),
        extensions=[*_shared(), ext_bindings.ExtBindings(), library.evaluated()],
    )


_OLD, _HAS_OLD = "kubeloop_old", "kubeloop_has_old"


class RuleError(Exception):
    """An expression could not be evaluated; the text is the server's."""


class Checker:
    """The type checker at one place of a schema: `kind` is the signature of self."""

    def __init__(self, book: TypeBook, kind: str) -> None:
        self._book = book
        self._kind = kind
        self._envs: dict[bool, cel.Env] = {}

    def check(self, expression: str, *, optional: bool, wanted: str) -> str:
        """What is wrong with an expression that is to give a `wanted` (bool or string); empty: nothing.

        Raises ApiFailure 501 when it uses what only the real server has.
        """
        if _TWO_VARIABLES.search(expression):
            raise not_implemented_here("CEL comprehensions with two variables")
        text = f"cel.bind(oldSelf, optional.of({_OLD}),\n{expression}\n)" if optional else expression
        try:
            compiled = self._env(optional).compile(text)
        except RuntimeError as error:
            return f"compilation failed: {_complaint(str(error), expression, shifted=optional)}"
        found = compiled.return_type()
        target = cel.Type.BOOL if wanted == "bool" else cel.Type.STRING
        return "" if found in (target, cel.Type.DYN) else f"must evaluate to a {wanted}"

    def _env(self, optional: bool) -> cel.Env:
        env = self._envs.get(optional)
        if env is None:
            kind = signature(self._kind)
            env = cel.NewEnv(
                self._book.pool(),
                variables={"self": kind, _OLD if optional else "oldSelf": kind},
                extensions=[*_shared(), _checked(), *([ext_bindings.ExtBindings()] if optional else [])],
            )
            self._envs[optional] = env
        return env


def _complaint(text: str, expression: str, *, shifted: bool) -> str:
    for name in wording.undeclared(text):
        if name.partition(".")[0] in library.MISSING:
            raise not_implemented_here(f"the CEL function {name}")
    return wording.compilation(text, expression, shifted=shifted)


@lru_cache(maxsize=4096)
def program(expression: str, *, optional: bool) -> Callable[[Any, Any, bool], Any]:
    """An expression as a function of self, the old self, and whether there is one.

    Raises `RuleError` when it cannot be evaluated; RuntimeError when it does not even parse.
    """
    text = expression
    if optional:
        bound = f"{_HAS_OLD} ? optional.of({_OLD}) : optional.none()"
        text = f"cel.bind(oldSelf, {bound}, ({expression}\n))"
    compiled = _runner().compile(text, disable_check=True)

    def run(new: Any, old: Any, has_old: bool) -> Any:
        data = {"self": new, "oldSelf": None, _OLD: None, _HAS_OLD: has_old}
        data[_OLD if optional else "oldSelf"] = old
        result = compiled.eval(data=data)
        value = result.plain_value()
        if result.type() == cel.Type.ERROR:
            raise RuleError(wording.evaluation(str(value)))
        return value

    return run
