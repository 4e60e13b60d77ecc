"""Requests and streams over real sockets, with every fault a network has."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from kubeloop.client import ConnectFailed, HttpTransport
from kubeloop.client.connections import SocketDialer
from kubeloop.client.http_transport import HttpStream
from kubeloop.client.transport import Answered, StaleConnection
from kubeloop.client.wire import BadAnswer

Start = Callable[..., Any]


@pytest.fixture
def transports() -> Any:
    """Makes transports to a port of this machine."""
    made: list[HttpTransport] = []

    def make(server: Any, **options: Any) -> HttpTransport:
        made.append(HttpTransport(SocketDialer("127.0.0.1", server.port), **options))
        return made[-1]

    yield make
    for transport in made:
        transport.close()


def get(transport: HttpTransport, target: str = "/x", *, timeout: float = 5, **options: Any) -> Answered:
    return transport.request("GET", target, headers={}, body=None, timeout=timeout, **options)


def stream_of(transport: HttpTransport, read_timeout: float = 5) -> HttpStream:
    return transport.stream("GET", "/w", headers={}, connect_timeout=5, read_timeout=read_timeout)


OPEN = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_requests_share_a_connection(echo: Start, transports: Any) -> None:
    server = echo()
    transport = transports(server)
    for number in range(5):
        assert get(transport, f"/{number}").body == b'{"kind": "Thing"}'
    assert server.connections == 1
    first, headers, _ = server.requests[0]
    assert first == "GET /0 HTTP/1.1"
    assert headers["host"] == f"127.0.0.1:{server.port}"


def test_threads_have_connections_of_their_own_and_the_pool_keeps_its_size(
    loopback: Start, transports: Any
) -> None:
    together = threading.Barrier(6)

    def serve(peer: Any) -> None:
        while peer.request():
            together.wait(5)
            peer.answer({})

    server = loopback(serve)
    transport = transports(server, pool_size=2)
    threads = [threading.Thread(target=get, args=(transport,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.connections == 6
    assert len(transport._pool) == 2


@pytest.mark.parametrize("size", [1, 3, 4096])
def test_an_answer_may_come_in_any_pieces(loopback: Start, transports: Any, size: int) -> None:
    body = "鲸".encode() * 500
    coded = OPEN + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)

    def serve(peer: Any) -> None:
        while peer.request():
            peer.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            peer.send(*(coded[start : start + size] for start in range(0, len(coded), size)))

    transport = transports(loopback(serve))
    assert get(transport).body == body
    assert get(transport).body == body


def test_gzip_is_unpacked(loopback: Start, transports: Any) -> None:
    def serve(peer: Any) -> None:
        peer.request()
        peer.answer(gzip.compress(b"[1]"), Content_Encoding="gzip")

    assert get(transports(loopback(serve))).body == b"[1]"


def test_a_refused_connection_says_that_nothing_was_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    transport = HttpTransport(SocketDialer("127.0.0.1", port))
    with pytest.raises(ConnectFailed, match=f"cannot connect to 127.0.0.1:{port}"):
        get(transport)


def test_an_idle_connection_that_the_server_closed_is_replaced(loopback: Start, transports: Any) -> None:
    def serve(peer: Any) -> None:
        peer.request()
        peer.answer({})

    server = loopback(serve)
    transport = transports(server)
    for _ in range(3):
        assert get(transport).status == 200
        server._threads[-1].join(5)  # now it is closed
    assert server.connections == 3


def test_a_kept_connection_that_breaks_without_an_answer_is_told_apart(
    loopback: Start, transports: Any
) -> None:
    def serve(peer: Any) -> None:
        peer.request()
        peer.answer({})
        peer.request()
        peer.reset()

    transport = transports(loopback(serve))
    get(transport)
    with pytest.raises(StaleConnection):
        get(transport)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345",
        OPEN + b"5\r\nab",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000,
    ],
)
def test_a_truncated_or_nonsensical_answer_is_an_error(
    loopback: Start, transports: Any, answer: bytes
) -> None:
    def serve(peer: Any) -> None:
        peer.request()
        peer.send(answer)

    with pytest.raises(ConnectionError):
        get(transports(loopback(serve)))


def test_a_reset_is_an_error(loopback: Start, transports: Any) -> None:
    def serve(peer: Any) -> None:
        peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
        peer.reset()

    with pytest.raises(ConnectionError):
        get(transports(loopback(serve)))


def test_the_timeout_is_for_the_whole_request(loopback: Start, transports: Any, tools: Any) -> None:
    """A server that sends a byte now and then must not hold a worker for ever."""
    pause = threading.Event()

    def serve(peer: Any) -> None:
        peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while not pause.wait(0.05):
            peer.send(b"x")

    def slow() -> None:
        with pytest.raises(TimeoutError):
            get(transport, timeout=0.4)

    transport = transports(loopback(serve))
    tools.within(1.5, slow)
    pause.set()


def test_a_server_may_answer_before_it_has_read_the_body(loopback: Start, transports: Any) -> None:
    def serve(peer: Any) -> None:
        peer.sock.recv(100)
        peer.answer({"kind": "Status"}, 413, Connection="close")
        peer.wait_for_end()

    transport = transports(loopback(serve))
    answer = transport.request("POST", "/", headers={}, body=b"x" * 8_000_000, timeout=5)
    assert answer.status == 413


def test_a_connection_with_stray_bytes_is_not_used_again(loopback: Start, transports: Any) -> None:
    def serve(peer: Any) -> None:
        while peer.request():
            peer.answer({})
            peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret")

    server = loopback(serve)
    transport = transports(server)
    assert get(transport).body == b"{}"
    threading.Event().wait(0.05)
    assert get(transport).body == b"{}"
    assert server.connections == 2


def test_a_stream_is_read_as_it_comes(loopback: Start, transports: Any) -> None:
    go = threading.Event()

    def serve(peer: Any) -> None:
        peer.request()
        peer.send(OPEN, b"4\r\none\n\r\n")
        go.wait(5)
        peer.send(b"4\r\ntwo\n\r\n0\r\n\r\n")

    chunks = stream_of(transports(loopback(serve))).chunks()
    assert next(chunks) == b"one\n"
    go.set()
    assert list(chunks) == [b"two\n"]


def test_a_stream_cut_off_is_an_error(loopback: Start, transports: Any) -> None:
    def serve(peer: Any) -> None:
        peer.request()
        peer.send(OPEN, b"4\r\none\n\r\n")

    with pytest.raises(BadAnswer):
        list(stream_of(transports(loopback(serve))).chunks())


def test_silence_ends_a_stream(loopback: Start, transports: Any, tools: Any) -> None:
    """go-anchors 6.7: the peer has vanished, and no packet says so."""

    def serve(peer: Any) -> None:
        peer.request()
        peer.send(OPEN)
        peer.wait_for_end()

    stream = stream_of(transports(loopback(serve)))
    assert stream.status == 200
    stream.set_read_timeout(0.2)

    def read() -> None:
        with pytest.raises(TimeoutError):
            list(stream.chunks())

    tools.within(1.0, read)


@pytest.mark.parametrize("moment", ["before headers", "in the body", "before anything"])
def test_closing_a_stream_wakes_its_reader_at_once(
    loopback: Start, transports: Any, tools: Any, moment: str
) -> None:
    """bug report 10, kubernetes-client/python#422"""
    reading = threading.Event()

    def serve(peer: Any) -> None:
        peer.request()
        if moment == "in the body":
            peer.send(OPEN)
        reading.set()
        peer.wait_for_end()

    stream = stream_of(transports(loopback(serve)), read_timeout=30)
    outcome: list[object] = []

    def read() -> None:
        try:
            outcome.append(list(stream.chunks()))
        except ConnectionAbortedError as error:
            outcome.append(error)

    if moment == "before anything":
        stream.close()
    thread = threading.Thread(target=read)
    thread.start()
    if moment != "before anything":
        assert reading.wait(5)
        threading.Event().wait(0.05)
        stream.close()
    tools.within(0.5, thread.join)
    stream.close()
    assert outcome == [[]] if moment == "in the body" else isinstance(outcome[0], ConnectionAbortedError)


