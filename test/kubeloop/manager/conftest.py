"""An HTTP client that shows everything, and the sandbox with the WebApp's CRD."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from kubeloop.manager.http import HttpServer, Routes
from kubeloop.sandbox import Sandbox
from webapp_operator.types import WebApp


@dataclass(frozen=True)
class Got:
    """An answer, taken apart."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


class Browser:
    """Talks raw HTTP/1.1 to a port of this machine."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)

    def send(self, text: str | bytes) -> None:
        self.socket.sendall(text.encode("latin-1") if isinstance(text, str) else text)

    def get(self, path: str, method: str = "GET", **headers: str) -> Got:
        """Send a request and read its answer."""
        lines = [f"{method} {path} HTTP/1.1", "Host: test"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.send("\r\n".join(lines) + "\r\n\r\n")
        return self.read(head_only=method == "HEAD")

    def read(self, *, head_only: bool = False) -> Got:
        """Read one answer."""
        data = b""
        while b"\r\n\r\n" not in data:
            chunk = self.socket.recv(65536)
            assert chunk, f"closed after {data!r}"
            data += chunk
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        while not head_only and len(body) < int(headers["content-length"]):
            body += self.socket.recv(65536)
        return Got(int(first.split(" ")[1]), headers, body)

    def is_closed(self) -> bool:
        """Whether the server has closed the connection (waits for it)."""
        return self.socket.recv(1) == b""

    def close(self) -> None:
        self.socket.close()


@pytest.fixture
def browse() -> Iterator[Callable[[int], Browser]]:
    """Makes browsers, and closes them at the end."""
    made: list[Browser] = []

    def make(port: int) -> Browser:
        made.append(Browser(port))
        return made[-1]

    yield make
    for browser in made:
        browser.close()


@pytest.fixture
def serve(browse: Callable[[int], Browser]) -> Iterator[Callable[[Routes], Browser]]:
    """Serves routes on a free port and gives a browser on it; everything ends with the test."""
    servers: list[HttpServer] = []

    def start(routes: Routes) -> Browser:
        server = HttpServer("test", ("127.0.0.1", 0), routes)
        server.start()
        servers.append(server)
        return browse(server.port)

    yield start
    for server in servers:
        server.stop()
        assert server.join(5)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """The API server in this process, with the CRD of WebApps served."""
    with Sandbox() as made:
        made.apply(WebApp.crd())  # returns when it is served
        yield made
