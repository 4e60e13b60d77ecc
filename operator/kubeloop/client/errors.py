"""What can go wrong between us and the API server, by type.

`ApiError` is an answer of the server, and carries its Status. `TransportError` means that there was no
usable answer. `ConfigError` means that it is not known which server to ask, or as whom. Messages name the
verb and the object first, are bounded in length and never hold a credential.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

MAX_MESSAGE = 1024
"""Characters of a server's message that are kept; an admission webhook may answer with pages of text."""

MAX_RETRY_AFTER = 3600.0
"""Seconds; longer Retry-After values are cut to this, so that no wait can overflow or last for ever."""


class ConfigError(Exception):
    """No usable configuration: says what was looked for, where, and what was wrong with it."""


class MissingKeyError(Exception):
    """An object lacks a field that all of its kind have; `key` is its path (`.metadata.namespace`)."""

    def __init__(self, key: str) -> None:
        super().__init__(f"missing key {key}")
        self.key = key


class TransportError(Exception):
    """No usable answer: connection refused or lost, timeout, TLS failure, or a body that is not an answer.

    `sent` is False when it is certain that the server never saw the request.
    """

    def __init__(self, verb: str, target: str, cause: object, *, sent: bool = True) -> None:
        super().__init__(f"{verb} {target}: {_cut(describe(cause))}")
        self.verb = verb
        self.target = target
        self.sent = sent


class CredentialsError(TransportError):
    """There is no valid credential to send; the request was not made (never made anonymously instead)."""

    def __init__(self, verb: str, target: str, cause: object) -> None:
        super().__init__(verb, target, cause, sent=False)


class ApiError(Exception):
    """An answer of the API server with an error status.

    `verb` and `target` say what was asked (`patch`, `deployments.apps/default/hello`), `code` and `reason`
    are the HTTP status and the machine-readable reason, `status` the Status object (empty if the body was
    none), `retry_after` the seconds that the server asked to wait, if it did.
    """

    def __init__(
        self,
        verb: str,
        target: str,
        code: int,
        status: Mapping[str, Any],
        *,
        message: str = "",
        retry_after: float | None = None,
    ) -> None:
        self.verb = verb
        self.target = target
        self.code = code
        self.status = status
        self.reason = str(status.get("reason") or _REASONS.get(code, "Unknown"))
        self.message = _cut(str(status.get("message") or message or "no message"))
        self.retry_after = retry_after
        super().__init__(f"{verb} {target}: {code} {self.reason}: {self.message}")

    @property
    def causes(self) -> tuple[Mapping[str, Any], ...]:
        """The Status' `details.causes`: field, reason and message each."""
        details = self.status.get("details")
        causes = details.get("causes") if isinstance(details, Mapping) else None
        return tuple(cause for cause in causes or () if isinstance(cause, Mapping))

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.verb, self.target, self.code, dict(self.status), self.message)


class BadRequest(ApiError):
    """400: the server could not make sense of the request."""


class Unauthorized(ApiError):
    """401, also after the credentials were read anew."""


class Forbidden(ApiError):
    """403: no permission, a quota, an admission refusal, or a namespace that is being deleted."""


class NotFound(ApiError):
    """404: no such object, or no such resource type (`kind_missing`)."""

    @property
    def kind_missing(self) -> bool:
        """Whether it is the resource type that is unknown, as for a CRD that is not installed."""
        details = self.status.get("details")
        return not (isinstance(details, Mapping) and details.get("name"))


class MethodNotAllowed(ApiError):
    """405: the resource does not support this verb."""


class Conflict(ApiError):
    """409: an outdated resourceVersion, a failed precondition, or a field owned by another manager."""


class AlreadyExists(Conflict):
    """409 for a create: the name is taken."""


class Expired(ApiError):
    """410: the resourceVersion or continue token is older than what the server still knows."""


class Invalid(ApiError):
    """422: the object breaks the kind's rules; `causes` names the fields."""


class TooManyRequests(ApiError):
    """429: the server is busy."""


class InternalError(ApiError):
    """500."""


class ServiceUnavailable(ApiError):
    """503."""


class ServerTimeout(ApiError):
    """504, or 500 with reason ServerTimeout: the outcome of a write is unknown."""

    @property
    def resource_version_too_large(self) -> bool:
        """Whether the server has not seen the asked resourceVersion yet (or will never: it was restored)."""
        return "Too large resource version" in self.message or any(
            cause.get("reason") == "ResourceVersionTooLarge" for cause in self.causes
        )


_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Gone",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}

_BY_REASON: dict[str, type[ApiError]] = {
    "AlreadyExists": AlreadyExists,
    "Expired": Expired,
    "Gone": Expired,
    "ServerTimeout": ServerTimeout,
    "Timeout": ServerTimeout,
}

_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: TooManyRequests,
    500: InternalError,
    503: ServiceUnavailable,
    504: ServerTimeout,
}


def api_error(
    verb: str, target: str, code: int, body: bytes, headers: Mapping[str, str] | None = None
) -> ApiError:
    """The error for an answer with `code`; `body` need not be a Status (a proxy answers with HTML)."""
    try:
        decoded = json.loads(body)
    except ValueError:  # also UnicodeDecodeError
        decoded = None
    status = decoded if isinstance(decoded, dict) and decoded.get("kind") == "Status" else {}
    text = "" if status else " ".join(body[: 4 * MAX_MESSAGE].decode("utf-8", "replace").split())
    return status_error(verb, target, code, status, message=text, headers=headers)


def status_error(
    verb: str,
    target: str,
    code: int,
    status: Mapping[str, Any],
    *,
    message: str = "",
    headers: Mapping[str, str] | None = None,
) -> ApiError:
    """The error for a Status, be it an answer's body or the object of a watch's ERROR event."""
    cls = _BY_REASON.get(str(status.get("reason"))) or _BY_CODE.get(code, ApiError)
    return cls(verb, target, code, status, message=message, retry_after=_retry_after(status, headers or {}))


def _retry_after(status: Mapping[str, Any], headers: Mapping[str, str]) -> float | None:
    """The Retry-After header in seconds, else the Status' retryAfterSeconds. Servers do not send dates."""
    details = status.get("details")
    given = headers.get("retry-after") or (
        details.get("retryAfterSeconds") if isinstance(details, Mapping) else None
    )
    try:
        seconds = float(given) if given else 0.0
    except (TypeError, ValueError):
        return None
    return min(seconds, MAX_RETRY_AFTER) if seconds > 0 else None  # NaN compares false


def describe(cause: object) -> str:
    """An exception as text that is never empty; anything else as it is."""
    return (str(cause) or type(cause).__name__) if isinstance(cause, BaseException) else str(cause)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}… ({len(text)} characters)"


def _rebuild(
    cls: type[ApiError], verb: str, target: str, code: int, status: dict[str, Any], message: str
) -> ApiError:
    return cls(verb, target, code, status, message=message)
