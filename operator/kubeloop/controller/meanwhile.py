"""What happened to an object, or to its children, while it was being reconciled.

The watch may show an own write before the writer has its answer: one in four does under load. Whether an
event is such an echo is known when the pass has ended, so until then the question is left open. Nothing is
lost by that: what is queued for a key during its pass would not run before its end either.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

H = TypeVar("H", bound=Hashable)

LIMIT = 64
"""Open questions for one key. A pass makes few writes; in a storm of events another pass is due anyway."""


class Meanwhile(Generic[H]):
    """Questions by the keys that are being worked on. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _open
        self._open: dict[H, list[Callable[[], None]]] = {}

    def begin(self, key: H) -> None:
        """A pass over `key` begins: before it reads anything."""
        with self._lock:
            self._open[key] = []

    def hold(self, key: H, question: Callable[[], None]) -> bool:
        """Keep `question` for the end of the pass; False if there is none, so that it must be asked now."""
        with self._lock:
            questions = self._open.get(key)
            if questions is None or len(questions) >= LIMIT:
                return False
            questions.append(question)
            return True

    def end(self, key: H) -> None:
        """The pass is over, its writes are known: ask what was left open."""
        with self._lock:
            questions = self._open.pop(key, ())
        for question in questions:
            question()
