"""Keep `.venv` in step with the lock: the hash-pinned packages and this project, editable.

Runs on the system's Python, so it uses the standard library only.  Two stamps inside `.venv` say what it was
made from: one for the packages (a change rebuilds it from nothing, so that no package lingers), one for the
project's own metadata (a change only repeats the quick editable install).  A stamp is removed before work
starts and written after it succeeded: an interrupted run never leaves a `.venv` that counts as good.
Progress goes to stderr.  Exit code 1, with what to do about it, when it cannot be made.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "hack" / "requirements" / "dev.txt"
METADATA = [ROOT / "setup.cfg", ROOT / "setup.py"]
PACKAGES_STAMP = VENV / ".packages-complete"
PROJECT_STAMP = VENV / ".project-complete"
NEVER_IMPORTED = r"/kubernetes/client/(models|api)/|/(mypy|mypyc|pip|setuptools|uv|grimp)/"
"""Pattern of files that are not worth their byte code: large, and compiled already or hardly used."""
PROGRESS_EVERY = 10.0
"""Seconds between two progress lines where there is no terminal to redraw."""


class SetupError(Exception):
    """`.venv` could not be made; the message is for the person at the terminal."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def digest(paths: list[Path]) -> str:
    """What a stamp holds: the lines of `paths` but for comments, and the place (scripts name it)."""
    checksum = hashlib.sha256(str(ROOT).encode())
    for path in paths:
        lines = path.read_bytes().splitlines()
        checksum.update(b"\n".join(line for line in lines if not line.lstrip().startswith(b"#")))
    return checksum.hexdigest()


def is_stamped(stamp: Path, value: str) -> bool:
    # exists() follows the link: false when the Python that .venv was made with has gone.
    return (VENV / "bin" / "python").exists() and stamp.is_file() and stamp.read_text() == value


@contextmanager
def alone() -> Iterator[None]:
    """Hold a lock against another run in this checkout; waits for it to finish."""
    with open(ROOT / ".venv.lock", "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Waiting for another run that is setting up .venv …")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def pip(what: str, total: int, *arguments: str) -> None:
    """Run pip in `.venv`, counting the packages it looks at; its output is shown only when it fails."""
    environment = {**os.environ, "PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    # --no-compile: `compile_bytecode` does that, without what nobody imports, and on all cores.
    install = ["-I", "-m", "pip", "install", "--progress-bar", "off", "--no-compile"]
    started = shown = time.monotonic()
    redraw = sys.stderr.isatty()
    seen = 0
    tail: deque[str] = deque(maxlen=30)
    if not redraw:
        say(f"{what} …")
    with subprocess.Popen(
        [str(VENV / "bin" / "python"), *install, *arguments],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            tail.append(line)
            seen += line.startswith("Collecting ")
            now = time.monotonic()
            progress = f"{what} … {seen}/{total}, {now - started:.0f} s"
            if redraw:
                print(f"\r\033[K{progress}", end="", file=sys.stderr, flush=True)
            elif now - shown >= PROGRESS_EVERY:
                shown = now
                say(progress)
    if redraw:
        print("\r\033[K", end="", file=sys.stderr)
    if process.returncode:
        raise SetupError(f"{what}: pip failed.\n{''.join(tail).rstrip()}")
    say(f"{what}: done in {time.monotonic() - started:.0f} s")


def compile_bytecode(what: str, *folders: Path) -> None:
    """Byte code for `folders`. Where PYTHONDONTWRITEBYTECODE is set, as images and CI often have it, each
    process would compile all that it imports, which doubles the time in which the operator starts."""
    started = time.monotonic()
    command = [str(VENV / "bin" / "python"), "-I", "-m", "compileall", "-q", "-j", "0", "-x", NEVER_IMPORTED]
    # Some package always brings a file for another Python: a failure only costs time.
    subprocess.run([*command, *map(str, folders)], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True)
    say(f"{what}: done in {time.monotonic() - started:.0f} s")


def create() -> None:
    say(f"Creating .venv with Python {sys.version.split()[0]} ({sys.executable})")
    command = [sys.executable, "-I", "-m", "venv", "--clear", str(VENV)]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise SetupError(
            f"python -m venv failed.\n{(done.stdout + done.stderr).strip()}\n"
            "On Debian and Ubuntu the venv module is a package of its own: apt-get install python3-venv"
        )


def refresh() -> None:
    packages, project = digest([LOCK]), digest(METADATA)
    if is_stamped(PACKAGES_STAMP, packages) and is_stamped(PROJECT_STAMP, project):
        return
    with alone():
        if not is_stamped(PACKAGES_STAMP, packages):
            PACKAGES_STAMP.unlink(missing_ok=True)
            PROJECT_STAMP.unlink(missing_ok=True)
            create()
            count = LOCK.read_text().count("==")
            pip("Installing the hash-pinned packages", count, "--require-hashes", "--requirement", str(LOCK))
            compile_bytecode("Compiling them", *VENV.glob("lib/python*/site-packages"))
            PACKAGES_STAMP.write_text(packages)
        if not is_stamped(PROJECT_STAMP, project):
            PROJECT_STAMP.unlink(missing_ok=True)
            editable = ["--no-deps", "--no-build-isolation", "--editable", str(ROOT)]
            pip("Installing webapp-operator, editable", 1, *editable)
            compile_bytecode("Compiling it", ROOT / "operator", ROOT / "hack")
            PROJECT_STAMP.write_text(project)


def main() -> int:
    try:
        refresh()
    except SetupError as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        say("\nInterrupted; the next run starts the set-up again.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
