"""HTTP/1.1 as bytes: writing requests, reading answers. No sockets, no threads.

Why not http.client, or urllib3 on top of it: a small request costs them 200 and 360 µs of CPU, most of it
for parsing a handful of headers as if they were e-mail; here it is 30 (see bench/http_client.py). An
operator's throughput is limited by exactly that.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping

MAX_BODY = 1 << 30
"""Bytes of one answer, also after decompression: a limit against a runaway server, never met in practice."""

MAX_HEAD = 65_536
"""Bytes of status line and headers; more is not an API server."""

_STATUS_LINE = re.compile(r"HTTP/1\.([01]) ([0-9]{3})(?: |$)")
_BAD_HEADER = re.compile("[\r\n\0]")
_BAD_TARGET = re.compile(r"[^\x21-\x7e]")
_CHUNK_SIZE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;.*)?")

END_OF_HEAD = b"\r\n\r\n"


class BadAnswer(ConnectionError):
    """What arrived is not HTTP/1.1, or stopped in the middle."""


def request_bytes(
    method: str, target: str, host: str, headers: Mapping[str, str], body: bytes | None
) -> bytes:
    """A whole request. Raises ValueError for anything that would not be one header or one target."""
    if _BAD_TARGET.search(target):
        raise ValueError(f"not a request target: {target!r}")
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}"]
    for name, value in headers.items():
        if _BAD_HEADER.search(value):
            raise ValueError(f"the value of header {name} spans lines")  # never the value: it may be a token
        lines.append(f"{name}: {value}")
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    return head + body if body else head


class Head:
    """Status line and headers of an answer; names are lower-case, repeated ones joined by a comma."""

    __slots__ = ("headers", "keep_alive", "status")

    def __init__(self, block: bytes) -> None:
        """`block` is everything before the empty line. Raises `BadAnswer`."""
        first, *lines = block.decode("latin-1").split("\r\n")
        match = _STATUS_LINE.match(first)
        if match is None:
            raise BadAnswer(f"not an HTTP/1.1 answer: {first[:80]!r}")
        self.status = int(match[2])
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                raise BadAnswer(f"not a header: {line[:80]!r}")
            name = name.lower()
            value = value.strip(" \t")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        self.headers = headers
        connection = headers.get("connection", "").lower()
        self.keep_alive = match[1] == "1" and "close" not in connection

    def body_reader(self, method: str) -> BodyReader:
        """How this answer's body is framed. Raises `BadAnswer` for contradictory or unknown framing."""
        if method == "HEAD" or self.status in (204, 304):
            return LengthReader(0)
        coding = self.headers.get("transfer-encoding", "").lower()
        if coding == "chunked":
            return ChunkedReader()
        if coding:
            raise BadAnswer(f"unknown transfer encoding {coding[:40]!r}")
        length = self.headers.get("content-length")
        if length is None:
            self.keep_alive = False
            return UntilCloseReader()
        if not length.isascii() or not length.isdigit():
            raise BadAnswer(f"not a content length: {length[:40]!r}")
        return LengthReader(int(length))


class BodyReader:
    """Takes the body out of the bytes that arrive. `feed` gives the content; `finish` is called at EOF."""

    __slots__ = ("done", "excess")

    def __init__(self) -> None:
        self.done = False
        self.excess = False  # bytes after the end: the connection cannot be used again

    def feed(self, data: bytes) -> bytes:
        raise NotImplementedError

    def finish(self) -> None:
        """The peer closed the connection. Raises `BadAnswer` if that cuts the body off."""
        if not self.done:
            raise BadAnswer("the connection was closed in the middle of an answer")


class LengthReader(BodyReader):
    """A body of known length."""

    __slots__ = ("_left",)

    def __init__(self, length: int) -> None:
        super().__init__()
        self._left = length
        self.done = length == 0

    def feed(self, data: bytes) -> bytes:
        if len(data) > self._left:
            self.excess = True
            data = data[: self._left]
        self._left -= len(data)
        self.done = self._left == 0
        return data


class UntilCloseReader(BodyReader):
    """A body that ends with the connection."""

    __slots__ = ()

    def feed(self, data: bytes) -> bytes:
        return data

    def finish(self) -> None:
        self.done = True


class ChunkedReader(BodyReader):
    """A body in chunks. Linear in the size of the input, whatever its segmentation."""

    __slots__ = ("_buffer", "_left", "_trailer")

    def __init__(self) -> None:
        super().__init__()
        self._buffer = b""  # an unfinished line; never longer than MAX_HEAD
        self._left = 0  # of the current chunk, its CRLF included
        self._trailer = False

    def feed(self, data: bytes) -> bytes:
        pieces: list[bytes] = []
        position = 0
        if self._buffer:
            data, self._buffer = self._buffer + data, b""
        while position < len(data) and not self.done:
            if self._left:
                end = min(position + self._left, len(data))
                self._left -= end - position
                # The last two bytes of a chunk are its CRLF.
                content_end = end - max(0, 2 - self._left)
                if content_end > position:
                    pieces.append(data[position:content_end])
                position = end
                continue
            line_end = data.find(b"\r\n", position)
            if line_end < 0:
                self._buffer = data[position:]
                if len(self._buffer) > MAX_HEAD:
                    raise BadAnswer("endless chunk header")
                break
            self._line(data[position:line_end])
            position = line_end + 2
        if self.done and position < len(data):
            self.excess = True
        return b"".join(pieces) if len(pieces) != 1 else pieces[0]

    def _line(self, line: bytes) -> None:
        if self._trailer:
            self.done = not line
            return
        match = _CHUNK_SIZE.fullmatch(line)
        if match is None:
            raise BadAnswer(f"not a chunk size: {line[:40]!r}")
        size = int(match[1], 16)
        if size:
            self._left = size + 2
        else:
            self._trailer = True


def gunzip(body: bytes, limit: int) -> bytes:
    """Decompress a gzip body of at most `limit` bytes of content. Raises `BadAnswer`."""
    decoder = zlib.decompressobj(wbits=31)
    try:
        content = decoder.decompress(body, limit)
    except zlib.error as error:
        raise BadAnswer(f"not gzip: {error}") from error
    if decoder.unconsumed_tail:
        raise BadAnswer(f"an answer of more than {limit} bytes")
    if not decoder.eof:
        raise BadAnswer("the gzip stream is cut off")
    return content
