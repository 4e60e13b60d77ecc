"""The Dockerfile, as far as it can be judged without a container engine."""

from __future__ import annotations

import fnmatch
import json
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def stages() -> list[list[tuple[str, str]]]:
    """Each stage's instructions (name, rest), continuation lines joined, comments dropped."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = [line for line in re.sub(r"\\\n\s*", " ", text).splitlines() if line.strip()]
    found: list[list[tuple[str, str]]] = []
    for line in lines:
        name, _, rest = line.partition(" ")
        if name == "FROM":
            found.append([])
        if found:
            found[-1].append((name, rest))
    return found


def environment(stage: list[tuple[str, str]]) -> dict[str, str]:
    words = [word for name, rest in stage if name == "ENV" for word in shlex.split(rest)]
    return dict(word.split("=", 1) for word in words)


def ignored(path: str) -> bool:
    """Whether .dockerignore keeps `path` out of the build: the last pattern that fits decides."""
    verdict = False
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.strip()
        if pattern and not pattern.startswith("#"):
            wanted = pattern.lstrip("!").replace("**/", "*").replace("/**", "/*")
            if fnmatch.fnmatch(path, wanted):
                verdict = not pattern.startswith("!")
    return verdict


def test_what_is_copied_exists_and_is_not_ignored(stages: list[list[tuple[str, str]]]) -> None:
    copies = [shlex.split(rest) for name, rest in stages[0] if name == "COPY"]
    sources = [source for words in copies for source in words[:-1]]

    assert sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert not ignored(source.rstrip("/") + "/x.py" if source.endswith("/") else source), source


@pytest.mark.parametrize(
    "path", [".git/config", ".venv/bin/python", "test/conftest.py", ".sandbox/kubeconfig", "hack/venv.py"]
)
def test_what_the_image_does_not_need_never_reaches_the_builder(path: str) -> None:
    assert ignored(path)


def test_packages_are_wheels_checked_against_the_lock(stages: list[list[tuple[str, str]]]) -> None:
    commands = " && ".join(rest for name, rest in stages[0] if name == "RUN").split("&&")
    from_outside = [c for c in commands if "pip" in c and " install" in c and "--no-deps" not in c]

    assert len(from_outside) == 2
    assert all("--require-hashes" in c and "--only-binary :all:" in c for c in from_outside)


def test_it_runs_as_a_numeric_user_that_is_not_root(stages: list[list[tuple[str, str]]]) -> None:
    users = [rest for name, rest in stages[-1] if name == "USER"]

    assert len(users) == 1
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[0])


def test_nothing_is_installed_or_run_in_the_final_stage(stages: list[list[tuple[str, str]]]) -> None:
    assert not [rest for name, rest in stages[-1] if name in ("RUN", "ADD")]


def test_python_finds_our_operator_and_writes_no_byte_code(stages: list[list[tuple[str, str]]]) -> None:
    """What this environment does is proved by test_operator_name.py, from the same layout."""
    settings = environment(stages[-1])
    entry = json.loads(next(rest for name, rest in stages[-1] if name == "ENTRYPOINT"))

    assert settings["PYTHONPATH"] == "/app"
    assert settings["PYTHONSAFEPATH"] == settings["PYTHONDONTWRITEBYTECODE"] == "1"
    assert entry == ["python", "-m", "operator"]
