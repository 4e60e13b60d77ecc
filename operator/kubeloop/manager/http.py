"""A small HTTP server for probes, scrapes and people: bounded in everything a client could use up.

Contract: HTTP/1.1 with keep-alive, GET and HEAD. A request's head may have `MAX_HEAD` bytes and take
`HEAD_TIMEOUT` seconds in all; at most `MAX_CONNECTIONS` are served at a time, and more wait to be accepted.
A handler that fails gives its client a 500 without any detail, and the log its traceback. `stop` ends
connections that are idle at once.
"""

from __future__ import annotations

import logging
import selectors
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote

from kubeloop.clock import Clock, SystemClock
from kubeloop.observe import fields

MAX_HEAD = 16_384
"""Bytes. A bearer token has about two thousand."""
HEAD_TIMEOUT = 10.0
"""Seconds from the first byte of a request to the end of its head, and for a TLS handshake."""
IDLE_TIMEOUT = 90.0
"""Seconds that a connection may wait for its next request (as controller-runtime has it)."""
WRITE_TIMEOUT = 30.0
"""Seconds that a client may take to read an answer."""
MAX_CONNECTIONS = 32

_logger = logging.getLogger("kubeloop.manager")


@dataclass(frozen=True, slots=True)
class Request:
    """A request without a body; header names are in lower case."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer."""

    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def text(cls, text: str, status: int = 200) -> Reply:
        """Plain text."""
        return cls(text.encode("utf-8", "replace"), status=status)


Handler = Callable[[Request], Reply]


class BadRequest(Exception):
    """Not a request that can be answered, and the status that says so."""

    def __init__(self, status: int, why: str) -> None:
        self.status = status
        super().__init__(why)


class Routes:
    """Which handler answers which path: exact paths, and prefixes that end with a slash."""

    def __init__(self, routes: Mapping[str, Handler]) -> None:
        self._routes = dict(routes)

    def add(self, other: Routes) -> None:
        """Take in those of `other`."""
        self._routes.update(other._routes)

    def answer(self, request: Request) -> Reply:
        """Never raises."""
        handler = self._routes.get(request.path)
        if handler is None:
            prefixes = [path for path in self._routes if path.endswith("/") and request.path.startswith(path)]
            if not prefixes:
                return Reply.text("404 page not found\n", 404)
            handler = self._routes[max(prefixes, key=len)]
        if request.method not in ("GET", "HEAD"):
            refused = Reply.text("405 method not allowed\n", 405)
            return Reply(refused.body, refused.content_type, 405, {"Allow": "GET, HEAD"})
        try:
            return handler(request)
        except Exception:
            _logger.exception("a page could not be made", extra=fields(path=request.path))
            return Reply.text("500 internal server error\n", 500)


