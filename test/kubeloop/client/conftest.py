"""A loopback server whose every byte the test decides, and a transport without sockets."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from kubeloop.client import Client, RetryPolicy
from kubeloop.client.transport import Answered
from kubeloop.clock import FakeClock
from kubeloop.model import Resource

Serve = Callable[["Peer"], None]


class Peer:
    """The server's end of one connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._buffer = b""

    def request(self) -> tuple[str, dict[str, str], bytes] | None:
        """The next request: its first line, headers (lower-case), body. None at the client's end."""
        while b"\r\n\r\n" not in self._buffer:
            data = self.sock.recv(65_536)
            if not data:
                return None
            self._buffer += data
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        length = int(headers.get("content-length", 0))
        while len(self._buffer) < length:
            self._buffer += self.sock.recv(65_536)
        body, self._buffer = self._buffer[:length], self._buffer[length:]
        return first, headers, body

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.sock.sendall(piece)

    def answer(self, body: Any, status: int = 200, **headers: str) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(content)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + content)

    def reset(self) -> None:
        """Close so that the client gets a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.sock.close()

    def wait_for_end(self) -> None:
        """Until the client closes."""
        while self.sock.recv(65_536):
            pass


class Loopback:
    """Runs `serve` for each connection, in a thread of its own."""

    def __init__(
        self,
        serve: Serve,
        *,
        tls: ssl.SSLContext | None = None,
        family: socket.AddressFamily = socket.AF_INET,
    ) -> None:
        self._serve = serve
        self._tls = tls
        self._listener = socket.socket(family)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        self._listener.listen(64)
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.failures: list[BaseException] = []
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, name="loopback")]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(sock)
            thread = threading.Thread(target=self._talk, args=(sock,), name="loopback-peer")
            self._threads.append(thread)
            thread.start()

    def _talk(self, sock: socket.socket) -> None:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                sock = self._tls.wrap_socket(sock, server_side=True)
                self._open.append(sock)
            self._serve(Peer(sock))
        except OSError as error:
            self.failures.append(error)
        finally:
            sock.close()

    def close(self) -> None:
        for sock in [self._listener, *self._open]:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # closed already
        self._listener.close()
        for thread in self._threads:
            thread.join(5)


@pytest.fixture
def loopback() -> Iterator[Callable[..., Loopback]]:
    """Starts loopback servers; `serve(peer)` talks to one connection."""
    servers: list[Loopback] = []

    def start(serve: Serve, **options: Any) -> Loopback:
        servers.append(Loopback(serve, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def echo(loopback: Callable[..., Loopback]) -> Callable[..., Loopback]:
    """A server that answers each request with `{"kind": ...}` and keeps it in `requests`."""

    def start(answer: Any = None, **options: Any) -> Loopback:
        def serve(peer: Peer) -> None:
            while (request := peer.request()) is not None:
                server.requests.append(request)
                peer.answer({"kind": "Thing"} if answer is None else answer)

        server = loopback(serve, **options)
        return server

    return start


class Stream:
    """An answer in chunks."""

    def __init__(self, status: int, chunks: list[bytes], headers: Mapping[str, str] | None = None) -> None:
        self.status = status
        self.headers: Mapping[str, str] = headers or {}
        self._chunks = chunks
        self.closed = False

    def chunks(self) -> Iterator[bytes]:
        yield from self._chunks

    def close(self) -> None:
        self.closed = True


class Scripted:
    """A transport that gives the answers put into `answers`, one after the other; exceptions are raised."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.sent: list[tuple[str, str, Mapping[str, str], bytes | None]] = []
        self.closed = 0

    def request(
        self, method: str, target: str, *, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Any:
        assert timeout > 0
        self.sent.append((method, target, headers, body))
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def stream(self, method: str, target: str, *, headers: Mapping[str, str], **_: float) -> Any:
        return self.request(method, target, headers=headers, body=None, timeout=1)

    def close(self) -> None:
        self.closed += 1


class ImpatientClock(FakeClock):
    """Time that jumps to the end of each wait, and remembers how long that was."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def wait(self, condition: threading.Condition, timeout: float | None) -> None:
        assert timeout is not None, f"an endless wait on {condition}"
        self.waits.append(timeout)
        condition.release()  # advancing may wake others that wait on it
        try:
            self.advance(timeout)
        finally:
            condition.acquire()


class Tools:
    """What tests need by name."""

    Stream = Stream
    things = Resource("example.com", "v1", "things", "Thing")

    @staticmethod
    def answer(body: Any, status: int = 200, **headers: str) -> Answered:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return Answered(status, {name.replace("_", "-"): value for name, value in headers.items()}, content)

    @classmethod
    def refusal(cls, code: int, reason: str, *, details: Any = None, **headers: str) -> Answered:
        status = {"kind": "Status", "code": code, "reason": reason, "message": "no", "details": details}
        return cls.answer(status, code, **headers)

    @staticmethod
    def within(seconds: float, action: Callable[[], Any]) -> Any:
        """Run `action`, which must take no longer."""
        began = time.monotonic()
        result = action()
        took = time.monotonic() - began
        assert took < seconds, f"took {took:.2f} s"
        return result


@pytest.fixture
def tools() -> type[Tools]:
    return Tools


@pytest.fixture
def clock() -> ImpatientClock:
    return ImpatientClock()


@pytest.fixture
def scripted(clock: ImpatientClock) -> Callable[..., tuple[Client, Scripted]]:
    """A client over a scripted transport, and the transport."""

    def make(*answers: Any, **options: Any) -> tuple[Client, Scripted]:
        transport = Scripted(*answers)
        options.setdefault("retry", RetryPolicy())
        return Client(transport, clock=clock, **options), transport

    return make
