"""docs/behaviours.md names every behaviour and report, and tests that exist and say what they show."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "behaviours.md"

BEHAVIOURS = [f"Behaviour {number}" for number in range(1, 16)]
REPORTS = [
    "kubernetes-client/python#819",
    "kubernetes-client/python#2087",
    "kube-rs/kube#577",
    "kube-rs/kube#1132",
    "nolar/kopf#962",
    "nolar/kopf#980",
    "kubernetes-client/python#2679",
    "kube-rs/kube#874",
    "kubernetes-client/python#1914",
    "zalando-incubator/kopf#142",
    "kubernetes-sigs/controller-runtime#2831",
    "kubernetes/kubernetes#112325",
    "prometheus-operator/prometheus-operator#4519",
    "cert-manager/cert-manager#2941",
    "zalando/postgres-operator#2678",
    "kubernetes-sigs/cluster-api#8949",
    "strimzi/strimzi-kafka-operator#11901",
    "kubernetes-sigs/controller-runtime#1423",
    "kubernetes/kubernetes#47366",
    "kube-rs/kube#1772",
    "kubernetes/kubernetes#91966",
    "jaegertracing/jaeger-operator#963",
    "kubernetes/kubernetes#124605",
    "kubernetes/kubernetes#84123",
    "knative/serving#7556",
    "argoproj/argo-rollouts#243",
    "zalando/postgres-operator#2338",
    "CrunchyData/postgres-operator#3163",
    "kubernetes-client/python#2584",
    "tomplus/kubernetes_asyncio#257",
    "kubernetes-client/python#422",
    "nolar/kopf#686",
]

NAME = r"Behaviour \d+|[\w.-]+/[\w.-]+#\d+"
Test = tuple[str, str]
"""A file, and a function in it."""


@cache
def rows() -> dict[str, list[Test]]:
    """What the table says: the tests of each behaviour and report."""
    found: dict[str, list[Test]] = {}
    for line in TABLE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) != 3 or not (name := re.fullmatch(rf"(\d+)|(?:\d+\. )?({NAME})", cells[0])):
            continue
        key = f"Behaviour {name[1]}" if name[1] else name[2]
        assert key not in found, f"{key} is in the table twice"
        tests = []
        for part in cells[2].split("<br>"):
            link = re.match(r"\[[\w.]+\]\(\.\./([\w/.]+)\): ", part)
            assert link, f"{key}: what file is meant by {part!r}?"
            tests += [(link[1], test) for test in re.findall(r"`(\w+)`", part)]
        found[key] = tests
    return found


@cache
def docstrings(file: str) -> dict[str, str]:
    """The tests of a file, and what they say they show."""
    tree = ast.parse((ROOT / file).read_text())
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")]
    return {function.name: ast.get_docstring(function) or "" for function in functions}


def names(docstring: str) -> list[str]:
    """The behaviours and reports that a docstring begins with."""
    return re.findall(NAME, docstring.partition(": ")[0])


@pytest.mark.parametrize("name", [*BEHAVIOURS, *REPORTS])
def test_the_table_names_tests_that_exist_and_say_so(name: str) -> None:
    """Nobody loses one: a test that is renamed or removed takes its line in the table along."""
    tests = rows().get(name)
    assert tests, f"{name} is not in {TABLE.name}"
    for file, test in tests:
        assert (ROOT / file).is_file(), f"{name}: there is no {file}"
        docstring = docstrings(file).get(test)
        assert docstring is not None, f"{name}: there is no {test} in {file}"
        assert name in names(docstring), f"{name}: the docstring of {test} does not begin with it"


def test_the_table_has_no_other_names() -> None:
    """What is in the table is known here, so that it cannot be lost either."""
    assert sorted(rows()) == sorted([*BEHAVIOURS, *REPORTS])


FILES = [
    *sorted(Path(__file__).parent.rglob("test_go_anchors_*.py")),
    *sorted(Path(__file__).parent.rglob("test_bug_reports_*.py")),
    ROOT / "test" / "e2e" / "test_bug_reports.py",
]


@pytest.mark.parametrize("file", [str(path.relative_to(ROOT)) for path in FILES])
def test_every_test_says_what_it_shows_and_is_in_the_table(file: str) -> None:
    """The docstring of each test begins with the behaviour or the report that it is about."""
    for test, docstring in docstrings(file).items():
        found = names(docstring)
        assert found, f"{test} does not say what it shows"
        for name in found:
            assert (file, test) in rows().get(name, []), f"{test} is missing from the line of {name}"
