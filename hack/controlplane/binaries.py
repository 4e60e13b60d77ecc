"""Where the control plane's programs come from: $KUBEBUILDER_ASSETS, the cache, or a build with Go.

A build is installed into the cache by one rename, so that an interrupted one is never taken for whole, and
a lock file lets a second build wait for the first.  The cache key is everything that shapes the programs:
module files, linker flags, platform.  Nothing in the cache is ever changed or removed here.
"""

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .errors import ControlPlaneError

HERE = Path(__file__).resolve().parent
KUBERNETES = "1.36.3"
"""The version in go.mod; stamped into the programs, which are built without Kubernetes' own scripts."""
_MAJOR, _MINOR, _ = KUBERNETES.split(".")
_VERSION = "k8s.io/component-base/version"
LDFLAGS = (
    f"-s -w -X {_VERSION}.gitVersion=v{KUBERNETES}"
    f" -X {_VERSION}.gitMajor={_MAJOR} -X {_VERSION}.gitMinor={_MINOR}"
)
PROGRESS_EVERY = 30.0
"""Seconds between two progress lines where there is no terminal to redraw."""


@dataclass(frozen=True, slots=True)
class Module:
    """A go.mod with `tool` lines: where it is, what it builds, how long that takes on two cores."""

    name: str
    folder: Path
    programs: frozenset[str]
    cold_build: str


CONTROL_PLANE = Module(
    "control plane",
    HERE,
    frozenset({"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}),
    "about 10 minutes",
)
KWOK = Module("kwok", HERE / "kwok", frozenset({"kwok"}), "about 5 minutes")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def assets() -> Path | None:
    """The folder named by $KUBEBUILDER_ASSETS, if it is set."""
    named = os.environ.get("KUBEBUILDER_ASSETS")
    if not named:
        return None
    folder = Path(named).absolute()
    for program in ("etcd", "kube-apiserver"):
        if not os.access(folder / program, os.X_OK):
            raise ControlPlaneError(f"KUBEBUILDER_ASSETS={named} has no program {program}")
    return folder


def cache_folder(module: Module) -> Path:
    """Where `module`'s programs are, or will be."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    key = hashlib.sha256()
    for file in ("go.mod", "go.sum"):
        key.update((module.folder / file).read_bytes())
    key.update(f"{LDFLAGS} {sys.platform} {platform.machine()}".encode())
    return root / "kubeloop" / "controlplane" / key.hexdigest()[:16]


def find(program: str) -> Path | None:
    """The file of `program`, or None when it must be built first (or $KUBEBUILDER_ASSETS lacks it)."""
    folder = assets()
    if folder is None or program in KWOK.programs:
        folder = cache_folder(KWOK if program in KWOK.programs else CONTROL_PLANE)
    path = folder / program
    return path if os.access(path, os.X_OK) else None


def need(program: str) -> Path:
    path = find(program)
    if path is None:
        wanted = " --kwok" if program in KWOK.programs else ""
        raise ControlPlaneError(f"{program} is not there yet; build it: hack/controlplane.sh build{wanted}")
    return path


def build(*, kwok: bool = False) -> None:
    """Build what is missing; returns at once when all is cached or $KUBEBUILDER_ASSETS is set."""
    if assets() is None:
        _build_module(CONTROL_PLANE)
    if kwok:
        _build_module(KWOK)


def _build_module(module: Module) -> None:
    target = cache_folder(module)
    if target.is_dir():
        return
    _check_go(module)
    target.parent.mkdir(parents=True, exist_ok=True)
    with _alone(target):
        if target.is_dir():
            return
        say(f"Building the {module.name} from Go modules: {module.cold_build} on two cores, then cached.")
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            _go_install(module, partial)
            if (partial / "server").exists():
                # go.etcd.io/etcd/server/v3: `go install` names a program after its last path element.
                (partial / "server").rename(partial / "etcd")
            missing = module.programs - {file.name for file in partial.iterdir()}
            if missing:
                raise ControlPlaneError(f"go install made no {', '.join(sorted(missing))}")
            partial.chmod(0o755)
            partial.rename(target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _check_go(module: Module) -> None:
    alternative = "Or set KUBEBUILDER_ASSETS to a folder that holds etcd and kube-apiserver."
    wanted = next(
        line for line in (module.folder / "go.mod").read_text().splitlines() if line.startswith("go ")
    )
    if shutil.which("go") is None:
        raise ControlPlaneError(
            f"the {module.name} is built with Go ({wanted} or newer), which is not on PATH.\n{alternative}"
        )
    # In the module's folder, so that Go compares itself with what go.mod asks for.
    done = subprocess.run(["go", "env", "GOVERSION"], cwd=module.folder, capture_output=True, text=True)
    if done.returncode:
        raise ControlPlaneError(f"{done.stderr.strip()}\nA newer Go is needed ({wanted}).\n{alternative}")


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    with open(target.parent / f"{target.name}.lock", "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Waiting for another build …")
            fcntl.flock(handle, fcntl.LOCK_EX)
        for left_over in target.parent.glob(f".{target.name}.*"):
            shutil.rmtree(left_over, ignore_errors=True)
        yield


def _go_install(module: Module, target: Path) -> None:
    environment = {**os.environ, "CGO_ENABLED": "0", "GOBIN": str(target), "GOWORK": "off"}
    # -v names each package when it is compiled: the only sign of progress that go gives.
    command = ["go", "install", "-v", "-mod=readonly", "-buildvcs=false", "-ldflags", LDFLAGS, "tool"]
    started = shown = time.monotonic()
    redraw = sys.stderr.isatty()
    downloads = compiled = 0
    tail: deque[str] = deque(maxlen=20)
    process = subprocess.Popen(
        command,
        cwd=module.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            tail.append(line)
            if line.startswith("go: downloading"):
                downloads += 1
            else:
                compiled += 1
            now = time.monotonic()
            progress = f"{downloads} modules fetched, {compiled} packages compiled, {now - started:.0f} s"
            if redraw:
                print(f"\r\033[K{progress}", end="", file=sys.stderr, flush=True)
            elif now - shown >= PROGRESS_EVERY:
                shown = now
                say(progress)
        process.wait()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        if redraw:
            print("\r\033[K", end="", file=sys.stderr)
    if process.returncode:
        raise ControlPlaneError(f"building the {module.name} failed:\n{''.join(tail).rstrip()}")
    say(f"Built the {module.name} in {time.monotonic() - started:.0f} s")
