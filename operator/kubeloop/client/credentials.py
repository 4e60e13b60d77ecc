"""Who we are to the server: the headers that say so, kept fresh.

One lock a source: however many threads ask at the moment a token runs out, it is read once
(kubernetes-client/python runs an exec plugin once a thread). A source that cannot give a credential raises;
no request is ever sent anonymously in its stead.
"""

from __future__ import annotations

import base64
import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from kubeloop.client.errors import ConfigError
from kubeloop.clock import Clock, SystemClock

_log = logging.getLogger("kubeloop.client")

TOKEN_TTL = 60.0
"""Seconds between two readings of a token file. The kubelet renews projected tokens at 80 % of their life,
so that a minute is early enough; client-go uses the same."""

RETRY_INTERVAL = 5.0
"""Seconds before a source that failed is asked again: an exec plugin that opens a browser, or a token
service that is down, must not be called once a request."""


class Credentials(Protocol):
    """A source of credentials; thread-safe."""

    def headers(self) -> Mapping[str, str]:
        """The headers that identify us. Raises `ConfigError` or OSError when there is no valid credential."""
        ...

    def renew(self, refused: Mapping[str, str]) -> bool:
        """The server answered 401 to `refused`: get new ones. True if it is worth trying again."""
        ...

    def client_certificate(self) -> tuple[str, str] | None:
        """Paths of the certificate and key to show in the TLS handshake, if this source gives them."""
        ...


class Anonymous:
    """No credential in the headers: a client certificate may still say who we are."""

    def headers(self) -> Mapping[str, str]:
        return {}

    def renew(self, refused: Mapping[str, str]) -> bool:  # noqa: ARG002 - there is nothing to renew
        return False

    def client_certificate(self) -> tuple[str, str] | None:
        return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Fresh(NamedTuple):
    """What a source gave: headers, a certificate, and for how many seconds it may be used."""

    headers: Mapping[str, str]
    ttl: float
    certificate: tuple[str, str] | None = None


class CachedCredentials:
    """Calls `read` when its last answer has run out, or was refused; keeps a failure back for a while.

    With `keep_last`, a failing `read` leaves the last good answer in use: a token file may be missing for
    the moment in which it is replaced.
    """

    def __init__(
        self,
        read: Callable[[], Fresh],
        *,
        name: str,
        keep_last: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self._read = read
        self._name = name
        self._keep_last = keep_last
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()  # guards all below; held while reading, which makes it single-flight
        self._fresh: Fresh | None = None
        self._expires = 0.0
        self._failure: Exception | None = None
        self._failed_until = 0.0

    def headers(self) -> Mapping[str, str]:
        fresh = self._fresh
        if fresh is not None and self._clock.monotonic() < self._expires:
            return fresh.headers  # no lock on the way of every request
        with self._lock:
            return self._current_locked().headers

    def renew(self, refused: Mapping[str, str]) -> bool:
        with self._lock:
            before = self._fresh
            if before is not None and before.headers != refused:
                return True  # another thread was faster
            self._expires = 0.0
            fresh = self._current_locked()
            return fresh.headers != refused or (
                before is not None and fresh.certificate != before.certificate
            )

    def client_certificate(self) -> tuple[str, str] | None:
        self.headers()
        return self._fresh.certificate if self._fresh else None

    def _current_locked(self) -> Fresh:
        now = self._clock.monotonic()
        if self._fresh is not None and now < self._expires:
            return self._fresh
        if self._failure is not None and now < self._failed_until:
            return self._last_locked(self._failure)
        try:
            fresh = self._read()
        except (ConfigError, OSError, ValueError) as error:
            self._failure = error
            self._failed_until = self._clock.monotonic() + RETRY_INTERVAL
            return self._last_locked(error)
        self._failure = None
        self._fresh = fresh
        self._expires = self._clock.monotonic() + fresh.ttl
        return fresh

    def _last_locked(self, error: Exception) -> Fresh:
        if self._keep_last and self._fresh is not None:
            _log.warning(
                "credentials could not be read anew, the last ones stay in use",
                extra={"fields": {"source": self._name, "error": str(error)}},
            )
            return self._fresh
        raise error

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name})"


def bearer(token: str) -> dict[str, str]:
    """The header for a token. Raises `ConfigError` for one that is empty or would break the header."""
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError("the token is empty or holds characters that no token has")
    return {"Authorization": f"Bearer {token}"}


def token_file(
    path: str, clock: Clock | None = None, extra: Mapping[str, str] | None = None
) -> CachedCredentials:
    """A token that something else keeps up to date in a file, such as a projected service account token."""

    def read() -> Fresh:
        return Fresh({**bearer(Path(path).read_text("utf-8")), **(extra or {})}, TOKEN_TTL)

    return CachedCredentials(read, name=f"token file {path}", keep_last=True, clock=clock)


def fixed(
    headers: Mapping[str, str], reload: Callable[[], Mapping[str, str]], clock: Clock | None = None
) -> CachedCredentials:
    """Headers that stay as they are until the server refuses them; then `reload` reads the configuration."""
    given: list[Mapping[str, str]] = [headers]

    def read() -> Fresh:
        return Fresh(given.pop() if given else reload(), float("inf"))

    return CachedCredentials(read, name="kubeconfig", keep_last=True, clock=clock)


def basic(username: str, password: str) -> dict[str, str]:
    """The header of HTTP basic authentication."""
    secret = base64.b64encode(f"{username}:{password}".encode()).decode()
    return {"Authorization": f"Basic {secret}"}
