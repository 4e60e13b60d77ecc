"""docs/testing-kit.md shows programs that are run here, word for word."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "testing-kit.md"
EXAMPLES = {"python": HERE / "kopf_operator/example.py", "go": HERE / "client_go/sandbox_test.go"}
PATIENCE = 300.0
"""Seconds: the Go test is compiled first."""


def run(command: list[str], folder: Path) -> None:
    built = Path(os.environ["KUBELOOP_COMPAT"])
    # The sandbox comes from this Python, the kopf command from where it was installed.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], str(built / "kopf/bin")])
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("language", [*EXAMPLES])
def test_the_page_shows_the_example_as_it_is_run(language: str) -> None:
    assert f"```{language}\n{EXAMPLES[language].read_text()}```\n" in PAGE.read_text()


@pytest.mark.compat
@pytest.mark.timeout(PATIENCE)
def test_the_kopf_example_passes(tmp_path: Path) -> None:
    options = ["-p", "kubeloop.sandbox.pytest_plugin", "-p", "no:cacheprovider", f"--basetemp={tmp_path}/run"]
    run([sys.executable, "-m", "pytest", "-q", *options, "example.py"], EXAMPLES["python"].parent)


@pytest.mark.compat
@pytest.mark.timeout(PATIENCE)
def test_the_client_go_example_passes() -> None:
    run(["go", "test", "-trimpath", "-vet=off", "."], EXAMPLES["go"].parent)
