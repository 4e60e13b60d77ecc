"""hack/mutation.py: how mutants are told apart, which are known, and when a run fails."""

from __future__ import annotations

import importlib
import json
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

HACK = Path(__file__).resolve().parents[2] / "hack"

MUTATED = """\
class Queue:
    def xǁQueueǁadd__mutmut_orig(self, key):
        if key:
            return 0
        return 0
    def xǁQueueǁadd__mutmut_1(self, key):
        if not key:
            return 0
        return 0
    def xǁQueueǁadd__mutmut_2(self, key):
        if key:
            return 1
        return 0
    def xǁQueueǁadd__mutmut_3(self, key):
        if key:
            return 0
        return 1
"""


@pytest.fixture
def mutation(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(HACK))
    return importlib.import_module("mutation")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What mutmut leaves behind: the first mutant was killed, the others survived."""
    place = tmp_path / "mutants" / "src" / "kubeloop" / "queue"
    place.mkdir(parents=True)
    (place / "core.py").write_text(MUTATED)
    codes = {f"kubeloop.queue.core.xǁQueueǁadd__mutmut_{n}": code for n, code in [(1, 1), (2, 0), (3, 33)]}
    (place / "core.py.meta").write_text(json.dumps({"exit_code_by_key": codes}))
    spans = {"orig": [2, 5], "1": [6, 9], "2": [10, 13], "3": [14, 17]}
    (place / "core.py.spans").write_text(
        json.dumps({"spans": {f"xǁQueueǁadd__mutmut_{name}": span for name, span in spans.items()}})
    )
    return tmp_path


def test_a_survivor_is_known_by_its_function_and_what_it_changes(mutation: ModuleType, folder: Path) -> None:
    found = mutation.result(folder, mutation.Core(("queue/core.py",), ()))

    assert found.mutants == 3
    assert found.score == pytest.approx(100 / 3)
    # The same line occurs twice in the function: two mutants that look alike.
    assert Counter(found.survivors) == {mutation.Mutant("core.Queue.add", ("- return 0", "+ return 1")): 2}


def test_a_mutant_that_was_not_judged_is_no_result(mutation: ModuleType, folder: Path) -> None:
    meta = folder / "mutants/src/kubeloop/queue/core.py.meta"
    meta.write_text(meta.read_text().replace("33", "null"))

    with pytest.raises(mutation.MutationError, match="did not finish"):
        mutation.result(folder, mutation.Core(("queue/core.py",), ()))


def test_the_list_of_the_explained_reads_like_the_report(mutation: ModuleType) -> None:
    mutants = [
        mutation.Mutant("core.f", ("- a", "+ b")),
        mutation.Mutant("core.f", ("- a", "- b", "+ c", "+ d")),
        mutation.Mutant("core.C.g", ("- case 1:", "- return 2")),
        mutation.Mutant("core.C.g", ("- case 3:",)),
    ]

    assert list(mutation.parse("\n\n".join(map(str, mutants)))) == mutants
    assert list(mutation.parse("core.f\n  - a\n  + b\n  - a\n  - b\n  + c\n  + d\n")) == mutants[:2]


def test_whoever_is_listed_once_may_survive_once(
    mutation: ModuleType, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutation, "LEAST", 30)
    found = mutation.result(folder, mutation.Core(("queue/core.py",), ()))
    text = "queue:\n  - why: so\n    mutants: |\n      core.Queue.add\n      - return 0\n      + return 1\n"
    once = mutation.explained(text)["queue"]

    assert not mutation.judge("queue", found, once)
    assert "core.Queue.add\n- return 0\n+ return 1" in capsys.readouterr().out
    assert mutation.judge("queue", found, once + once)
    assert capsys.readouterr().out == ""
    assert mutation.judge("queue", found, once + once + once)  # worth a word, but no failure
    assert "to be taken out" in capsys.readouterr().out


def test_a_core_whose_tests_kill_too_few_fails_however_well_that_is_explained(
    mutation: ModuleType, folder: Path
) -> None:
    found = mutation.result(folder, mutation.Core(("queue/core.py",), ()))

    assert not mutation.judge("queue", found, Counter(found.survivors))


def test_every_core_and_its_tests_are_there_and_every_explanation_is_of_one(mutation: ModuleType) -> None:
    for core in mutation.CORES.values():
        assert all((mutation.ROOT / "operator" / "kubeloop" / file).is_file() for file in core.files)
        assert all((mutation.ROOT / "test" / "kubeloop" / test).is_file() for test in core.tests)
    known = mutation.explained(mutation.EXPLAINED.read_text())
    assert known.keys() <= mutation.CORES.keys()
    assert all(mutant.function and mutant.change for mutants in known.values() for mutant in mutants)
