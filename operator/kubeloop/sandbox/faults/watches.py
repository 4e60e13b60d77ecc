"""A watch that does not go as it should."""

from __future__ import annotations

import threading

from kubeloop.clock import Clock
from kubeloop.sandbox.faults.effects import Effect
from kubeloop.sandbox.pipeline.watching import WatchBody, error_line
from kubeloop.sandbox.status import expired

_BOOKMARK = b'{"type":"BOOKMARK"'


class FaultyWatch(WatchBody):
    """A `WatchBody` around another one; see `Effect` for what can happen to it."""

    def __init__(self, inner: WatchBody, effect: Effect) -> None:
        self.status = inner.status
        self.headers = inner.headers
        self.delivery = None
        self._inner = inner
        self._effect = effect
        self._sent = 0
        self.silent = False
        """Whether nothing will come any more although it is open."""
        self._over: str = ""
        self._closed = False

    def poll(self) -> list[bytes] | None:
        """As in `WatchBody`. Raises ConnectionResetError once the connection is broken."""
        if self._over == "reset":
            raise ConnectionResetError("the watch was cut")
        if self._over or self._closed:
            return None
        lines: list[bytes] = []
        self._check(lines)
        if self._over or self.silent:
            return lines if not self._over or lines else self.poll()
        found = self._inner.poll()
        if found is None:
            return None
        for line in found:
            if line.startswith(_BOOKMARK):
                if not self._effect.drop_bookmarks:
                    lines.append(line)
                continue
            lines.append(line)
            self._sent += 1
            self._check(lines)
            if self._over or self.silent:
                break
        return lines

    def _check(self, lines: list[bytes]) -> None:
        """Whether it is time for what happens after so many events."""
        effect, sent = self._effect, self._sent
        if self.silent or self._over:
            return
        if effect.silence_after is not None and sent >= effect.silence_after:
            self.silent = True
        elif effect.gone_after is not None and sent >= effect.gone_after:
            lines.append(error_line(expired("too old resource version: 1 (2)")))
            self._end("gone")
        elif effect.reset_after is not None and sent >= effect.reset_after:
            self._end("reset")
        elif effect.end_after is not None and sent >= effect.end_after:
            self._end("ended")

    def _end(self, how: str) -> None:
        self._over = how
        self._inner.close()

    def wait(self) -> None:
        """Wait until there may be something; of a silent watch: until it is closed."""
        if not self.silent:
            self._inner.wait()
            return
        wake = self._inner.wake
        with wake:
            while not self._closed:
                wake.wait()

    def wait_silently(self, clock: Clock, timeout: float) -> None:
        """As `wait` for a reader that gives up after `timeout` seconds (0: never). Raises TimeoutError."""
        deadline = clock.monotonic() + (timeout if timeout > 0 else float("inf"))
        with self.wake:
            while not self._closed:
                left = deadline - clock.monotonic()
                if left <= 0:
                    raise TimeoutError(f"nothing came for {timeout:g} s, on purpose")
                clock.wait(self.wake, left)

    def ready(self) -> bool:
        """As in `WatchBody`; a silent one is only ready when it is closed."""
        return self._closed or (not self.silent and self._inner.ready())

    @property
    def wake(self) -> threading.Condition:
        return self._inner.wake

    def close(self) -> None:
        """End the watch."""
        self._closed = True
        self._inner.close()
        with self._inner.wake:
            self._inner.wake.notify_all()
