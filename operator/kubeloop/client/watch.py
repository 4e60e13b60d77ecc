"""`WatchStream`: the lines of one watch, as bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from kubeloop.client.errors import ApiError, TransportError, api_error
from kubeloop.client.lines import LineSplitter
from kubeloop.client.transport import PatientStream, Stream

MAX_ERROR_BODY = 65_536
"""Bytes of an error answer that are read; a Status is far smaller."""


class WatchStream:
    """One watch: iterate it for its lines, each one JSON event.

    Nothing is sent before `open` or the first iteration, both of which raise `ApiError` or `TransportError`
    when the server refuses or is not there. The iteration ends when the server ends the watch or after
    `close`, and raises `TransportError` when the connection breaks, or is silent for the read timeout.
    """

    def __init__(self, begin: Callable[[], Stream], renew: Callable[[], bool], target: str) -> None:
        """`begin` starts the request; `renew` gets new credentials after a 401."""
        self._begin = begin
        self._renew = renew
        self._target = target
        self._lock = threading.Lock()  # guards _stream and _closed
        self._stream: Stream | None = None
        self._closed = False

    def open(self) -> None:
        """Send the request and wait for the server's consent, once."""
        if self._stream is not None:
            return
        try:
            self._open_once()
        except ApiError as error:
            if error.code != 401 or not self._renew():
                raise
            self._open_once()

    def __iter__(self) -> Iterator[bytes]:
        try:
            self.open()
            stream = self._stream
            if stream is None:
                return
            splitter = LineSplitter()
            for chunk in stream.chunks():
                yield from splitter.feed(chunk)
        except OSError as error:
            if not self._closed:
                raise TransportError("watch", self._target, error) from error
        finally:
            self.close()

    def set_read_timeout(self, seconds: float) -> bool:
        """Change the silence that is allowed from now on; False if this transport cannot."""
        stream = self._stream
        if not isinstance(stream, PatientStream):
            return False
        stream.set_read_timeout(seconds)
        return True

    def close(self) -> None:
        """End the watch, from any thread, at once."""
        with self._lock:
            self._closed = True
            stream = self._stream
        if stream is not None:
            stream.close()

    @property
    def closed(self) -> bool:
        """Whether `close` was called or the iteration has ended."""
        return self._closed

    def _open_once(self) -> None:
        try:
            stream = self._begin()
        except OSError as error:
            raise TransportError("watch", self._target, error) from error
        with self._lock:
            self._stream = stream
            closed = self._closed
        if closed:
            stream.close()
            raise TransportError("watch", self._target, "closed before it began", sent=False)
        try:
            if stream.status < 400:
                return
            refusal = api_error("watch", self._target, stream.status, _read_some(stream), stream.headers)
        except OSError as failure:
            stream.close()
            raise TransportError("watch", self._target, failure) from failure
        stream.close()
        with self._lock:
            self._stream = None
        raise refusal


def _read_some(stream: Stream) -> bytes:
    body = bytearray()
    for chunk in stream.chunks():
        body += chunk
        if len(body) > MAX_ERROR_BODY:
            break
    return bytes(body)
