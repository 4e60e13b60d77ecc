"""Aligned columns for people: coloured on a terminal, plain in a pipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TextIO


def print_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    stream: TextIO,
    *,
    colours: Mapping[str, str] | None = None,
    column: int = 0,
) -> None:
    """Print `rows` under `header`; on a terminal the cell of `column` gets its text's colour (SGR code)."""
    widths = [max(len(row[n]) for row in [header, *rows]) for n in range(len(header))]
    on_terminal = stream.isatty()
    for number, row in enumerate([header, *rows]):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        cells[-1] = row[-1]
        if on_terminal and number == 0:
            cells = [f"\x1b[1m{cell}\x1b[0m" for cell in cells]
        elif on_terminal and colours and row[column] in colours:
            cells[column] = f"\x1b[{colours[row[column]]}m{cells[column]}\x1b[0m"
        print("   ".join(cells).rstrip(), file=stream)
