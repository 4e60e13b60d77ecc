"""`HttpTransport`: requests and streams over kept HTTP/1.1 connections.

Every wait is bounded: a request by its whole timeout, a stream by the silence it allows. A stream can be
closed from any thread and at any moment, also while its answer has not begun.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress

from kubeloop.client.connections import Connection, ConnectionPool, Dialer
from kubeloop.client.transport import Answered, StaleConnection
from kubeloop.client.wire import (
    END_OF_HEAD,
    MAX_BODY,
    MAX_HEAD,
    BadAnswer,
    BodyReader,
    Head,
    gunzip,
    request_bytes,
)

CONNECT_TIMEOUT = 10.0
"""Seconds for name resolution, TCP, proxy and TLS together (client-go: 30 to dial and 10 for TLS)."""


class HttpTransport:
    """A `Transport` over the connections that `dialer` opens; keeps at most `pool_size` idle ones."""

    def __init__(self, dialer: Dialer, pool_size: int = 16) -> None:
        self._pool = ConnectionPool(dialer, pool_size)
        self._dialer = dialer

    def request(
        self, method: str, target: str, *, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Answered:
        deadline = time.monotonic() + timeout
        message = request_bytes(method, self._dialer.prefix + target, self._dialer.host, headers, body)
        connection = self._pool.take(min(timeout, CONNECT_TIMEOUT))
        try:
            head, rest = _exchange(connection, message, deadline)
            reader = head.body_reader(method)
            content = _read_body(connection, reader, rest, deadline)
        except BaseException:
            connection.close()
            raise
        if head.keep_alive and not reader.excess:
            self._pool.give_back(connection)
        else:
            connection.close()
        if head.headers.get("content-encoding") == "gzip":
            content = gunzip(content, MAX_BODY)
        return Answered(head.status, head.headers, content)

    def stream(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str],
        connect_timeout: float,
        read_timeout: float,
    ) -> HttpStream:
        message = request_bytes(method, self._dialer.prefix + target, self._dialer.host, headers, None)
        return HttpStream(self._dialer, method, message, connect_timeout, read_timeout)

    def close(self) -> None:
        self._pool.clear()


class HttpStream:
    """One answer read bit by bit, on a connection of its own that is never used again."""

    def __init__(
        self, dialer: Dialer, method: str, message: bytes, connect_timeout: float, read_timeout: float
    ) -> None:
        self._dialer = dialer
        self._method = method
        self._message = message
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout
        # Guards _connection, _reading and _closed. Invariant: whoever reads closes the socket; `close` only
        # does so when nobody reads, else it just wakes the reader. A descriptor that is closed under a
        # blocked read could be given to somebody else's socket at once.
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._reading = False
        self._closed = False
        self._head: Head | None = None
        self._rest = b""

    @property
    def status(self) -> int:
        return self._opened().status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._opened().headers

    def set_read_timeout(self, seconds: float) -> None:
        """Takes effect with the next wait for data."""
        self._read_timeout = seconds

    def chunks(self) -> Iterator[bytes]:
        head = self._opened()
        connection = self._begin()
        if connection is None:
            return
        reader = head.body_reader(self._method)
        try:
            data = self._rest
            while True:
                content = reader.feed(data) if data else b""
                if content:
                    yield content
                if reader.done or self._closed:
                    return
                data = connection.receive(self._read_timeout)
                if not data:
                    if not self._closed:
                        reader.finish()
                    return
        except OSError:
            if not self._closed:
                raise
        finally:
            self._end(close=True)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            connection = self._connection
            if connection is None:
                return
            if not self._reading:
                self._connection = None
                connection.close()
                return
        connection.abort()

    def _opened(self) -> Head:
        """Connect, send, and wait for the head of the answer, once."""
        if self._head is not None:
            return self._head
        connection = None if self._closed else self._dialer.open(self._connect_timeout)
        with self._lock:
            if connection is not None and not self._closed:
                self._connection = connection
                self._reading = True
        if connection is None or not self._reading:
            if connection is not None:
                connection.close()
            raise ConnectionAbortedError("the stream was closed before it began")
        try:
            head, self._rest = _exchange(connection, self._message, time.monotonic() + self._read_timeout)
        except OSError as error:
            self._end(close=True)
            if self._closed:
                raise ConnectionAbortedError("the stream was closed before its answer came") from error
            raise
        self._head = head
        self._end(close=False)
        return head

    def _begin(self) -> Connection | None:
        with self._lock:
            if self._closed or self._connection is None:
                return None
            self._reading = True
            return self._connection

    def _end(self, *, close: bool) -> None:
        with self._lock:
            self._reading = False
            connection = self._connection
            if connection is None or not (close or self._closed):
                return
            self._connection = None
        connection.close()


def _exchange(connection: Connection, message: bytes, deadline: float) -> tuple[Head, bytes]:
    """Send a request; the head of the answer and what of its body came with it."""
    data = b""
    try:
        # A server may answer and close before it has read all of a large body; then the answer counts, not
        # the broken pipe.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.send(message, _left(deadline))
        while True:
            end = data.find(END_OF_HEAD)
            if end >= 0:
                head = Head(data[:end])
                data = data[end + 4 :]
                if head.status >= 200:
                    return head, data
                continue  # 1xx: interim
            if len(data) > MAX_HEAD:
                raise BadAnswer("endless headers")
            more = connection.receive(_left(deadline))
            if not more:
                raise ConnectionResetError("the server closed the connection without an answer")
            data += more
    except (ConnectionError, ssl.SSLError) as error:
        if connection.used and not data and not isinstance(error, BadAnswer):
            raise StaleConnection(f"a kept connection was closed meanwhile: {error}") from error
        raise


def _read_body(connection: Connection, reader: BodyReader, data: bytes, deadline: float) -> bytes:
    content = reader.feed(data) if data else b""
    if reader.done:
        return content
    pieces = [content]
    size = len(content)
    while not reader.done:
        data = connection.receive(_left(deadline), 262_144)
        if not data:
            reader.finish()
            break
        pieces.append(reader.feed(data))
        size += len(pieces[-1])
        if size > MAX_BODY:
            raise BadAnswer(f"an answer of more than {MAX_BODY} bytes")
    return b"".join(pieces)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left
