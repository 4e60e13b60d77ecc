"""`Cancel`: ends a request or watch that another thread is waiting in."""

from __future__ import annotations

import threading
from typing import Protocol


class Closable(Protocol):
    def close(self) -> None: ...


class Cancel:
    """Handed to what may have to be interrupted; `cancel` closes what it is waiting on, now or later."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards both
        self._cancelled = False
        self._stream: Closable | None = None

    def attach(self, stream: Closable) -> None:
        """`stream` is what `cancel` closes; at once if that was called already."""
        with self._lock:
            self._stream = stream
            cancelled = self._cancelled
        if cancelled:
            stream.close()

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        """Close what is attached. From any thread, any number of times."""
        with self._lock:
            self._cancelled = True
            stream = self._stream
        if stream is not None:
            stream.close()
