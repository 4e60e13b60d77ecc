"""Opening connections to an API server, through urllib3.

urllib3 does what is delicate: name resolution, proxies and their tunnels, TLS with client certificates and
server name. It reads CA and certificate files for each new connection, so that rotated ones are used without
a restart. Requests themselves are written by `http_transport`.
"""

from __future__ import annotations

import socket
import ssl
import threading
from typing import Any
from urllib.parse import urlsplit

from urllib3 import PoolManager, ProxyManager
from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError

from kubeloop.client.connections import (
    KEEPALIVE_COUNT,
    KEEPALIVE_IDLE,
    KEEPALIVE_INTERVAL,
    Connection,
)
from kubeloop.client.credentials import Credentials
from kubeloop.client.endpoint import Endpoint
from kubeloop.client.errors import ConfigError
from kubeloop.client.proxies import proxy_headers
from kubeloop.client.transport import ConnectFailed


class Urllib3Dialer:
    """Opens connections to an `Endpoint`. Thread-safe."""

    def __init__(self, endpoint: Endpoint, credentials: Credentials) -> None:
        self._endpoint = endpoint
        self._credentials = credentials
        self._lock = threading.Lock()  # guards _pool and _certificate
        self._certificate: tuple[str, str] | None = None
        self._pool: Any = None
        url = urlsplit(endpoint.url)
        self.host = url.netloc.rpartition("@")[2]
        self.prefix = url.path.rstrip("/")
        if url.scheme == "http" and endpoint.proxy:
            # A plain request to a proxy names its server in full.
            self.prefix = f"http://{self.host}{self.prefix}"

    def open(self, timeout: float) -> Connection:
        """A fresh connection. Raises `ConnectFailed`, also when there is no client certificate to show."""
        try:
            pool = self._current_pool()
        except (ConfigError, OSError, HTTPError, ValueError) as error:
            raise ConnectFailed(f"cannot connect to {self.host}: {error}") from error
        connection = pool._new_conn()
        connection.timeout = timeout
        try:
            if pool.proxy is not None and pool.scheme == "https":
                pool._prepare_proxy(connection)
            else:
                connection.connect()
        except (HTTPError, OSError) as error:
            connection.close()
            raise ConnectFailed(f"cannot connect to {self.host}: {_reason(error)}") from error
        return Connection(connection.sock, connection)

    def _current_pool(self) -> Any:
        certificate = self._credentials.client_certificate() or self._endpoint.certificate
        with self._lock:
            if self._pool is None or certificate != self._certificate:
                self._certificate = certificate
                self._pool = _manager(self._endpoint, certificate).connection_from_url(self._endpoint.url)
            return self._pool


def _manager(endpoint: Endpoint, certificate: tuple[str, str] | None) -> PoolManager:
    options: dict[str, Any] = {
        "cert_reqs": ssl.CERT_REQUIRED if endpoint.verify else ssl.CERT_NONE,
        "ca_certs": endpoint.authority,
        "ca_cert_data": endpoint.authority_data,
        "socket_options": _socket_options(),
    }
    if certificate is not None:
        options["cert_file"], options["key_file"] = certificate
    if endpoint.server_name:
        options["server_hostname"] = endpoint.server_name
    if not endpoint.proxy:
        return PoolManager(**options)
    if endpoint.proxy.startswith("socks"):
        try:
            from urllib3.contrib.socks import SOCKSProxyManager
        except ImportError:
            raise ConfigError("a socks proxy needs the package PySocks") from None
        return SOCKSProxyManager(endpoint.proxy, **options)
    return ProxyManager(endpoint.proxy, proxy_headers=proxy_headers(endpoint.proxy), **options)


def _reason(error: BaseException) -> str:
    """urllib3's messages repeat the object and its address; the innermost cause says what happened."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return str(error) or type(error).__name__


def _socket_options() -> list[tuple[int, int, int]]:
    """No delay for small writes, and keepalive probes that notice a vanished peer."""
    options = list(HTTPConnection.default_socket_options)
    options.append((socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1))
    for name, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_IDLE),
        ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL),
        ("TCP_KEEPCNT", KEEPALIVE_COUNT),
    ):
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    return [(int(level), int(option), int(value)) for level, option, value in options]
