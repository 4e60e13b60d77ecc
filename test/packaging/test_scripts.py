"""The Makefile, the scripts behind it, and how .venv is made."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()

Run = Callable[..., "subprocess.CompletedProcess[str]"]


class TestMakefile:
    def test_plain_make_explains_every_target(self, run: Run, root: Path) -> None:
        done = run("make", cwd=root)
        targets = set(re.findall(r"^\.PHONY: (\S+)$", MAKEFILE, re.MULTILINE)) - {"help"}

        assert done.returncode == 0, done.stderr
        assert targets
        assert not {
            target for target in targets if not re.search(rf"^  {target} +\S", done.stdout, re.MULTILINE)
        }

    def test_every_script_that_it_names_is_there_and_can_be_run(self) -> None:
        scripts = set(re.findall(r"hack/\S+\.sh", MAKEFILE))

        assert scripts
        assert not [name for name in scripts if not os.access(ROOT / name, os.X_OK)]

    def test_it_works_from_another_folder(self, run: Run, root: Path, tmp_path: Path) -> None:
        done = run("make", "-C", root, cwd=tmp_path)

        assert "make TARGET" in done.stdout


@pytest.mark.parametrize(
    "script", [*(ROOT / "hack").glob("*.sh"), ROOT / ".ci" / "run"], ids=lambda p: p.name
)
def test_every_script_is_strict(script: Path) -> None:
    text = script.read_text()

    assert "set -euo pipefail" in text or 'source "$(dirname "$0")/lib.sh"' in text


class TestFindingPython:
    @pytest.fixture
    def find(self, run: Run, root: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
        """lib.sh's find_python with a PATH of its own: `old` and `new` are the names it finds there."""

        def find(*, old: tuple[str, ...], new: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
            for name in (*old, *new):
                program = tmp_path / name
                program.write_text(f"#!/bin/sh\nexit {int(name in old)}\n")
                program.chmod(0o755)
            (tmp_path / "dirname").symlink_to("/usr/bin/dirname")
            return run("/bin/bash", "-c", "source hack/lib.sh; find_python", cwd=root, PATH=str(tmp_path))

        return find

    def test_python3_is_taken_when_it_is_new_enough(
        self, find: Callable[..., subprocess.CompletedProcess[str]]
    ) -> None:
        assert find(old=(), new=("python3", "python3.12")).stdout.endswith("/python3\n")

    def test_an_old_python3_is_passed_over(
        self, find: Callable[..., subprocess.CompletedProcess[str]]
    ) -> None:
        assert find(old=("python3", "python3.13"), new=("python3.12",)).stdout.endswith("/python3.12\n")

    def test_without_a_new_one_the_error_says_what_to_do(
        self, find: Callable[..., subprocess.CompletedProcess[str]]
    ) -> None:
        done = find(old=("python3",), new=())

        assert done.returncode == 1
        assert "no Python 3.11 or newer" in done.stderr
        assert "PYTHON=" in done.stderr


class TestVenv:
    @pytest.fixture
    def venv(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
        """hack/venv.py on a folder of its own; creating and installing are only noted, in `calls`."""
        spec = importlib.util.spec_from_file_location("hack_venv", ROOT / "hack" / "venv.py")
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        folder = tmp_path / "a checkout"
        folder.mkdir()
        places = {
            "ROOT": folder,
            "VENV": folder / ".venv",
            "LOCK": folder / "dev.txt",
            "METADATA": [folder / "setup.cfg"],
            "PACKAGES_STAMP": folder / ".venv" / "packages",
            "PROJECT_STAMP": folder / ".venv" / "project",
        }
        for name, value in places.items():
            monkeypatch.setattr(module, name, value)
        for name in ("dev.txt", "setup.cfg"):
            (folder / name).write_text("1")
        module.calls = []  # type: ignore[attr-defined]

        def create() -> None:
            module.calls.append("create")
            (folder / ".venv" / "bin").mkdir(parents=True, exist_ok=True)
            (folder / ".venv" / "bin" / "python").touch()

        def pip(what: str, _total: int, *_arguments: str) -> None:
            module.calls.append("packages" if "packages" in what else "project")

        monkeypatch.setattr(module, "create", create)
        monkeypatch.setattr(module, "pip", pip)
        monkeypatch.setattr(module, "compile_bytecode", lambda _what, *_folders: None)
        return module

    def test_it_is_made_once(self, venv: ModuleType) -> None:
        assert [venv.main(), venv.main()] == [0, 0]
        assert venv.calls == ["create", "packages", "project"]

    def test_a_changed_lock_makes_it_anew(self, venv: ModuleType) -> None:
        venv.main()
        venv.LOCK.write_text("2")
        venv.main()

        assert venv.calls == ["create", "packages", "project"] * 2

    def test_changed_metadata_only_repeats_the_quick_part(self, venv: ModuleType) -> None:
        venv.main()
        venv.METADATA[0].write_text("2")
        venv.main()

        assert venv.calls == ["create", "packages", "project", "project"]

    def test_it_is_made_anew_when_its_python_has_gone(self, venv: ModuleType) -> None:
        venv.main()
        (venv.VENV / "bin" / "python").unlink()
        venv.main()

        assert venv.calls == ["create", "packages", "project"] * 2

    @pytest.mark.parametrize("failing", ["packages", "project"])
    @pytest.mark.parametrize("error", [KeyboardInterrupt, "SetupError"])
    def test_what_failed_or_was_interrupted_never_counts_as_made(
        self,
        venv: ModuleType,
        monkeypatch: pytest.MonkeyPatch,
        failing: str,
        error: type[BaseException] | str,
    ) -> None:
        works = venv.pip
        raised = error if isinstance(error, type) else getattr(venv, error)

        def fails(what: str, total: int, *arguments: str) -> None:
            if failing in what or (failing == "project" and "editable" in what):
                raise raised
            works(what, total, *arguments)

        monkeypatch.setattr(venv, "pip", fails)
        assert venv.main() != 0
        monkeypatch.setattr(venv, "pip", works)
        venv.calls.clear()

        assert venv.main() == 0
        assert venv.calls[-1] == "project"
        assert ("packages" in venv.calls) == (failing == "packages")
