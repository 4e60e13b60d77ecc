"""What is imported is declared, what is declared is locked, and the locks can be trusted."""

from __future__ import annotations

import ast
import configparser
import functools
import re
import sys
from collections.abc import Iterator, Mapping, Set
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / "hack" / "requirements"
EXTRAS = ("tls", "tracing", "sandbox", "dev")
OWN = {"kubeloop", "webapp_operator", "book_controller"}
BROUGHT_ALONG = {
    "pydantic-core": "pydantic pins one exact version of its core: declaring it could only conflict",
}


def normal(name: str) -> str:
    """PEP 503's form of a distribution's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(section: str, key: str) -> set[str]:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    lines = [line for line in config[section][key].splitlines() if line and not line.startswith("#")]
    return {normal(re.split(r"[\s<>=!~;\[]", line)[0]) for line in lines}


def imported(files: Iterator[Path]) -> dict[str, set[str]]:
    """Foreign top-level modules and the files that import them."""
    found: dict[str, set[str]] = {}
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in names:
                top = name.partition(".")[0]
                folders = (*file.parents[:2], ROOT / "hack")
                beside = any((place / top).is_dir() or (place / f"{top}.py").exists() for place in folders)
                if top not in sys.stdlib_module_names and top not in OWN and not beside:
                    found.setdefault(top, set()).add(str(file.relative_to(ROOT)))
    return found


@functools.cache
def modules_by_distribution() -> Mapping[str, list[str]]:
    """Slow: it reads the metadata of everything that is installed."""
    return metadata.packages_distributions()


def distributions(modules: dict[str, set[str]], allowed: Set[str] = frozenset()) -> dict[str, set[str]]:
    """Which distributions have these modules; of several that share a namespace, one that is allowed."""
    known = {module: [normal(name) for name in modules_by_distribution()[module]] for module in modules}
    return {
        next((name for name in known[module] if name in allowed), known[module][0]): files
        for module, files in modules.items()
    }


def pins(lock: str) -> dict[str, str]:
    text = (LOCKS / lock).read_text()
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))


OTHER_ENVIRONMENT = ROOT / "test" / "compat" / "kopf_operator"
"""An operator that runs in a virtual environment of its own, from a lock beside it."""


class TestDeclared:
    def test_the_product_imports_only_what_it_declares(self) -> None:
        sandbox = ROOT / "operator" / "kubeloop" / "sandbox"
        files = (f for f in ROOT.glob("operator/**/*.py") if sandbox not in f.parents)
        allowed = declared("options", "install_requires")
        allowed |= declared("options.extras_require", "tls") | declared("options.extras_require", "tracing")
        used = distributions(imported(files), allowed)
        undeclared = used.keys() - allowed - BROUGHT_ALONG.keys()

        assert not {name: used[name] for name in undeclared}

    def test_the_sandbox_imports_only_what_its_extra_adds(self) -> None:
        sandbox = ROOT / "operator" / "kubeloop" / "sandbox"
        # The plugin is only ever imported by pytest itself.
        files = (file for file in sandbox.rglob("*.py") if file.name != "pytest_plugin.py")
        used = distributions(imported(files))
        allowed = declared("options", "install_requires") | declared("options.extras_require", "sandbox")
        undeclared = used.keys() - allowed - BROUGHT_ALONG.keys()

        assert not {name: used[name] for name in undeclared}

    def test_every_declared_package_is_used(self) -> None:
        used = distributions(imported(ROOT.glob("operator/**/*.py"))).keys()

        assert not declared("options", "install_requires") - used

    def test_tests_and_scripts_import_only_what_is_declared_for_them(self) -> None:
        files = (
            file
            for folder in ("test", "hack", "bench")
            for file in (ROOT / folder).rglob("*.py")
            if OTHER_ENVIRONMENT not in file.parents
        )
        allowed = {name for extra in EXTRAS for name in declared("options.extras_require", extra)}
        allowed |= declared("options", "install_requires") | BROUGHT_ALONG.keys()
        used = distributions(imported(files), allowed)

        assert not {name: used[name] for name in used.keys() - allowed}


class TestLocked:
    @pytest.mark.parametrize("lock", ["runtime.txt", "dev.txt", "mutation.txt", "build.txt"])
    def test_every_pin_has_hashes_and_no_registry_is_named(self, lock: str) -> None:
        text = (LOCKS / lock).read_text()
        blocks = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]

        assert len(blocks) == len(pins(lock)) > 0
        assert all("--hash=sha256:" in block for block in blocks)
        assert "://" not in text
        assert "index" not in re.sub(r"^\s+#.*$", "", text, flags=re.MULTILINE)

    def test_what_is_declared_is_locked(self) -> None:
        # The image makes up a certificate for its metrics (config/manager).
        runtime = declared("options", "install_requires") | declared("options.extras_require", "tls")
        extras = {name for extra in EXTRAS for name in declared("options.extras_require", extra)}

        assert not runtime - pins("runtime.txt").keys()
        assert not (runtime | extras) - pins("dev.txt").keys()

    def test_development_runs_on_the_very_versions_that_are_shipped(self) -> None:
        development = pins("dev.txt")

        assert not {k: v for k, v in pins("runtime.txt").items() if development.get(k) != v}
        assert pins("build.txt").items() <= development.items()

    def test_mutants_meet_the_versions_that_everybody_else_develops_with(self) -> None:
        mutation, development = pins("mutation.txt"), pins("dev.txt")

        assert "mutmut" in mutation
        assert not {k: v for k, v in mutation.items() if development.get(k, v) != v}
