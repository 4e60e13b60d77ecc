"""What the client needs of a transport, whichever it is: HTTP, or straight into a server in this process.

A transport moves bytes and knows nothing of Kubernetes. `target` is a path with its query string, header
names in answers are lower-case. All failures are OSErrors of the stdlib: ConnectionError, TimeoutError,
ssl.SSLError; `ConnectFailed` when nothing was sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


class ConnectFailed(ConnectionError):
    """There is no connection (name resolution, refusal, TLS handshake, proxy), so nothing was sent."""


class StaleConnection(ConnectionResetError):
    """A kept connection turned out to be closed before any byte of an answer came."""


class Response(Protocol):
    """A whole answer."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def body(self) -> bytes: ...


class Stream(Protocol):
    """An answer whose body arrives over time."""

    @property
    def status(self) -> int:
        """The HTTP status. May wait for it (no longer than the read timeout) and raise OSError."""
        ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def chunks(self) -> Iterator[bytes]:
        """The body as it arrives. Ends at its end, or soon after `close`; raises OSError when it is cut off
        or when nothing arrived for the read timeout."""
        ...

    def close(self) -> None:
        """End the stream, from any thread, and whatever waits on it."""
        ...


@runtime_checkable
class PatientStream(Protocol):
    """A stream whose read timeout can be changed while it runs."""

    def set_read_timeout(self, seconds: float) -> None: ...


class Transport(Protocol):
    """Sends requests; thread-safe."""

    def request(
        self, method: str, target: str, *, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Response:
        """Send and wait for the whole answer, for at most `timeout` seconds in all."""
        ...

    def stream(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str],
        connect_timeout: float,
        read_timeout: float,
    ) -> Stream:
        """Begin a request whose answer is read bit by bit."""
        ...

    def close(self) -> None:
        """Close idle connections. Streams are their readers' to close."""
        ...


@dataclass(frozen=True, slots=True)
class Answered:
    """A `Response` as plain data."""

    status: int
    headers: Mapping[str, str]
    body: bytes
