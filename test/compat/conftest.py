"""Unmodified clients as judges of the sandbox: what they need to run.

What needs nothing but the development packages runs in every `make test`: kubectl and the official Python
client. kopf, the Go and the Rust programs (marked `compat`) are built and run by `make test-compat`, into a
folder that `$KUBELOOP_COMPAT` names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kubeloop.sandbox import DeploymentOptions, Sandbox

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
TIMEOUT = 60
"""Seconds that one command may take."""
NORMAL_REFUSALS = frozenset({404, 409})
"""What a client is told in the course of things: not there (yet), somebody was faster."""
JSON_PATCH = "application/json-patch+json"
"""Refused with 422 when its `test` of the resourceVersion fails: the guard of kopf and kube-rs, their 409."""


@dataclass(frozen=True)
class Server:
    """A running sandbox, and the folder with its kubeconfig."""

    sandbox: Sandbox
    folder: Path

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def environment(self) -> dict[str, str]:
        """What a client process gets: this server, and nothing of the user's own set-up."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), "KUBECONFIG": str(self.kubeconfig)}

    def assert_nothing_was_refused(self) -> None:
        """Fail if a client asked for something, or in a way, that the sandbox does not know."""
        refused = [
            f"{entry} {entry.path}"
            for entry in self.sandbox.log.entries()
            if entry.status >= 400
            and entry.status not in NORMAL_REFUSALS
            and (entry.status, entry.content_type) != (422, JSON_PATCH)
        ]
        assert not refused, "\n".join(refused)


def start(folder: Path, *, tls: bool) -> Sandbox:
    sandbox = Sandbox(http=True, tls=tls, deployments=DeploymentOptions(ready_after=0.1)).start()
    sandbox.kubeconfig(folder / "kubeconfig")
    sandbox.apply_yaml((HERE / "greetings.yaml").read_text())
    return sandbox


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One sandbox for the tests of a module, which leave nothing behind in it."""
    folder = tmp_path_factory.mktemp("compat")
    sandbox = start(folder, tls=True)
    try:
        yield Server(sandbox, folder)
    finally:
        sandbox.stop()
    sandbox.check()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A sandbox for one test."""
    sandbox = start(tmp_path, tls=True)
    try:
        yield Server(sandbox, tmp_path)
    finally:
        sandbox.stop()
    sandbox.check()


def kubectl_minor(path: str) -> str:
    """``1.37``; empty if that is no kubectl that runs."""
    done = subprocess.run(
        [path, "version", "--client", "-o", "json"],
        capture_output=True, text=True, timeout=TIMEOUT, check=False,
    )  # fmt: skip
    if done.returncode:
        return ""
    version = json.loads(done.stdout)["clientVersion"]
    return f"{version['major']}.{version['minor']}".rstrip("+")


def kubectls() -> dict[str, str]:
    """By minor version: the development package's, `make test-compat`'s own, and those on PATH."""
    folders = [sysconfig.get_path("scripts")]
    if built := os.environ.get("KUBELOOP_COMPAT"):
        folders.append(str(Path(built) / "kubectl" / "bin"))
    folders += os.environ["PATH"].split(os.pathsep)
    paths = [path for folder in dict.fromkeys(folders) if (path := Path(folder) / "kubectl").is_file()]
    found: dict[str, str] = {}
    for path in paths:
        if minor := kubectl_minor(str(path)):
            found.setdefault(minor, str(path))
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what asks for `kubectl_path` with each minor version there is."""
    if "kubectl_path" in metafunc.fixturenames:
        found = kubectls()
        metafunc.parametrize("kubectl_path", [*found.values()], ids=[*found], scope="module")


Kubectl = Callable[..., str]


@pytest.fixture(scope="module")
def kubectl(kubectl_path: str, server: Server) -> Kubectl:
    """Run one command; its output, both streams. `fails`: it must end with another code than 0."""

    def run(*arguments: str, text: str | None = None, fails: bool = False, editor: str = "true") -> str:
        done = subprocess.run(
            [kubectl_path, *arguments],
            input=text,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
            env={**server.environment, "KUBE_EDITOR": editor},
        )
        output = done.stdout + done.stderr
        assert (done.returncode != 0) is fails, f"kubectl {' '.join(arguments)}: {output}"
        return output

    return run


@pytest.fixture
def program(own_server: Server) -> Iterator[Callable[[list[str]], None]]:
    """Start a program that runs until the test is over; it must still run then, and end when told to."""
    log = own_server.folder / "program.log"
    running: list[subprocess.Popen[bytes]] = []

    def run(command: list[str]) -> None:
        with log.open("wb") as output:
            running.append(
                subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=own_server.environment,
                    cwd=own_server.folder,
                )
            )

    yield run
    ended_early = [process.args for process in running if process.poll() is not None]
    for process in running:
        process.terminate()
        try:
            process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            ended_early.append(process.args)
    text = log.read_text(errors="replace") if log.exists() else ""
    print(text, file=sys.stderr)
    assert not ended_early, f"{ended_early} ended by itself, or did not end when told to:\n{text}"
