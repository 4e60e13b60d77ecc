"""The pytest plugin, as somebody else's test suite uses it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EXAMPLE = HERE / "kit_example.py"
PAGE = HERE.parents[2] / "docs" / "testing-kit.md"
OPERATOR = Path(__file__).resolve().parents[3] / "operator"
SUITE = """
import sys
import pytest

CM = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}

LOADED = [name for name in sys.modules if name.startswith(("kubeloop.", "yaml"))]

def test_unused_it_imports_nothing():
    assert LOADED == ["kubeloop.sandbox", "kubeloop.sandbox.pytest_plugin"]

def test_in_steps(sandbox):
    assert sandbox.stepped
    sandbox.create(CM)
    sandbox.clock.advance(10)
    sandbox.expect("configmap", "a").to_exist()

@pytest.mark.sandbox(http=True, clock=None)
def test_over_http(sandbox, tmp_path):
    assert sandbox.kubeconfig(tmp_path / "kubeconfig").exists()

def test_several(sandbox_factory):
    one, two = sandbox_factory(step=True), sandbox_factory(step=True)
    one.create(CM)
    assert two.get("configmaps", "a", "default") is None

def test_that_fails(sandbox):
    sandbox.transport().request("GET", "/api/v1/pods", headers={"user-agent": "me/1"})
    assert False

def test_a_bug_of_the_sandbox(sandbox):
    sandbox.backend.faults.append(RuntimeError("a bug"))
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest says of `SUITE`. One process for all: it takes its time to start."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "test_suite.py").write_text(SUITE)
    (folder / "test_example.py").write_text(EXAMPLE.read_text())
    # The suite comes first: it looks at what is not imported yet.
    files = [str(folder / name) for name in ("test_suite.py", "test_example.py")]
    options = ["-p", "kubeloop.sandbox.pytest_plugin", "--strict-markers", "-rA", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(OPERATOR), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *files],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout


@pytest.mark.parametrize(
    "name", ["test_unused_it_imports_nothing", "test_in_steps", "test_over_http", "test_several"]
)
def test_the_fixtures_give_started_sandboxes(report: str, name: str) -> None:
    assert f"PASSED test_suite.py::{name}" in report


def test_a_failing_test_shows_the_last_requests(report: str) -> None:
    assert "FAILED test_suite.py::test_that_fails" in report
    section = report.partition("sandbox requests")[2]
    assert " list pods  -> 200 (me/1)" in section


def test_a_fault_of_the_sandbox_is_an_error_of_the_test(report: str) -> None:
    assert "PASSED test_suite.py::test_a_bug_of_the_sandbox" in report
    assert "ERROR test_suite.py::test_a_bug_of_the_sandbox" in report
    assert "SandboxFault: 1 internal error(s) in the sandbox: RuntimeError('a bug')" in report


@pytest.mark.parametrize(
    "name", ["test_a_rollout", "test_a_lost_answer", "test_a_server_that_forgot", "test_rights"]
)
def test_the_example_of_the_documentation_passes(report: str, name: str) -> None:
    assert f"PASSED test_example.py::{name}" in report
    assert f"```python\n{EXAMPLE.read_text()}```\n" in PAGE.read_text()