class HttpServer:
    """Owns the thread ``http-<name>`` and one for each connection. The address is bound when it is made."""

    def __init__(
        self,
        name: str,
        address: tuple[str, int],
        routes: Routes,
        *,
        tls: Callable[[], ssl.SSLContext] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`tls` is asked for the context of each new connection. Raises OSError if the address is taken."""
        self._routes = routes
        self._tls = tls
        self._clock: Clock = clock or SystemClock()
        self._name = name
        self._listener = _listen(address)
        self.port: int = self._listener.getsockname()[1]
        self._wake, self._woken = socket.socketpair()
        # Guards _connections and _stopping.
        self._lock = threading.Lock()
        self._connections: dict[threading.Thread, socket.socket] = {}
        self._stopping = False
        self._free = threading.Semaphore(MAX_CONNECTIONS)
        self._thread = threading.Thread(target=self._accept, name=f"http-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Accept nothing more and close idle connections. Also right for a server that never started."""
        with self._lock:
            stopped, self._stopping = self._stopping, True
            for connection in self._connections.values():
                # Only the reading half: an answer that is being written may still go out.
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RD)
        if stopped:
            return
        self._free.release()
        self._wake.close()
        if self._thread.ident is None:
            self._listener.close()
            self._woken.close()

    def join(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds in all; whether every thread has ended."""
        deadline = self._clock.monotonic() + timeout
        threads = [self._thread] if self._thread.ident is not None else []
        with self._lock:
            threads += self._connections
        for thread in threads:
            thread.join(max(deadline - self._clock.monotonic(), 0.0))
        return not any(thread.is_alive() for thread in threads)

    def _accept(self) -> None:
        with self._listener, self._woken, selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while not self._stopping:
                self._free.acquire()
                ready = [key.fileobj for key, _ in selector.select()]
                if self._stopping or self._woken in ready:
                    return
                try:
                    connection, _ = self._listener.accept()
                except OSError as error:
                    # The client has gone again, or there are no file descriptors left for now.
                    _logger.debug("a connection could not be accepted", extra=fields(error=str(error)))
                    self._free.release()
                    continue
                self._serve_in_thread(connection)

    def _serve_in_thread(self, connection: socket.socket) -> None:
        thread = threading.Thread(
            target=self._serve, args=(connection,), name=f"http-{self._name}-connection", daemon=True
        )
        with self._lock:
            if not self._stopping:
                # A handle of our own: shutting an SSLSocket down would make it go on in plain text.
                self._connections[thread] = connection.dup()
                thread.start()
                return
        connection.close()

    def _serve(self, plain: socket.socket) -> None:
        connection = plain
        try:
            plain.settimeout(HEAD_TIMEOUT)
            if self._tls is not None:
                connection = self._tls().wrap_socket(plain, server_side=True)
            while self._serve_one(connection):
                continue
        except (OSError, ValueError) as error:
            _logger.debug("a connection has broken", extra=fields(server=self._name, error=str(error)))
        finally:
            connection.close()
            with self._lock:
                self._connections.pop(threading.current_thread()).close()
            self._free.release()

    def _serve_one(self, connection: socket.socket) -> bool:
        """Answer one request; whether another one may follow."""
        try:
            head = self._read_head(connection)
            if head is None:
                return False
            request, keep = parse_head(head)
        except BadRequest as bad:
            _send(connection, Reply.text(f"{bad}\n", bad.status), "GET", keep=False)
            return False
        reply = self._routes.answer(request)
        keep = keep and not self._stopping
        _send(connection, reply, request.method, keep=keep)
        return keep

    def _read_head(self, connection: socket.socket) -> bytes | None:
        """Everything up to the empty line; None if the client went away first."""
        head = b""
        connection.settimeout(IDLE_TIMEOUT)
        deadline = 0.0
        while b"\r\n\r\n" not in head:
            try:
                chunk = connection.recv(4096)
            except TimeoutError:
                if not head:
                    return None
                raise BadRequest(408, "the request took too long") from None
            if not chunk:
                return None
            now = self._clock.monotonic()
            deadline = deadline or now + HEAD_TIMEOUT
            head += chunk
            if len(head) > MAX_HEAD:
                raise BadRequest(431, "the request's header is too large")
            if now > deadline:
                raise BadRequest(408, "the request took too long")
            connection.settimeout(max(deadline - now, 0.001))
        if not head.endswith(b"\r\n\r\n"):
            raise BadRequest(400, "requests must have no body, and wait for their answer")
        return head


def parse_head(head: bytes) -> tuple[Request, bool]:
    """The request, and whether the client wants to keep the connection. Raises `BadRequest`."""
    lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    try:
        method, target, version = lines[0].split(" ")
    except ValueError:
        raise BadRequest(400, "this is not an HTTP request") from None
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise BadRequest(505, "only HTTP/1.1 is spoken here")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, separator, value = line.partition(":")
        if not separator or not name or name != name.strip() or not name.isascii():
            raise BadRequest(400, "this is not an HTTP header")
        headers[name.lower()] = value.strip()
    if version == "HTTP/1.1" and "host" not in headers:
        raise BadRequest(400, "the Host header is missing")
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        raise BadRequest(413, "requests must have no body")
    if target.startswith(("http://", "https://")):  # the form that is meant for proxies
        target = "/" + target.split("/", 3)[3] if target.count("/") > 2 else "/"
    path, _, query = target.partition("?")
    if not path.startswith("/"):
        raise BadRequest(400, "this is not a path")
    parameters: dict[str, list[str]] = {}
    for name, value in parse_qsl(query, keep_blank_values=True, max_num_fields=100):
        parameters.setdefault(name, []).append(value)
    wishes = headers.get("connection", "").lower()
    keep = "close" not in wishes and (version == "HTTP/1.1" or "keep-alive" in wishes)
    return Request(method, unquote(path), parameters, headers), keep


def parse_address(text: str) -> tuple[str, int] | None:
    """Host and port of ``host:port``, ``:port`` or ``[::1]:port``; None for ``0`` and the empty text (off).

    Raises ValueError.
    """
    if text in ("", "0"):
        return None
    host, separator, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text!r}: an IPv6 address goes in brackets, as in [::1]:8080")
    if not separator or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} is not host:port, :port, or 0 to switch it off")
    return host, int(port)


def _listen(address: tuple[str, int]) -> socket.socket:
    host, port = address
    if host:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        listener = socket.create_server(address, family=family, backlog=64)
    elif socket.has_dualstack_ipv6():
        listener = socket.create_server(address, family=socket.AF_INET6, backlog=64, dualstack_ipv6=True)
    else:
        listener = socket.create_server(address, backlog=64)
    listener.setblocking(False)
    return listener


def _send(connection: socket.socket, reply: Reply, method: str, *, keep: bool) -> None:
    connection.settimeout(WRITE_TIMEOUT)
    head = [
        f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}",
        f"Date: {formatdate(usegmt=True)}",
        f"Content-Type: {reply.content_type}",
        f"Content-Length: {len(reply.body)}",
        "X-Content-Type-Options: nosniff",
        "Cache-Control: no-store",
        f"Connection: {'keep-alive' if keep else 'close'}",
        *(f"{name}: {value}" for name, value in reply.headers.items()),
    ]
    body = b"" if method == "HEAD" else reply.body
    connection.sendall("\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + body)
