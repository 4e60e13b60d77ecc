"""Run mutmut over the decision cores and judge what survives.

mutmut takes a module's name from its path and knows no source root but `src`, so that it would look for
`operator.kubeloop.queue.core`, which nobody imports.  Each core is therefore tested in a folder of its own,
`.mutation/<core>`, where the sources are in `src`, with only that core's tests and settings of its own.  That
also makes every run a run from nothing: the figures never depend on an earlier one.

The report goes to stdout, progress to stderr.  Exit code 1 if a core is below `LEAST`, if a mutant survived
that `hack/mutation.yaml` does not explain, or if mutmut could not finish.
"""

from __future__ import annotations

import argparse
import configparser
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / ".mutation"
EXPLAINED = ROOT / "hack" / "mutation.yaml"
LEAST = 90.0
"""Per cent of its mutants that a core's tests must kill."""
PROGRESS_EVERY = 15.0
"""Seconds between two progress lines where there is no terminal to redraw."""
TIMEOUT_FACTOR = 8.0
"""A mutant is given up (and counts as killed) after this many times the time its tests take, and a second."""

# mutmut's exit codes: its own for what it decides, pytest's, and those of a process that was ended.
SURVIVED = {0, 5, 33}  # the tests passed, or there was none
KILLED = {1, 3, -24, 24, 36, 152, 255, -11, -9}  # failed, out of time, crashed


@dataclass(frozen=True)
class Core:
    """One core: files under operator/kubeloop, and the tests under test/kubeloop that must hold them."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


CORES = {
    "queue": Core(("queue/core.py",), ("queue/test_core.py", "queue/test_workqueue.py")),
    "reflector": Core(("cache/core.py", "cache/ledger.py"), ("cache/test_core.py", "cache/test_ledger.py")),
    "elector": Core(
        ("leader/core.py", "leader/fence.py", "leader/record.py"),
        ("leader/test_core.py", "leader/test_fence.py", "leader/test_record.py"),
    ),
    "apply": Core(
        ("controller/drift.py", "controller/protocol.py"),
        ("controller/test_drift.py", "controller/test_protocol.py"),
    ),
}

CONFTEST = '''\
"""The cheap tests first, as most mutants die before a property is tried; the same examples in every run; and
whatever fails has failed: nobody needs the smallest example."""

import pytest
from hypothesis import Phase, settings

QUICK = {
    "phases": (Phase.explicit, Phase.generate),
    "report_multiple_bugs": False,
    "derandomize": True,
    "database": None,
    "deadline": None,
}
settings.register_profile("mutation", settings.get_profile("ci"), **QUICK)
settings.load_profile("mutation")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.get_closest_marker("hypothesis") is not None)
    for case in {item.cls for item in items if hasattr(item.cls, "settings")}:
        case.settings = settings(case.settings, **QUICK)
'''


class MutationError(Exception):
    """There is no result; the message is for the person at the terminal."""


@dataclass(frozen=True)
class Mutant:
    """A mutant by what it changes: stays the same when mutants are numbered anew."""

    function: str
    """`module.Class.method` or `module.function`."""
    change: tuple[str, ...]
    """The lines of the diff, `- old` and `+ new`, without their indentation."""

    def __str__(self) -> str:
        return "\n".join([self.function, *self.change])


@dataclass(frozen=True)
class Result:
    """What came of one core."""

    mutants: int
    survivors: tuple[Mutant, ...]

    @property
    def score(self) -> float:
        """Per cent killed."""
        return 100 * (self.mutants - len(self.survivors)) / self.mutants


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# The folder in which mutmut works


def prepare(name: str, core: Core) -> Path:
    """A fresh folder with the sources, the core's tests and mutmut's settings."""
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    # Without the files of operator/ itself, which only stand in for the standard library there.
    without = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "operator", folder / "src", ignore=without)
    for stand_in in folder.glob("src/__*__.py"):
        stand_in.unlink()
    (folder / "test").mkdir()
    shutil.copy2(ROOT / "test" / "conftest.py", folder / "test")
    for part in sorted({test.partition("/")[0] for test in core.tests}):
        place = Path("test") / "kubeloop" / part
        shutil.copytree(ROOT / place, folder / place, ignore=without)
    (folder / "conftest.py").write_text(CONFTEST)
    with open(folder / "setup.cfg", "w") as file:
        settings(core).write(file)
    return folder


def settings(core: Core) -> configparser.RawConfigParser:
    """mutmut's section, and the repository's own for pytest."""
    ours = configparser.RawConfigParser()
    ours.read(ROOT / "setup.cfg")
    config = configparser.RawConfigParser()
    config["tool:pytest"] = {**ours["tool:pytest"], "pythonpath": "src", "timeout": "60"}
    config["mutmut"] = {
        "source_paths": "src",
        "only_mutate": _lines(f"src/kubeloop/{file}" for file in core.files),
        "also_copy": "conftest.py",
        "pytest_add_cli_args_test_selection": _lines(f"test/kubeloop/{test}" for test in core.tests),
        "pytest_add_cli_args": "\n-p\nno:cacheprovider",
        "timeout_multiplier": str(TIMEOUT_FACTOR),
        "track_dependencies": "false",
        "use_git_change_detection": "false",
    }
    return config


def _lines(values: Iterable[str]) -> str:
    return "".join(f"\n{value}" for value in values)


def run(name: str, folder: Path, workers: int) -> None:
    """Let mutmut test all mutants in `folder`, showing how far it is."""
    command = [str(WORK / "venv" / "bin" / "mutmut"), "run", "--max-children", str(workers)]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
    started = shown = time.monotonic()
    redraw = sys.stderr.isatty()
    log = folder / "mutmut.log"
    with (
        open(log, "wb") as output,
        subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        assert process.stdout is not None
        while chunk := os.read(process.stdout.fileno(), 65536):
            output.write(chunk)
            counts = re.findall(rb"(\d+)/(\d+)", chunk)
            now = time.monotonic()
            if counts and (redraw or now - shown >= PROGRESS_EVERY):
                shown = now
                line = f"{name}: {int(counts[-1][0])} of {int(counts[-1][1])} mutants, {now - started:.0f} s"
                print(f"\r\033[K{line}" if redraw else line, end="" if redraw else "\n", file=sys.stderr)
                sys.stderr.flush()
    if redraw:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    if process.returncode:
        tail = re.sub(r".*\r", "", log.read_text(errors="replace"))[-3000:]
        raise MutationError(
            f"{name}: mutmut failed (all of its output is in {log.relative_to(ROOT)}).\n{tail}"
        )


# What came of it


def result(folder: Path, core: Core) -> Result:
    """Read what mutmut left in `folder`."""
    mutants = 0
    survivors: list[Mutant] = []
    for file in core.files:
        mutated = folder / "mutants" / "src" / "kubeloop" / file
        codes: dict[str, int | None] = json.loads(_beside(mutated, ".meta").read_text())["exit_code_by_key"]
        spans: dict[str, list[int]] = json.loads(_beside(mutated, ".spans").read_text())["spans"]
        text = mutated.read_text().splitlines()
        mutants += len(codes)
        for key, code in codes.items():
            name = key.rpartition(".")[2]
            if code in SURVIVED:
                survivors.append(_mutant(mutated.stem, name, text, spans))
            elif code not in KILLED:
                raise MutationError(f"mutmut did not finish with {key}: code {code}")
    if not mutants:
        raise MutationError(f"there is nothing to mutate in {', '.join(core.files)}")
    return Result(mutants, tuple(survivors))


def _beside(file: Path, ending: str) -> Path:
    return file.with_name(file.name + ending)


def _mutant(module: str, name: str, text: list[str], spans: Mapping[str, list[int]]) -> Mutant:
    mangled = name.partition("__mutmut_")[0]
    original, changed = (
        [re.sub(r"\S*__mutmut_\w+", "", line) for line in text[spans[which][0] - 1 : spans[which][1]]]
        for which in (f"{mangled}__mutmut_orig", name)
    )
    return Mutant(f"{module}.{_function(mangled)}", tuple(_difference(original, changed)))


def _function(mangled: str) -> str:
    """`Class.method` of mutmut's `xǁClassǁmethod`, `function` of its `x_function`."""
    return mangled[2:].replace("ǁ", ".")


