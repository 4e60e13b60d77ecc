"""Connections to one API server: opened by urllib3 (TLS, client certificates, proxies), kept here.

The pool is last-in-first-out, never blocks (a thread that finds it empty opens a connection of its own) and
keeps at most `size` idle ones.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from kubeloop.client.transport import ConnectFailed

IDLE_SECONDS = 90.0
"""Idle connections older than this are closed, as Go's http.Transport does (IdleConnTimeout)."""

KEEPALIVE_IDLE, KEEPALIVE_INTERVAL, KEEPALIVE_COUNT = 30, 15, 3
"""Seconds, seconds, probes: the kernel notices a vanished peer within 75 s. client-go: 30, 15, 9."""


class Dialer(Protocol):
    """Opens connections and knows how requests must be addressed on them."""

    host: str
    """For the Host header, IPv6 literals in brackets."""
    prefix: str
    """What goes before each target: the server URL's path, or scheme and authority for a plain proxy."""

    def open(self, timeout: float) -> Connection:
        """A fresh connection, ready for a request. Raises `ConnectFailed`."""
        ...


class Connection:
    """One connected socket with its owner object; at most one request at a time."""

    __slots__ = ("_keeper", "_sock", "idle_since", "used")

    def __init__(self, sock: Any, keeper: object = None) -> None:
        self._sock = sock
        self._keeper = keeper  # urllib3's connection object, whose end would close the socket
        self.used = False
        self.idle_since = 0.0

    def send(self, data: bytes, timeout: float) -> None:
        self._sock.settimeout(timeout)
        self._sock.sendall(data)

    def receive(self, timeout: float, size: int = 65_536) -> bytes:
        """Some bytes; none at the peer's end. Raises TimeoutError and other OSErrors."""
        self._sock.settimeout(timeout)
        data: bytes = self._sock.recv(size)
        return data

    def is_quiet(self) -> bool:
        """Whether nothing arrived while idle: neither an end nor bytes that nobody asked for."""
        poll = select.poll()
        try:
            poll.register(self._sock, select.POLLIN)
        except (ValueError, OSError):
            return False  # closed
        return not poll.poll(0)

    def abort(self) -> None:
        """Wake whoever reads or writes, from any thread; the connection is of no use afterwards."""
        # The plain socket's shutdown: SSLSocket's own would pull the TLS state from under the reader.
        plain = self._sock if isinstance(self._sock, socket.socket) else self._sock.socket
        with suppress(OSError):  # already closed or never connected: nobody is waiting
            socket.socket.shutdown(plain, socket.SHUT_RDWR)

    def close(self) -> None:
        with suppress(OSError):
            self._sock.close()


class ConnectionPool:
    """Idle connections of one server."""

    def __init__(self, dialer: Dialer, size: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.dialer = dialer
        self._size = size
        self._monotonic = monotonic
        self._lock = threading.Lock()  # guards _idle
        self._idle: list[Connection] = []

    def take(self, timeout: float) -> Connection:
        """An idle connection that still looks alive, or a new one. Raises `ConnectFailed`."""
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self.dialer.open(timeout)
            if self._monotonic() - connection.idle_since < IDLE_SECONDS and connection.is_quiet():
                return connection
            connection.close()

    def give_back(self, connection: Connection) -> None:
        """Keep a connection whose answer was read to the end."""
        connection.used = True
        connection.idle_since = self._monotonic()
        with self._lock:
            if len(self._idle) < self._size:
                self._idle.append(connection)
                return
        connection.close()

    def clear(self) -> None:
        """Close what is idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __len__(self) -> int:
        return len(self._idle)


class SocketDialer:
    """Plain TCP, for `http://` servers without a proxy."""

    def __init__(self, address: str, port: int, prefix: str = "") -> None:
        self._address = (address, port)
        self.host = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        self.prefix = prefix

    def open(self, timeout: float) -> Connection:
        try:
            sock = socket.create_connection(self._address, timeout)
        except OSError as error:
            raise ConnectFailed(f"cannot connect to {self.host}: {error}") from error
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Connection(sock)
