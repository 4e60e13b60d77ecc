"""`operator/` bears the name of a standard library module: it must stand in for it, and run as a program."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]
VERSION = re.compile(r"^webapp-operator \S+$")

PUBLIC_NAMES = """
import json, operator
names = {n: type(v).__name__ for n, v in vars(operator).items() if not n.startswith("_")}
print(json.dumps([operator.__file__, names, operator.__all__, operator.__doc__]))
"""
USES_OF_IT = """
import collections, functools, operator, pickle, statistics, json
assert operator.__file__.endswith("__init__.py"), operator.__file__
Point = collections.namedtuple("Point", "x y")
assert sorted([Point(2, 1), Point(1, 2)], key=operator.attrgetter("x"))[0].x == 1
assert functools.reduce(operator.add, [1, 2, 3]) == 6
assert pickle.loads(pickle.dumps(operator.itemgetter(1)))([1, 2]) == 2
assert operator.methodcaller("upper")("a") == "A" and operator.index(3) == 3
assert operator.itemgetter.__module__ == "operator"
print("ok")
"""


@pytest.fixture
def image_layout(tmp_path: Path, root: Path) -> Path:
    """As in the Dockerfile: /app/operator holds two files only; the packages are installed elsewhere."""
    app = tmp_path / "app"
    (app / "operator").mkdir(parents=True)
    for name in ("__init__.py", "__main__.py"):
        shutil.copy(root / "operator" / name, app / "operator")
    return app


@pytest.fixture
def server() -> Iterator[Callable[[Path], Path]]:
    """A sandbox that knows WebApps and has one; called with a folder, writes a kubeconfig there."""
    from kubeloop.sandbox import Sandbox, SandboxError
    from webapp_operator.types import WebApp

    app = {
        "apiVersion": "example.com/v1",
        "kind": "WebApp",
        "metadata": {"name": "hello", "namespace": "default"},
        "spec": {"image": "nginx:1.27", "replicas": 3},
    }
    with Sandbox(http=True) as sandbox:
        sandbox.apply(WebApp.crd())
        deadline, pause = time.monotonic() + 10, threading.Event()
        while True:
            try:
                sandbox.apply(app)
                break
            except SandboxError:  # the new kind is served a moment later
                assert time.monotonic() < deadline
                pause.wait(0.02)
        yield lambda folder: sandbox.kubeconfig(folder / "kubeconfig")


class TestStandIn:
    def test_it_has_exactly_the_public_names_of_the_standard_library(
        self, fresh_python: Path, run: Run, root: Path
    ) -> None:
        ours = json.loads(run(fresh_python, "-c", PUBLIC_NAMES, cwd=root).stdout)
        theirs = json.loads(run(fresh_python, "-I", "-c", PUBLIC_NAMES, cwd=root).stdout)

        assert ours[0] == str(root / "operator" / "__init__.py")
        assert theirs[0].endswith("operator.py")
        assert ours[1:] == theirs[1:]

    def test_everybody_who_needs_the_real_one_is_served(
        self, fresh_python: Path, run: Run, root: Path
    ) -> None:
        done = run(fresh_python, "-c", USES_OF_IT, cwd=root)

        assert (done.stdout, done.stderr) == ("ok\n", "")

    def test_a_pickle_made_with_it_can_be_read_without_it(
        self, fresh_python: Path, run: Run, root: Path
    ) -> None:
        make = "import operator, pickle; print(pickle.dumps(operator.attrgetter('real')).hex())"
        read = "import pickle, sys; print(pickle.loads(bytes.fromhex(sys.argv[1]))(7))"
        made = run(fresh_python, "-c", make, cwd=root).stdout.strip()

        assert run(fresh_python, "-I", "-c", read, made, cwd=root).stdout == "7\n"

    def test_modules_run_with_dash_m_from_the_root_are_not_disturbed(
        self, fresh_python: Path, run: Run, root: Path
    ) -> None:
        done = run(fresh_python, "-W", "error", "-m", "json.tool", "--help", cwd=root)

        assert (done.returncode, done.stderr) == (0, "")


class TestProgram:
    def test_python_dash_m_operator_runs_from_the_repository_root(
        self, fresh_python: Path, run: Run, root: Path
    ) -> None:
        done = run(fresh_python, "-m", "operator", "--version", cwd=root)

        assert done.returncode == 0, done.stderr
        assert VERSION.match(done.stdout.strip())

    def test_python_dash_m_operator_does_one_pass_from_the_repository_root(
        self, fresh_python: Path, run: Run, root: Path, server: Callable[[Path], Path], tmp_path: Path
    ) -> None:
        """D8."""
        kubeconfig = server(tmp_path)
        done = run(fresh_python, "-m", "operator", "--once", "--kubeconfig", kubeconfig, cwd=root)

        assert done.returncode == 0, done.stderr
        assert "hello" in done.stdout

    def test_it_runs_from_the_image_layout_in_any_folder(
        self,
        fresh_python: Path,
        run: Run,
        root: Path,
        image_layout: Path,
        server: Callable[[Path], Path],
        tmp_path: Path,
    ) -> None:
        """D8. PYTHONPATH holds the stand-in; the packages, installed in the image, come from a path here."""
        environment = {"PYTHONPATH": f"{image_layout}:{root / 'operator'}", "PYTHONSAFEPATH": "1"}
        kubeconfig = server(tmp_path)
        done = run(
            fresh_python, "-m", "operator", "--once", "--kubeconfig", kubeconfig, cwd=tmp_path, **environment
        )

        assert done.returncode == 0, done.stderr
        assert "hello" in done.stdout

    def test_a_safe_path_needs_pythonpath(
        self, fresh_python: Path, run: Run, root: Path, tmp_path: Path
    ) -> None:
        """Under -P the current folder is not searched: it is the standard library's module, silently."""
        without = run(fresh_python, "-P", "-m", "operator", "--version", cwd=root)
        having = run(fresh_python, "-P", "-m", "operator", "--version", cwd=tmp_path, PYTHONPATH=str(root))

        assert (without.returncode, without.stdout) == (0, "")
        assert VERSION.match(having.stdout.strip()), having.stderr

    def test_the_installed_environment_does_not_preload_the_standard_library_module(
        self, run: Run, root: Path
    ) -> None:
        """A .pth file that imports too much would make `python -m operator` do nothing, with exit code 0."""
        done = run(sys.executable, "-m", "operator", "--version", cwd=root)

        assert VERSION.match(done.stdout.strip()), done.stderr

    @pytest.mark.parametrize("script", ["webapp-operator", "book-controller"])
    def test_the_console_scripts_run_anywhere(
        self, script: str, run: Run, root: Path, tmp_path: Path
    ) -> None:
        program = Path(sys.executable).parent / script
        for folder in (root, tmp_path):
            done = run(program, "--help", cwd=folder)
            assert done.returncode == 0, done.stderr
            assert done.stdout.startswith("usage:")
