"""Cutting a byte stream into lines."""

from __future__ import annotations

MAX_LINE = 64 * 1024 * 1024
"""Bytes. etcd keeps no object of more than a few MiB; a longer line is not a watch event."""


class LineSplitter:
    """Collects chunks and gives back whole lines, without their newline; empty lines are dropped.

    Linear in the size of the input. Nothing is decoded here, so that a character whose bytes arrive in two
    chunks is never looked at in halves (kubernetes-client/python#2087).
    """

    __slots__ = ("_parts", "_size")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes. Raises ConnectionError for an endless line."""
        if b"\n" not in chunk:
            if chunk:
                self._parts.append(chunk)
                self._size += len(chunk)
                if self._size > MAX_LINE:
                    raise ConnectionError(f"a line of more than {MAX_LINE} bytes")
            return []
        lines = chunk.split(b"\n")
        if self._parts:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
        rest = lines.pop()
        self._parts = [rest] if rest else []
        self._size = len(rest)
        return [line for line in lines if line]

    @property
    def unfinished(self) -> int:
        """Bytes of a line whose end has not come."""
        return self._size
