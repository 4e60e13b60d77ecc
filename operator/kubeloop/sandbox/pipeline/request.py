"""What a request asks for: its path taken apart as the real server does, its query, its headers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal
from urllib.parse import parse_qsl, unquote


@dataclass(frozen=True, slots=True)
class Target:
    """A path as Kubernetes reads it. `resource` is empty for paths that name no resource (``/version``)."""

    path: str
    group: str = ""
    version: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    watch_path: bool = False
    """Whether it is of the old form ``/apis/g/v/watch/...``."""
    namespaced_path: bool = False
    """Whether the path said ``/namespaces/x/``."""
    extra: bool = False
    """Whether the path goes on behind the subresource."""


@lru_cache(maxsize=4096)
def parse_path(path: str) -> Target:
    """Take `path` apart (RequestInfoFactory of the apiserver); never fails."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return Target(path)
    watch_path = False
    if rest[0] == "watch" and len(rest) > 1:
        watch_path, rest = True, rest[1:]
    namespace, namespaced_path = "", False
    if rest[0] == "namespaces" and len(rest) > 2 and not (not group and rest[2] in ("status", "finalize")):
        namespace, namespaced_path, rest = rest[1], True, rest[2:]
    elif rest[0] == "namespaces" and len(rest) > 1 and not group:
        # An object of the resource "namespaces" counts as being in itself, for authorisation.
        namespace = rest[1]
    padded = [*rest, "", "", ""]
    return Target(
        path,
        group,
        version,
        resource=padded[0],
        namespace=namespace,
        name=padded[1],
        subresource=padded[2],
        watch_path=watch_path,
        namespaced_path=namespaced_path,
        extra=len(rest) > 3,
    )


@dataclass(slots=True)
class Request:
    """One request as a transport hands it in; header names are lower-case."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    internal: bool = False
    """Whether a controller of the sandbox itself asks; set by code, never by a client."""

    changes_ago: int = 0
    """How far behind the server is when it answers reads; set by faults."""

    path: str = field(init=False)
    query: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.path, _, query = self.target.partition("?")
        # Kubernetes takes the first of repeated parameters.
        self.query = _parse_query(query) if query else {}


@lru_cache(maxsize=1024)
def _parse_query(query: str) -> dict[str, str]:
    """The parameters; nobody changes them, so that the many requests with the same query share them."""
    result: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        result.setdefault(key, value)
    return result


Broken = Literal["", "refused", "reset", "silent", "late"]
"""How a connection ends without an answer: silent ones and late ones by the client's own timeout."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What goes wrong on the way to the client (see `faults`); the transports show it."""

    broken: Broken = ""
    truncate: int | None = None
    pieces: int | None = None
    unhandled: bool = False
    """Whether the server never saw the request."""


@dataclass(slots=True)
class Response:
    """A finished answer. Structurally what the runtime's `Response` protocol asks for."""

    status: int
    headers: dict[str, str]
    body: bytes
    delivery: Delivery | None = None
