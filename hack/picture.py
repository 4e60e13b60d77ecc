"""Draws docs/demo.svg: what `make demo` shows on a terminal, as it came out of this very run."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "demo.svg"
WIDTH = 106


def record() -> str:
    """Run the demo on a pseudo-terminal; its output, colours included. CalledProcessError if it fails."""
    master, slave = pty.openpty()
    command = [sys.executable, str(ROOT / "hack" / "demo.py")]
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave) as demo:
        os.close(slave)
        chunks = []
        try:
            while chunk := os.read(master, 65536):
                chunks.append(chunk)
        except OSError:  # Linux says EIO when the last writer has gone
            os.close(master)
    if demo.returncode:
        raise subprocess.CalledProcessError(demo.returncode, command, b"".join(chunks))
    return b"".join(chunks).decode()


def final_lines(output: str) -> str:
    """What stays on the screen: of each line, what was written after it was last erased."""
    lines = output.replace("\r\n", "\n").split("\n")
    kept = "\n".join(line.rsplit("\r\x1b[2K", 1)[-1] for line in lines)
    # The port differs from run to run and means nothing to a reader.
    return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:36443", kept)


def main() -> int:
    """Record, draw, and say where."""
    console = Console(record=True, width=WIDTH, file=open(os.devnull, "w"))  # noqa: SIM115 - ends with us
    console.print(Text.from_ansi("$ make demo\n" + final_lines(record())), end="")
    # A fixed id keeps the drawing the same where the text is.
    drawing = console.export_svg(title="make demo", unique_id="demo")
    # Nothing from elsewhere: the reader's own monospace font will do.
    PICTURE.write_text(re.sub(r"@font-face \{.*?\}\n?", "", drawing, flags=re.DOTALL))
    print(f"wrote {PICTURE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
