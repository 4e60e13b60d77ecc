"""HTTP/1.1 as bytes."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubeloop.client.wire import (
    BadAnswer,
    BodyReader,
    ChunkedReader,
    Head,
    LengthReader,
    UntilCloseReader,
    gunzip,
    request_bytes,
)


def test_a_request_is_head_and_body() -> None:
    sent = request_bytes("PATCH", "/a?b=c", "h:1", {"Accept": "x"}, b"{}")
    assert sent == b"PATCH /a?b=c HTTP/1.1\r\nHost: h:1\r\nAccept: x\r\nContent-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\nb", "a\0b"])
def test_a_header_cannot_smuggle_another_and_is_not_shown(value: str) -> None:
    with pytest.raises(ValueError, match="header Authorization spans lines") as caught:
        request_bytes("GET", "/", "h", {"Authorization": value}, None)
    assert value not in str(caught.value)


@pytest.mark.parametrize("target", ["/a b", "/a\r\nX: y", "/ä"])
def test_a_target_cannot_break_out(target: str) -> None:
    with pytest.raises(ValueError, match="not a request target"):
        request_bytes("GET", target, "h", {}, None)


def test_a_head_joins_repeated_headers() -> None:
    head = Head(b'HTTP/1.1 200 OK\r\nWarning: 299 - "a"\r\nwarning:299 - "b"\r\nX:\t y ')
    assert head.status == 200
    assert head.keep_alive
    assert head.headers == {"warning": '299 - "a", 299 - "b"', "x": "y"}


@pytest.mark.parametrize(
    ("block", "kept"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Close", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0", False),
    ],
)
def test_a_connection_is_kept_only_if_the_server_keeps_it(block: bytes, kept: bool) -> None:
    assert Head(block).keep_alive is kept


@pytest.mark.parametrize("block", [b"SSH-2.0-x", b"HTTP/1.1 20 OK", b"HTTP/1.1 200 OK\r\nnonsense", b""])
def test_nonsense_is_no_answer(block: bytes) -> None:
    with pytest.raises(BadAnswer):
        Head(block)


@pytest.mark.parametrize(
    ("headers", "method", "kind"),
    [
        (b"Content-Length: 5", "GET", LengthReader),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 5", "GET", ChunkedReader),
        (b"X: y", "GET", UntilCloseReader),
        (b"X: y", "HEAD", LengthReader),
    ],
)
def test_the_framing_follows_the_headers(headers: bytes, method: str, kind: type[BodyReader]) -> None:
    assert isinstance(Head(b"HTTP/1.1 200 OK\r\n" + headers).body_reader(method), kind)


@pytest.mark.parametrize("headers", [b"Content-Length: -1", b"Content-Length: 1, 1", b"Transfer-Encoding: z"])
def test_unclear_framing_is_refused(headers: bytes) -> None:
    with pytest.raises(BadAnswer):
        Head(b"HTTP/1.1 200 OK\r\n" + headers).body_reader("GET")


def chunked(pieces: list[bytes], trailer: bytes = b"") -> bytes:
    coded = b"".join(b"%x;x=y\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece)
    return coded + b"0\r\n" + trailer + b"\r\n"


@given(st.lists(st.binary(max_size=99), max_size=20), st.integers(1, 50), st.sampled_from([b"", b"X: y\r\n"]))
@settings(max_examples=100, deadline=None)
def test_chunks_are_put_together_however_they_are_cut(pieces: list[bytes], cut: int, trailer: bytes) -> None:
    coded = chunked(pieces, trailer)
    reader = ChunkedReader()
    content = b"".join(reader.feed(coded[start : start + cut]) for start in range(0, len(coded), cut))
    assert content == b"".join(pieces)
    assert reader.done
    assert not reader.excess


def test_bytes_after_the_end_are_noticed() -> None:
    reader = ChunkedReader()
    assert reader.feed(chunked([b"a"]) + b"HTTP/1.1") == b"a"
    assert reader.excess
    plain = LengthReader(2)
    assert plain.feed(b"abc") == b"ab"
    assert plain.excess


@pytest.mark.parametrize("reader", [LengthReader(3), ChunkedReader()])
def test_a_body_cut_off_is_an_error(reader: BodyReader) -> None:
    reader.feed(b"2")
    with pytest.raises(BadAnswer):
        reader.finish()


def test_a_chunk_size_must_be_one() -> None:
    with pytest.raises(BadAnswer):
        ChunkedReader().feed(b"zz\r\n")
    with pytest.raises(BadAnswer):
        ChunkedReader().feed(b"1" * 100_000)


def test_gzip_is_limited_and_must_be_whole() -> None:
    packed = gzip.compress(b"x" * 1000)
    assert gunzip(packed, 1000) == b"x" * 1000
    for broken, limit in ((packed, 999), (packed[:-9], 1000), (b"nonsense", 1000)):
        with pytest.raises(BadAnswer):
            gunzip(broken, limit)
