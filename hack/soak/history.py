"""What has happened in a simulation: its last lines are shown when something went wrong."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

KEPT = 2000
"""Lines that are remembered."""
SHOWN = 60
LOGGERS = ("kubeloop", "webapp_operator")


class History:
    """Lines with the world's time, the newest `KEPT` of them, and how many there were of each kind."""

    def __init__(self, time: Callable[[], float]) -> None:
        self._time = time
        self._lines: deque[str] = deque(maxlen=KEPT)
        self._digest = hashlib.sha256()
        self.counts: Counter[str] = Counter()

    def note(self, kind: str, text: str) -> None:
        """Something of this kind has happened."""
        line = f"{self._time():10.3f} {kind:<8} {text}"
        self.counts[kind] += 1
        self._lines.append(line)
        self._digest.update(line.encode())

    def tail(self, lines: int = SHOWN, *, about: str = "") -> list[str]:
        """The last lines; `about`: only those that contain it."""
        return [line for line in self._lines if about in line][-lines:]

    @property
    def digest(self) -> str:
        """Equal for equal histories."""
        return self._digest.hexdigest()

    @contextmanager
    def taking_logs(self, level: int = logging.INFO) -> Iterator[None]:
        """While inside, the product's logs go here and nowhere else."""
        handler = _Handler(self)
        handler.setLevel(level)
        before = []
        for name in LOGGERS:
            logger = logging.getLogger(name)
            before.append((logger, logger.level, logger.propagate))
            logger.addHandler(handler)
            logger.setLevel(level)
            logger.propagate = False
        try:
            yield
        finally:
            for logger, old_level, propagate in before:
                logger.removeHandler(handler)
                logger.setLevel(old_level)
                logger.propagate = propagate


class _Handler(logging.Handler):
    def __init__(self, history: History) -> None:
        super().__init__()
        self._history = history

    def emit(self, record: logging.LogRecord) -> None:
        more = getattr(record, "fields", None) or {}
        # What the machine's clock has measured, and whole stacks, differ from run to run.
        shown = " ".join(f"{key}={value}" for key, value in more.items() if key not in ("seconds", "stack"))
        self._history.note("log", f"{record.levelname} {record.getMessage()} {shown}".rstrip())
