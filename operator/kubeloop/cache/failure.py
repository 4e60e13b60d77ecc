"""What a failure means to a reflector."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from kubeloop.client import (
    ApiError,
    CredentialsError,
    Expired,
    Forbidden,
    NotFound,
    ServerTimeout,
    TooManyRequests,
    TransportError,
    Unauthorized,
)


class Kind(enum.Enum):
    """Kinds of failure, by what has to be done."""

    UNREACHABLE = "unreachable"
    """No answer, or an answer that the server itself is unwell: try the same again."""
    SILENT = "silent"
    """An open stream on which nothing came for too long."""
    BUSY = "busy"
    """429: the same again, when the server says."""
    EXPIRED = "expired"
    """410: the version is forgotten."""
    AHEAD = "ahead"
    """The server does not know our version yet, or any more (it was restored)."""
    MISSING = "missing"
    """404: the resource type does not exist, for example because its CRD is not installed."""
    FORBIDDEN = "forbidden"
    """401 or 403."""
    REFUSED = "refused"
    """The request itself is not accepted."""
    BROKEN = "broken"
    """The stream broke in a way that may come from its content."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure; `text` is for people."""

    kind: Kind
    text: str
    retry_after: float | None = None


def classify(error: ApiError | TransportError, *, in_stream: bool = False) -> Failure:
    """What an error means; `in_stream` if it ended a running watch."""
    if isinstance(error, TransportError):
        if isinstance(error, CredentialsError):
            return Failure(Kind.FORBIDDEN, str(error))
        silent = in_stream and isinstance(error.__cause__, TimeoutError)
        return Failure(Kind.SILENT if silent else Kind.UNREACHABLE, str(error))
    return Failure(_kind(error, in_stream), str(error), error.retry_after)


def _kind(error: ApiError, in_stream: bool) -> Kind:
    match error:
        case Expired():
            return Kind.EXPIRED
        case TooManyRequests():
            return Kind.BUSY
        case ServerTimeout() if error.resource_version_too_large:
            return Kind.AHEAD
        case Forbidden() | Unauthorized():
            return Kind.FORBIDDEN
        case NotFound():
            return Kind.MISSING
    if error.code >= 500:
        return Kind.BROKEN if in_stream else Kind.UNREACHABLE
    return Kind.BROKEN if in_stream else Kind.REFUSED
