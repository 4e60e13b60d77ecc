"""Watches beside a script: a thread a watch that keeps the lines as they come."""

import json
import threading
import time
from collections.abc import Callable
from typing import Any

from .transports import Stream


def count(number: int) -> Callable[[list[Any]], int | None]:
    """So many events."""
    return lambda events: number if len(events) >= number else None


def last(name: str) -> Callable[[list[Any]], int | None]:
    """Everything up to the first event of the object `name`."""

    def enough(events: list[Any]) -> int | None:
        names = (event.get("object", {}).get("metadata", {}).get("name") for event in events)
        return next((number for number, found in enumerate(names, 1) if found == name), None)

    return enough


def never(_events: list[Any]) -> int | None:
    """Until the stream ends."""
    return None


class Collector:
    """Owns the thread that reads one stream; `close` ends both."""

    def __init__(self, stream: Stream, name: str) -> None:
        self._stream = stream
        self._changed = threading.Condition()  # guards the two below; a line is whole or not there
        self._lines: list[Any] = []
        self._ended = False
        self._thread = threading.Thread(target=self._read, name=f"watch-{name}", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        rest = b""
        try:
            for chunk in self._stream.chunks():
                *lines, rest = (rest + chunk).split(b"\n")
                with self._changed:
                    self._lines += [json.loads(line) for line in lines if line.strip()]
                    self._changed.notify_all()
        finally:
            with self._changed:
                if rest.strip():
                    self._lines.append(_loads(rest))
                self._ended = True
                self._changed.notify_all()

    def take(
        self, enough: Callable[[list[Any]], int | None], patience: float, idle: Callable[[], None]
    ) -> list[Any]:
        """The next events: as many as `enough` says of those that are there (None: wait for more).

        All there are when the stream ends or `patience` seconds are over. `idle` is called between two
        looks: time that only moves by hand is moved there.
        """
        deadline = time.monotonic() + patience
        while True:
            with self._changed:
                if enough(self._lines) is None and not self._ended:
                    self._changed.wait(0.02)
                number = enough(self._lines)
                if number is not None or self._ended or time.monotonic() >= deadline:
                    taken = self._lines[:number]
                    self._lines = self._lines[len(taken) :]
                    return taken
            idle()

    @property
    def ended(self) -> bool:
        """Whether the server has closed the stream."""
        with self._changed:
            return self._ended

    def close(self) -> None:
        """End the stream and its thread."""
        self._stream.close()
        self._thread.join(5.0)


def _loads(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return line.decode(errors="replace")
