"""The repository's root, and fresh interpreters that see this checkout in a chosen way."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def fresh_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new virtual environment's Python: the dependencies are there, this project is not installed."""
    folder = tmp_path_factory.mktemp("fresh venv")
    subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", str(folder)], check=True)
    # Listed in a .pth file, the packages are importable, but their own .pth files (ours among them) are not
    # obeyed.
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin" / "python"


@pytest.fixture(scope="session")
def run() -> Run:
    """Run a command in a folder, with nothing of this process' own Python set-up in its environment."""

    def run(*command: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "KUBE", "VIRTUAL_ENV"))}
        return subprocess.run(
            [str(part) for part in command],
            cwd=cwd,
            env={**clean, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run
