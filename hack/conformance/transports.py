"""What scripts are sent through. The in-process transport of the sandbox has the same shape."""

import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import urllib3


class Response(Protocol):
    """A finished answer; header names are lower-case."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def body(self) -> bytes: ...


class Stream(Protocol):
    """An open answer; `close` from another thread ends a blocked `chunks`."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    def chunks(self) -> Iterator[bytes]: ...
    def close(self) -> None: ...


class Transport(Protocol):
    """Sends requests as one user."""

    def request(
        self, method: str, target: str, *, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Response: ...
    def stream(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str],
        connect_timeout: float,
        read_timeout: float,
    ) -> Stream: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Answer:
    """A finished answer of `HttpTransport`."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpStream:
    """An open answer of `HttpTransport`."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers = _headers(response)

    def chunks(self) -> Iterator[bytes]:
        try:
            while chunk := self._response.read1():
                yield chunk
        except (urllib3.exceptions.HTTPError, OSError, ValueError):
            return  # closed by us, or by a server that is going away: the events so far are what counts
        finally:
            self._response.release_conn()

    def close(self) -> None:
        if isinstance(self._response, urllib3.HTTPResponse):
            try:
                self._response.shutdown()
            except (OSError, ValueError, RuntimeError):
                return  # it has ended already


class HttpTransport:
    """Requests to a real server with one bearer token (None: none)."""

    def __init__(self, server: str, *, ca: Path, token: str | None) -> None:
        context = ssl.create_default_context(cafile=str(ca))
        self._pool = urllib3.PoolManager(ssl_context=context, maxsize=4, retries=False)
        self._server = server
        self._token = token

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        token = {"authorization": f"Bearer {self._token}"} if self._token else {}
        return {**token, **headers}

    def request(
        self, method: str, target: str, *, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Answer:
        try:
            response = self._pool.request(
                method, self._server + target, headers=self._headers(headers), body=body, timeout=timeout
            )
        except urllib3.exceptions.HTTPError as error:
            raise ConnectionError(f"{method} {target}: {error}") from error
        return Answer(response.status, _headers(response), response.data)

    def stream(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str],
        connect_timeout: float,
        read_timeout: float,
    ) -> HttpStream:
        timeout = urllib3.Timeout(connect=connect_timeout, read=read_timeout)
        url = self._server + target
        response = self._pool.request(
            method, url, headers=self._headers(headers), timeout=timeout, preload_content=False
        )
        return HttpStream(response)

    def close(self) -> None:
        self._pool.clear()


def _headers(response: urllib3.BaseHTTPResponse) -> dict[str, str]:
    # A header may come several times (Warning): the values in one line, as HTTP has it.
    return {name.lower(): value for name, value in response.headers.itermerged()}
