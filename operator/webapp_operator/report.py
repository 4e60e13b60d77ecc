"""Shows what a pass did: the table of ``--once`` and the diff of ``--dry-run``."""

from __future__ import annotations

from typing import TextIO

from kubeloop.manager.once import Pass, Word
from kubeloop.manager.table import print_table

_COLOURS = {
    Word.UNCHANGED.value: "2",
    Word.CREATED.value: "32",
    Word.CHANGED.value: "33",
    Word.CLEANED.value: "36",
    Word.BLOCKED.value: "35",
    Word.INVALID.value: "31",
    Word.FAILED.value: "31",
}
_DIFF_COLOURS = {"+": "32", "-": "31", "@": "36"}


def print_pass(done: Pass, stream: TextIO, *, dry_run: bool) -> None:
    """Print the diff (dry run only), a row a WebApp, what kept the pass from being whole, and a sum."""
    if dry_run:
        for line in done.diff():
            code = _DIFF_COLOURS.get(line[:1]) if stream.isatty() else None
            print(f"\x1b[{code}m{line}\x1b[0m" if code else line, file=stream)
    if done.rows:
        rows = []
        for row in done.rows:
            namespace, _, name = row.key.rpartition("/")
            rows.append((namespace, name, row.word.value, row.detail))
        print_table(("NAMESPACE", "WEBAPP", "RESULT", "DETAILS"), rows, stream, colours=_COLOURS, column=2)
    for problem in done.problems:
        print(f"! {problem}", file=stream)
    counts = {word: sum(row.word is word for row in done.rows) for word in Word}
    parts = [f"{count} {word.value}" for word, count in counts.items() if count] or ["no WebApps"]
    verdict = "converged" if done.converged else "NOT converged"
    note = " (dry run: nothing was written)" if dry_run else ""
    print(f"{', '.join(parts)}: {verdict}{note}", file=stream)
