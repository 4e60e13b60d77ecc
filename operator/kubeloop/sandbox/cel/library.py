"""Kubernetes' own functions (apiserver: pkg/cel/library): their types for the checker, and what they do.

Quantities, URLs, addresses and versions are opaque to expressions; here they are maps with one key, the name
of their type, over a canonical text, so that the library's ``==`` compares them rightly.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from cel_expr_python import cel

from kubeloop.sandbox.cel import collections, net, quantities, semver, texts
from kubeloop.sandbox.cel.types import OPAQUE, signature
from kubeloop.sandbox.cel.values import wire


class Function(NamedTuple):
    """One overload: `types` are those of the checker, receiver first when `member`."""

    name: str
    member: bool
    types: tuple[str, ...]
    result: str
    call: Callable[..., Any]


_Q, _U, _IP, _CIDR, _SEM = "kubernetes.Quantity", "kubernetes.URL", "net.IP", "net.CIDR", "kubernetes.Semver"


def _global(name: str, types: tuple[str, ...], result: str, call: Callable[..., Any]) -> Function:
    return Function(name, False, types, result, call)


def _member(name: str, types: tuple[str, ...], result: str, call: Callable[..., Any]) -> Function:
    return Function(name, True, types, result, call)


def _quantities() -> list[Function]:
    q = quantities
    found = [
        _global("quantity", ("string",), _Q, q.quantity),
        _global("isQuantity", ("string",), "bool", q.is_quantity),
        _global("sign", (_Q,), "int", q.sign),
        _member("isInteger", (_Q,), "bool", q.is_integer),
        _member("asInteger", (_Q,), "int", q.as_integer),
        _member("asApproximateFloat", (_Q,), "double", q.as_float),
    ]
    for other in (_Q, "int"):
        found.append(_member("add", (_Q, other), _Q, q.add))
        found.append(_member("sub", (_Q, other), _Q, q.sub))
    return found


def _ordering() -> list[Function]:
    found = []
    for kind, compare in ((_Q, quantities.compare), (_SEM, semver.compare)):
        found += [
            _member("compareTo", (kind, kind), "int", compare),
            _member("isLessThan", (kind, kind), "bool", lambda a, b, c=compare: c(a, b) < 0),
            _member("isGreaterThan", (kind, kind), "bool", lambda a, b, c=compare: c(a, b) > 0),
        ]
    return found


def _network() -> list[Function]:
    n = net
    found = [
        _global("url", ("string",), _U, n.url),
        _global("isURL", ("string",), "bool", n.is_url),
        _global("ip", ("string",), _IP, n.ip),
        _global("isIP", ("string",), "bool", n.is_ip),
        _global("ip.isCanonical", ("string",), "bool", n.is_canonical),
        _global("cidr", ("string",), _CIDR, n.cidr),
        _global("isCIDR", ("string",), "bool", n.is_cidr),
        _global("string", (_IP,), "string", n.text),
        _global("string", (_CIDR,), "string", n.text),
        _member("getQuery", (_U,), "map(string,list(string))", n.query),
        _member("family", (_IP,), "int", n.family),
        _member("prefixLength", (_CIDR,), "int", n.prefix_length),
        _member("ip", (_CIDR,), _IP, n.ip_of),
        _member("masked", (_CIDR,), _CIDR, n.masked),
    ]
    for name, part in n.URL_PARTS.items():
        found.append(_member(name, (_U,), "string", part))
    for name, test in n.IP_TESTS.items():
        found.append(_member(name, (_IP,), "bool", test))
    for other in (_IP, "string"):
        found.append(_member("containsIP", (_CIDR, other), "bool", n.contains_ip))
    for other in (_CIDR, "string"):
        found.append(_member("containsCIDR", (_CIDR, other), "bool", n.contains_cidr))
    return found


_ORDERED = ("int", "double", "string", "bool", "duration", "timestamp", "bytes")


def _lists() -> list[Function]:
    found = []
    for kind in _ORDERED:
        some = f"list({kind})"
        found.append(_member("isSorted", (some,), "bool", collections.is_sorted))
        found.append(_member("sort", (some,), some, sorted))
        found.append(_member("min", (some,), kind, collections.least))
        found.append(_member("max", (some,), kind, collections.most))
    for kind, zero in (("int", 0), ("double", 0.0)):
        found.append(_member("sum", (f"list({kind})",), kind, lambda items, z=zero: sum(items, z)))
    found.append(_member("sum", ("list(duration)",), "duration", collections.sum_durations))
    found.append(_member("indexOf", ("list(~T)", "~T"), "int", collections.index_of))
    found.append(_member("lastIndexOf", ("list(~T)", "~T"), "int", collections.last_index_of))
    found.append(_member("slice", ("list(~T)", "int", "int"), "list(~T)", collections.cut))
    found.append(_member("reverse", ("list(~T)",), "list(~T)", collections.backwards))
    found.append(_member("distinct", ("list(~T)",), "list(~T)", collections.distinct))
    found.append(_global("lists.range", ("int",), "list(int)", lambda size: list(range(size))))
    for name, test in collections.SET_TESTS.items():
        found.append(_global(name, ("list(~T)", "list(~T)"), "bool", test))
    return found


def _strings() -> list[Function]:
    return [
        _member("find", ("string", "string"), "string", texts.find),
        _member("findAll", ("string", "string"), "list(string)", texts.find_all),
        _member("findAll", ("string", "string", "int"), "list(string)", texts.find_all),
    ]


def _versions() -> list[Function]:
    found = [
        _global("semver", ("string",), _SEM, semver.semver),
        _global("isSemver", ("string",), "bool", semver.is_semver),
    ]
    for index, name in enumerate(("major", "minor", "patch")):
        found.append(_member(name, (_SEM,), "int", lambda value, i=index: semver.part(value, i)))
    return found


def _comparisons() -> list[Function]:
    """Numbers of different types compare, which the library only allows at run time."""
    found = []
    tests: dict[str, Callable[[Any, Any], bool]] = {
        "_<_": lambda a, b: bool(a < b),
        "_<=_": lambda a, b: bool(a <= b),
        "_>_": lambda a, b: bool(a > b),
        "_>=_": lambda a, b: bool(a >= b),
    }
    for name, test in tests.items():
        for one, two in itertools.permutations(("int", "double", "uint"), 2):
            found.append(_global(name, (one, two), "bool", test))
    return found


MISSING = frozenset(("format", "authorizer", "flatten", "transformList", "transformMap", "transformMapEntry"))
"""Names that the real server knows and this library does not."""


@cache
def functions() -> tuple[Function, ...]:
    """Every overload."""
    parts = (_quantities, _ordering, _network, _lists, _strings, _versions)
    return tuple(function for part in parts for function in part())


def checked() -> cel.CelExtension:
    """The functions as the type checker is to know them."""
    return _extension((*functions(), *_comparisons()), lambda function: ((function.types, function.result),))


def evaluated() -> cel.CelExtension:
    """The functions for untyped expressions: chosen by what values are at run time."""
    return _extension(functions(), lambda function: tuple(_run_time(function)))


def _extension(
    known: Iterable[Function], overloads: Callable[[Function], tuple[tuple[tuple[str, ...], str], ...]]
) -> cel.CelExtension:
    by_name: dict[str, dict[tuple[bool, tuple[str, ...]], tuple[str, list[Function]]]] = {}
    for function in known:
        for types, result in overloads(function):
            kinds = by_name.setdefault(function.name, {})
            kinds.setdefault((function.member, types), (result, []))[1].append(function)
    declared = []
    for name, kinds in by_name.items():
        made = [
            cel.Overload(
                f"k8s_{name}_{number}",
                signature(result),
                [signature(kind) for kind in types],
                member,
                _choice(candidates),
            )
            for number, ((member, types), (result, candidates)) in enumerate(kinds.items())
        ]
        declared.append(cel.FunctionDecl(name, made))
    return cel.CelExtension("kubernetes", declared)


def _choice(candidates: list[Function]) -> Callable[..., Any]:
    """One implementation for overloads that look the same at run time: opaque values tell their types."""

    def call(*args: Any) -> Any:
        for function in candidates:
            if all(_fits(arg, kind) for arg, kind in zip(args, function.types, strict=True)):
                return wire(function.call(*args))
        raise ValueError("no such overload")

    return call


def _fits(value: Any, kind: str) -> bool:
    if kind in OPAQUE:
        return isinstance(value, dict) and kind in value
    if kind.startswith("list("):
        wanted = _CLASSES.get(kind[len("list(") : -1])
        return wanted is None or all(type(item) is wanted for item in value)
    return True


_CLASSES = {
    "int": int,
    "double": float,
    "string": str,
    "bool": bool,
    "bytes": bytes,
    "duration": timedelta,
    "timestamp": datetime,
}


def _run_time(function: Function) -> list[tuple[tuple[str, ...], str]]:
    """The signatures of an overload in terms of what values look like at run time."""
    choices: list[tuple[str, ...]] = [()]
    for kind in function.types:
        options = _looks(kind)
        choices = [(*before, option) for before in choices for option in options]
    return [(types, "dyn") for types in choices]


def _looks(kind: str) -> tuple[str, ...]:
    if kind.startswith("list("):
        return ("list",)
    if kind.startswith("map(") or kind in OPAQUE:
        return ("map",)
    if kind == "~T":
        return (*_ORDERED, "map", "list")
    return (kind,)
