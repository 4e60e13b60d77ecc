"""The in-process transport: requests go straight into the pipeline, no socket, no thread, no parsing.

Structurally the runtime's `Transport` protocol. As a network transport it raises nothing but the standard
library's OSErrors: `ConnectionRefusedError` once the sandbox is stopped, and what faults ask for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from kubeloop.clock import Clock
from kubeloop.sandbox.faults.watches import FaultyWatch
from kubeloop.sandbox.pipeline.request import Delivery, Request, Response
from kubeloop.sandbox.pipeline.watching import WatchBody


class Server(Protocol):
    """What answers: the API server, with or without faults in front of it."""

    @property
    def stopped(self) -> bool: ...
    @property
    def clock(self) -> Clock: ...
    def handle(self, request: Request, timeout: float = 0) -> Response | WatchBody: ...
    def hang(self, seconds: float) -> None: ...


class InProcessStream:
    """An open answer: the lines of a watch, or the body of a failure in one chunk.

    `chunks` blocks on the sandbox's clock until there is something; `poll` never does, and `wait` is for
    those who poll.
    """

    def __init__(self, server: Server, answer: Response | WatchBody, read_timeout: float) -> None:
        self._server = server
        self._answer = answer
        self._read_timeout = read_timeout
        delivery = answer.delivery or Delivery()
        self._left = delivery.truncate
        self._pieces = delivery.pieces
        self.status: int = answer.status
        self.headers: Mapping[str, str] = answer.headers
        self._read = False

    def chunks(self) -> Iterator[bytes]:
        """The body as it comes. Raises ConnectionResetError and TimeoutError where faults ask for it."""
        while True:
            lines = self.poll()
            if lines is None:
                return
            if lines:
                yield from lines if self._pieces else [b"".join(lines)]
            elif isinstance(self._answer, FaultyWatch) and self._answer.silent:
                self._answer.wait_silently(self._server.clock, self._read_timeout)
            elif isinstance(self._answer, WatchBody):
                self._answer.wait()

    def poll(self) -> list[bytes] | None:
        """What is there now, without waiting; None when the stream has ended."""
        if self._left == 0:
            raise ConnectionResetError("the body broke off")
        lines = self._take()
        if not lines or (self._left is None and self._pieces is None):
            return lines
        data = b"".join(lines)
        if self._left is not None:
            data = data[: self._left]
            self._left -= len(data)
        size = self._pieces or len(data) or 1
        return [data[start : start + size] for start in range(0, len(data), size)]

    def _take(self) -> list[bytes] | None:
        if isinstance(self._answer, WatchBody):
            return self._answer.poll()
        if self._read:
            return None
        self._read = True
        return [self._answer.body]

    def wait(self, timeout: float) -> None:
        """Wait until `poll` may have something new, for at most `timeout` seconds of the sandbox's clock."""
        answer = self._answer
        if not isinstance(answer, WatchBody) or timeout <= 0:
            return
        with answer.wake:
            if not answer.ready():
                self._server.clock.wait(answer.wake, timeout)

    def close(self) -> None:
        """End the stream; a reader that is blocked in `chunks` returns. Safe from any thread."""
        if isinstance(self._answer, WatchBody):
            self._answer.close()


class InProcessTransport:
    """Requests of one client; `token` is sent with each (None: anonymous)."""

    def __init__(self, server: Server, *, token: str | None = None, internal: bool = False) -> None:
        self._server = server
        self._token = token
        self._internal = internal
        self._closed = False

    def request(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout: float = 0,
    ) -> Response:
        """One request; `target` is a path with its query. It only waits, at most `timeout`, for faults."""
        answer = self._handle(method, target, headers, body, timeout)
        if isinstance(answer, WatchBody):
            # Whoever reads a watch as a plain answer gets what is there now.
            lines = answer.poll() or []
            answer.close()
            return Response(answer.status, answer.headers, b"".join(lines))
        delivery = answer.delivery
        if delivery is not None and delivery.truncate is not None and delivery.truncate < len(answer.body):
            raise ConnectionResetError(
                f"the body broke off after {delivery.truncate} of {len(answer.body)} bytes"
            )
        return answer

    def stream(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str] | None = None,
        connect_timeout: float = 0,
        read_timeout: float = 0,
    ) -> InProcessStream:
        """Open a watch. Only faults make it hang, and the timeouts (0: none) have an effect."""
        answer = self._handle(method, target, headers, None, connect_timeout)
        return InProcessStream(self._server, answer, read_timeout)

    def close(self) -> None:
        """Further requests are refused; open streams go on until they are closed themselves."""
        self._closed = True

    def _handle(
        self, method: str, target: str, headers: Mapping[str, str] | None, body: bytes | None, timeout: float
    ) -> Response | WatchBody:
        if self._closed or (self._server.stopped and not self._internal):
            raise ConnectionRefusedError("the sandbox is stopped")
        lowered = {name.lower(): value for name, value in headers.items()} if headers else {}
        if self._token is not None:
            lowered.setdefault("authorization", f"Bearer {self._token}")
        request = Request(method, target, lowered, body or b"", self._internal)
        answer = self._server.handle(request, timeout)
        if answer.delivery is not None and answer.delivery.broken:
            self._break(answer.delivery.broken, timeout)
        return answer

    def _break(self, how: str, timeout: float) -> None:
        """Raise what a client sees of a broken connection."""
        match how:
            case "refused":
                raise ConnectionRefusedError("connection refused, on purpose")
            case "reset":
                raise ConnectionResetError("connection reset, on purpose")
            case "silent":
                self._server.hang(timeout)
        raise TimeoutError(f"no answer within {timeout:g} s, on purpose")
