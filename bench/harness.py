"""What the benchmarks share: timing that a busy machine does not spoil, lines that say what came out, and a
sandbox in a process of its own."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
sys.path.insert(0, str(REPOSITORY / "operator"))
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY / "operator")}
"""For processes of Python that are measured, or that are in the way."""

_COLOURS = {"ok": "32", "OVER": "31", "UNDER": "31", "": "0"}


@dataclass(frozen=True, slots=True)
class AtMost:
    """A target: `limit` is still good."""

    limit: float

    def verdict(self, value: float) -> str:
        """In one word."""
        return "ok" if value <= self.limit else "OVER"

    def text(self, form: str) -> str:
        """For people."""
        return f"<= {self.limit:{form}}"


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A target: `limit` is still good."""

    limit: float

    def verdict(self, value: float) -> str:
        """In one word."""
        return "ok" if value >= self.limit else "UNDER"

    def text(self, form: str) -> str:
        """For people."""
        return f">= {self.limit:{form}}"


def report(
    name: str,
    value: float,
    unit: str,
    target: AtMost | AtLeast | None = None,
    *,
    note: str = "",
    form: str = ",.1f",
) -> None:
    """Print one figure on one line: what, how much, its target and whether it is met."""
    verdict = target.verdict(value) if target is not None else ""
    wanted = target.text(form) if target is not None else ""
    word = f"{verdict:<5}"  # its width without colour
    if verdict and sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        word = f"\x1b[{_COLOURS[verdict]}m{word}\x1b[0m"
    # The columns of the heading in hack/bench.sh.
    line = f"{name:<36} {value:>10{form}} {unit:<13} {wanted:>10}  {word} {note}"
    print(line.rstrip(), flush=True)


def best_cpu(batch: Callable[[], int], *, rounds: int = 15) -> float:
    """CPU seconds of this thread for each operation, in the best of many batches: the one that other work on
    the machine disturbed least. `batch` says how many operations it made. The garbage collector stays on."""
    batch()
    gc.collect()
    found = []
    for _ in range(rounds):
        began = time.thread_time()
        count = batch()
        found.append((time.thread_time() - began) / count)
    return min(found)


@contextmanager
def sandbox_process(*, ready_after: float = 0.0) -> Iterator[Path]:
    """A sandbox with the CRDs, in a process of its own so that it is not measured; gives its kubeconfig."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        command = [sys.executable, "-m", "kubeloop.sandbox", f"--kubeconfig={kubeconfig}"]
        command += [f"--ready-after={ready_after}", f"--apply={REPOSITORY / 'config/crd/webapps.yaml'}"]
        with subprocess.Popen(
            command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            try:
                if "listens on" not in first:
                    raise RuntimeError(f"the sandbox did not start: {first!r}")
                yield kubeconfig
            finally:
                process.terminate()
