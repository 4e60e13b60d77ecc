"""The pipeline behind a socket: HTTP/1.1 with keep-alive and chunked watches, optionally TLS.

One thread accepts, one thread per connection serves. Nothing but loopback use is meant: there are no limits
on connections. Each answer is one write (Nagle off, headers and body together). `stop` closes everything at
once, open watches too, and joins the threads. A client that goes away while its watch is idle is
noticed by the accepting thread, so that no watch outlives its reader.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import struct
import threading
from collections.abc import Mapping
from email.utils import formatdate
from http import HTTPStatus
from typing import BinaryIO

from kubeloop.sandbox.admin import PREFIX, Admin
from kubeloop.sandbox.inprocess import Server
from kubeloop.sandbox.pipeline.body import MAX_BODY
from kubeloop.sandbox.pipeline.request import Delivery, Request, Response
from kubeloop.sandbox.pipeline.watching import WatchBody

MAX_LINE = 64 * 1024
"""Longest request line or header in bytes."""
MAX_HEADERS = 200
BACKLOG = 256
HANDSHAKE_TIMEOUT = 10.0
"""Seconds a client has for the TLS handshake."""


class BadRequestLine(ValueError):
    """What came is no HTTP/1.1 request."""


class HttpServer:
    """Serves `api` on ``host:port`` (port 0: a free one) between `start` and `stop`."""

    def __init__(
        self,
        api: Server,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        admin: Admin | None = None,
    ) -> None:
        self._api = api
        self.admin = admin
        self._tls = tls
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
        self.host, self.port = self._listener.getsockname()[:2]
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()  # guards _connections, _idle_watches and _stopping
        self._connections: set[_Connection] = set()
        self._idle_watches: dict[socket.socket, WatchBody] = {}
        self._stopping = False
        self._thread = threading.Thread(target=self._accept, name=f"sandbox-http-{self.port}", daemon=True)

    @property
    def url(self) -> str:
        """Where clients find it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}"

    def start(self) -> None:
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wake_reader, selectors.EVENT_READ)
        self._thread.start()

    def stop(self, timeout: float = 10.0) -> None:
        """Close the listener and every connection, and wait up to `timeout` seconds for the threads."""
        with self._lock:
            self._stopping = True
            connections = list(self._connections)
        self._wake()
        for connection in connections:
            connection.close()
        for thread in [self._thread, *(connection.thread for connection in connections)]:
            if thread.ident is not None:
                thread.join(timeout)
        for end in (self._listener, self._wake_reader, self._wake_writer):
            end.close()
        self._selector.close()

    # -- the accepting thread --------------------------------------------------------------------

    def _accept(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._listener:
                    self._accept_one()
                elif key.fileobj is self._wake_reader:
                    self._wake_reader.recv(4096)
                else:
                    self._watch_readable(key.fileobj)
            with self._lock:
                if self._stopping:
                    return
                self._register_watches()

    def _accept_one(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return  # the client was gone before we looked
        connection = _Connection(self, sock, self._api, self._tls)
        with self._lock:
            if self._stopping:
                sock.close()
                return
            self._connections.add(connection)
        connection.thread.start()

    def _register_watches(self) -> None:
        """Look after the sockets of idle watches. Caller holds the lock."""
        registered = {key.fileobj for key in self._selector.get_map().values()}
        for sock in self._idle_watches.keys() - registered:
            with contextlib.suppress(OSError, ValueError, KeyError):
                self._selector.register(sock, selectors.EVENT_READ)

    def _watch_readable(self, sock: object) -> None:
        """Something came on a watch's socket: nearly always the end of it."""
        assert isinstance(sock, socket.socket)
        with self._lock:
            # The watch may have ended between the selector's word and now, and taken itself off.
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(sock)
            watch = self._idle_watches.get(sock)
        if watch is None:
            return
        try:
            gone = self._tls is not None or not sock.recv(1, socket.MSG_PEEK)
        except OSError:
            gone = True
        if gone:
            # With TLS any byte counts as the end: a client does not send requests into its own watch.
            watch.close()

    # -- for connections -------------------------------------------------------------------------

    def begin_watch(self, probe: socket.socket, watch: WatchBody) -> None:
        """Have `probe` looked after while `watch` is served on it."""
        with self._lock:
            self._idle_watches[probe] = watch
            stopping = self._stopping
        if stopping:
            watch.close()
        self._wake()

    def end_watch(self, probe: socket.socket) -> None:
        """`probe` carries no watch any more."""
        with self._lock:
            self._idle_watches.pop(probe, None)
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(probe)

    def forget(self, connection: _Connection) -> None:
        """A connection has ended."""
        with self._lock:
            self._connections.discard(connection)

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            self._wake_writer.send(b"x")


class _Connection:
    """One client connection and its thread."""

    def __init__(
        self, server: HttpServer, sock: socket.socket, api: Server, tls: ssl.SSLContext | None
    ) -> None:
        self._server = server
        self._raw = sock
        self._sock = sock
        self._api = api
        self._tls = tls
        self._watch: WatchBody | None = None
        self._peer, peer = sock.getpeername()[:2]
        self.thread = threading.Thread(target=self._run, name=f"sandbox-http-peer-{peer}", daemon=True)

    def close(self) -> None:
        """End the connection from another thread."""
        watch = self._watch
        if watch is not None:
            watch.close()
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._raw, socket.SHUT_RDWR)

    def _run(self) -> None:
        try:
            self._raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                self._raw.settimeout(HANDSHAKE_TIMEOUT)
                # The descriptor moves over: from here on the raw socket is the TLS one without TLS's methods.
                self._sock = self._tls.wrap_socket(self._raw, server_side=True, do_handshake_on_connect=False)
                self._raw = self._sock
                self._sock.do_handshake()
                self._sock.settimeout(None)
            with self._sock.makefile("rb") as reader:
                while self._serve_one(reader):
                    pass
        except (OSError, BadRequestLine):
            return  # the client went away, or does not speak HTTP
        finally:
            self._server.forget(self)
            self._sock.close()

    def _serve_one(self, reader: BinaryIO) -> bool:
        """One request and its answer; whether the connection goes on."""
        head = _read_head(reader)
        if head is None:
            return False
        method, target, headers, keep = head
        if headers.get("expect", "").lower() == "100-continue":
            self._sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = _read_body(reader, headers)
        if body is None:
            return False
        request = Request(method, target, headers, body)
        admin = self._server.admin
        administered = admin is not None and request.path.startswith(PREFIX)
        if admin is not None and administered:
            answer: Response | WatchBody = admin.handle(request, self._peer)
        else:
            answer = self._api.handle(request)
        delivery = answer.delivery or Delivery()
        if delivery.broken:
            return self._serve_broken(delivery)
        if isinstance(answer, WatchBody):
            return self._serve_watch(answer, delivery) and keep
        data = _answer(answer, head_only=method == "HEAD", keep=keep)
        if answer.delivery is None:
            self._sock.sendall(data)
            if admin is not None:
                admin.finish()
            return keep
        cut = delivery.truncate
        if cut is not None and cut < len(answer.body):
            data = data[: len(data) - len(answer.body) + cut]
        self._send_pieces(data, delivery.pieces)
        return keep and cut is None

    def _serve_broken(self, delivery: Delivery) -> bool:
        """No answer: silence until the client goes away, or an end without a word."""
        if delivery.broken in ("silent", "late"):
            with contextlib.suppress(OSError):
                while socket.socket.recv(self._raw, 4096):
                    continue  # whatever it still says, it gets no answer
        else:
            self._reset()
        return False

    def _reset(self) -> None:
        """Have the connection end with a reset instead of properly."""
        self._raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _send_pieces(self, data: bytes, size: int | None) -> None:
        step = size or len(data) or 1
        for start in range(0, len(data), step):
            self._sock.sendall(data[start : start + step])

    def _serve_watch(self, watch: WatchBody, delivery: Delivery) -> bool:
        """Send a watch until it ends; whether the connection can go on."""
        self._watch = watch
        probe = self._raw.dup() if self._tls is None else socket.socket(fileno=_dup(self._sock))
        try:
            self._server.begin_watch(probe, watch)
            head = {**watch.headers, "transfer-encoding": "chunked"}
            self._sock.sendall(_head(watch.status, head))
            left = delivery.truncate
            for chunk in watch.chunks():
                part = chunk if left is None else chunk[:left]
                size = delivery.pieces or len(part) or 1
                for start in range(0, len(part), size):
                    piece = part[start : start + size]
                    self._sock.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
                if left is not None:
                    left -= len(part)
                    if left <= 0:
                        return False
            self._sock.sendall(b"0\r\n\r\n")
            return True
        except ConnectionResetError:
            self._reset()
            raise
        finally:
            self._watch = None
            watch.close()
            self._server.end_watch(probe)
            probe.close()


def _dup(sock: socket.socket) -> int:
    """A second descriptor of a TLS socket, only to see whether something arrived."""
    return socket.dup(sock.fileno())


def _read_head(reader: BinaryIO) -> tuple[str, str, dict[str, str], bool] | None:
    """Method, target, headers (lower-case names) and keep-alive; None at the end of the connection."""
    line = reader.readline(MAX_LINE)
    while line in (b"\r\n", b"\n"):
        line = reader.readline(MAX_LINE)
    if not line:
        return None
    parts = line.decode("latin-1").split()
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise BadRequestLine(repr(line[:80]))
    headers: dict[str, str] = {}
    for _ in range(MAX_HEADERS):
        raw = reader.readline(MAX_LINE)
        if raw in (b"\r\n", b"\n", b""):
            break
        name, _, value = raw.decode("latin-1").partition(":")
        key = name.strip().lower()
        headers[key] = f"{headers[key]},{value.strip()}" if key in headers else value.strip()
    wanted = headers.get("connection", "").lower()
    keep = "close" not in wanted and (parts[2] != "HTTP/1.0" or "keep-alive" in wanted)
    return parts[0], parts[1], headers, keep


def _read_body(reader: BinaryIO, headers: Mapping[str, str]) -> bytes | None:
    """The body; None when the connection broke before its end. Too large ones are cut: they are refused."""
    if "chunked" in headers.get("transfer-encoding", "").lower():
        chunks: list[bytes] = []
        size = 0
        while True:
            line = reader.readline(MAX_LINE)
            if not line:
                return None
            length = int(line.split(b";")[0], 16)
            data = reader.read(length)
            reader.readline(MAX_LINE)
            if length == 0:
                return b"".join(chunks)
            size += length
            if size <= MAX_BODY + length:
                chunks.append(data)
    length = int(headers.get("content-length") or 0)
    if not length:
        return b""
    body = reader.read(length)
    return body if len(body) == length else None


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Status"
    lines = [f"HTTP/1.1 {status} {phrase}", f"date: {formatdate(usegmt=True)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace")


def _answer(response: Response, *, head_only: bool, keep: bool) -> bytes:
    headers = {**response.headers, "content-length": str(len(response.body))}
    if not keep:
        headers["connection"] = "close"
    head = _head(response.status, headers)
    return head if head_only else head + response.body
