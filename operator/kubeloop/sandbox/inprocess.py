"""The in-process transport: requests go straight into the pipeline, no socket, no thread, no parsing.

Structurally the runtime's `Transport` protocol. As a network transport it raises nothing but the standard
library's OSErrors: `ConnectionRefusedError` once the sandbox is stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kubeloop.sandbox.pipeline.request import Request, Response
from kubeloop.sandbox.pipeline.server import ApiServer
from kubeloop.sandbox.pipeline.watching import WatchBody


class InProcessStream:
    """An open answer: the lines of a watch, or the body of a failure in one chunk.

    `chunks` blocks on the sandbox's clock until there is something; `poll` never does.
    """

    def __init__(self, answer: Response | WatchBody) -> None:
        self._answer = answer
        self.status: int = answer.status
        self.headers: Mapping[str, str] = answer.headers
        self._read = False

    def chunks(self) -> Iterator[bytes]:
        """The body as it comes."""
        if isinstance(self._answer, WatchBody):
            yield from self._answer.chunks()
        elif not self._read:
            self._read = True
            yield self._answer.body

    def poll(self) -> list[bytes] | None:
        """What is there now, without waiting; None when the stream has ended."""
        if isinstance(self._answer, WatchBody):
            return self._answer.poll()
        if self._read:
            return None
        self._read = True
        return [self._answer.body]

    def close(self) -> None:
        """End the stream; a reader that is blocked in `chunks` returns. Safe from any thread."""
        if isinstance(self._answer, WatchBody):
            self._answer.close()


class InProcessTransport:
    """Requests of one client; `token` is sent with each (None: anonymous)."""

    def __init__(self, server: ApiServer, *, token: str | None = None, internal: bool = False) -> None:
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
        """One request; `target` is a path with its query. Never waits, so `timeout` has no effect."""
        del timeout
        answer = self._handle(method, target, headers, body)
        if isinstance(answer, WatchBody):
            # Whoever reads a watch as a plain answer gets what is there now.
            lines = answer.poll() or []
            answer.close()
            return Response(answer.status, answer.headers, b"".join(lines))
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
        """Open a watch. There is no connection that could hang: the timeouts have no effect."""
        del connect_timeout, read_timeout
        return InProcessStream(self._handle(method, target, headers, None))

    def close(self) -> None:
        """Further requests are refused; open streams go on until they are closed themselves."""
        self._closed = True

    def _handle(
        self, method: str, target: str, headers: Mapping[str, str] | None, body: bytes | None
    ) -> Response | WatchBody:
        if self._closed or self._server.stopped:
            raise ConnectionRefusedError("the sandbox is stopped")
        lowered = {name.lower(): value for name, value in headers.items()} if headers else {}
        if self._token is not None:
            lowered.setdefault("authorization", f"Bearer {self._token}")
        return self._server.handle(Request(method, target, lowered, body or b"", self._internal))