def _difference(original: list[str], changed: list[str]) -> Iterator[str]:
    for line in list(difflib.unified_diff(original, changed, n=0, lineterm=""))[2:]:
        if not line.startswith("@@"):
            yield f"{line[0]} {line[1:].strip()}"


# What is known already


def explained(text: str) -> dict[str, Counter[Mutant]]:
    """The mutants that are known to survive, by core: a mutant that is listed twice may survive twice."""
    cores = yaml.safe_load(text) or {}
    return {
        name: Counter(mutant for group in groups or () for mutant in parse(group["mutants"]))
        for name, groups in cores.items()
    }


def parse(text: str) -> Iterator[Mutant]:
    """Read diffs under the name of their function; it needs no repeating from one diff to the next."""
    function = ""
    change: list[str] = []
    for line in [*map(str.strip, text.splitlines()), ""]:
        again = line.startswith("- ") and change and change[-1].startswith("+ ")
        if change and (again or not line.startswith(("- ", "+ "))):
            yield Mutant(function, tuple(change))
            change = []
        if line.startswith(("- ", "+ ")):
            change.append(line)
        elif line:
            function = line


def judge(name: str, found: Result, known: Counter[Mutant]) -> bool:
    """Print what has to be done about a core; whether that is nothing."""
    survivors = Counter(found.survivors)
    unknown, gone = survivors - known, known - survivors
    if found.score < LEAST:
        print(f"\n{name}: {found.score:.1f} % killed, and at least {LEAST:g} % are asked for")
    if unknown:
        print(f"\n{name}: {unknown.total()} survived that {EXPLAINED.name} does not explain:")
        for mutant in unknown.elements():
            print(f"\n{mutant}")
    if gone:
        print(f"\n{name}: {gone.total()} of {EXPLAINED.name} did not survive (any more); to be taken out:")
        for mutant in gone.elements():
            print(f"\n{mutant}")
    return found.score >= LEAST and not unknown


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="hack/mutation.sh", description="Mutation tests of the decision cores"
    )
    parser.add_argument("core", nargs="*", help=f"{', '.join(CORES)}; without: all")
    parser.add_argument("--workers", type=int, default=int(os.environ.get("MUTATION_WORKERS", "2")))
    parser.add_argument("--again", action="store_true", help="judge what the last run left behind")
    options = parser.parse_args()
    names: list[str] = options.core or list(CORES)
    if unknown := set(names) - set(CORES):
        parser.error(f"there is no core {', '.join(sorted(unknown))}")
    known = explained(EXPLAINED.read_text())
    results: dict[str, Result] = {}
    try:
        for name in names:
            if not options.again:
                run(name, prepare(name, CORES[name]), options.workers)
            results[name] = result(WORK / name, CORES[name])
    except (MutationError, OSError) as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        say("\nInterrupted.")
        return 130
    verdicts = [judge(name, found, known.get(name, Counter())) for name, found in results.items()]
    print(f"\n{'core':<12}{'mutants':>8}{'killed':>8}{'survived':>10}")
    for name, found in results.items():
        lived = len(found.survivors)
        print(f"{name:<12}{found.mutants:>8}{found.mutants - lived:>8}{lived:>10}{found.score:>8.1f} %")
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