def test_streams_closed_at_any_moment_end_and_leave_no_socket(loopback: Start, transports: Any) -> None:
    """kubernetes-client/python: 22 of 120 stops right after a start hung"""

    def serve(peer: Any) -> None:
        peer.request()
        peer.send(OPEN)
        peer.wait_for_end()

    transport = transports(loopback(serve))
    pause = threading.Event()
    for number in range(60):
        stream = stream_of(transport, read_timeout=30)

        def read(stream: HttpStream = stream) -> None:
            try:
                list(stream.chunks())
            except ConnectionAbortedError:
                return

        thread = threading.Thread(target=read)
        thread.start()
        pause.wait(number * 0.0001)
        stream.close()
        thread.join(2)
        assert not thread.is_alive()
        assert stream._connection is None


def test_old_idle_connections_are_not_used(echo: Start) -> None:
    server = echo()
    now = [0.0]
    transport = HttpTransport(SocketDialer("127.0.0.1", server.port))
    transport._pool._monotonic = lambda: now[0]
    get(transport)
    now[0] = 100.0
    get(transport)
    assert server.connections == 2
    transport.close()


def test_a_request_takes_little_cpu(echo: Start, transports: Any) -> None:
    """The transport itself; bench/http_client.py has the figures."""
    transport = transports(echo())
    get(transport)
    began = time.thread_time()
    for _ in range(200):
        get(transport)
    assert (time.thread_time() - began) / 200 < 0.001
