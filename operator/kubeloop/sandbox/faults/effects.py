"""What can happen to a request."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from typing import Any

from kubeloop.sandbox.pipeline.request import Response

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
MESSAGES = {
    401: "Unauthorized",
    410: "The resourceVersion for the provided watch is too old.",
    429: "Too many requests, please try again later.",
}


@dataclass(frozen=True, slots=True)
class Effect:
    """What happens. Numbers of events count those a watch has sent, bookmarks not included.

    Before the server looks at the request:
    - `latency`: seconds of the sandbox's clock until it does; one that stands still must be moved meanwhile
      by somebody else.
    - `refuse`, `reset`: no connection, a broken one. Over HTTP both break the connection.
    - `silence`: no answer, ever (a half-open connection); the client's timeout is all that helps.
    - `status`: this answer instead, with `reason`, `message`, `retry_after` (seconds) and `body` (an object,
      or text as it is).

    While it answers:
    - `stale`: it answers as it would have that many changes ago; a watch begins that much earlier.
    - `lose_answer`: it does what was asked, and the connection breaks before the answer.
    - `truncate`: the body breaks off after that many bytes. `pieces`: it comes that many bytes at a time.

    In a watch, after that many events:
    - `end_after`: it ends as usual. `reset_after`: the connection breaks. `silence_after`: nothing comes any
      more. `gone_after`: it ends with the error 410.
    - `drop_bookmarks`: none are sent.
    """

    latency: float = 0.0
    refuse: bool = False
    reset: bool = False
    silence: bool = False
    status: int = 0
    reason: str = ""
    message: str = ""
    retry_after: int | None = None
    body: Any = None
    stale: int = 0
    lose_answer: bool = False
    truncate: int | None = None
    pieces: int | None = None
    end_after: int | None = None
    reset_after: int | None = None
    silence_after: int | None = None
    gone_after: int | None = None
    drop_bookmarks: bool = False

    def __post_init__(self) -> None:
        if all(getattr(self, f.name) == f.default for f in fields(self)):
            raise ValueError("a fault needs an effect: status, latency, reset ...")
        for name in (
            "latency",
            "stale",
            "truncate",
            "end_after",
            "reset_after",
            "silence_after",
            "gone_after",
        ):
            if (getattr(self, name) or 0) < 0:
                raise ValueError(f"{name} must not be negative")
        if self.pieces is not None and self.pieces < 1:
            raise ValueError("pieces are of one byte at least")
        if self.status and not 200 <= self.status <= 599:
            raise ValueError(f"{self.status} is no status code")

    def __add__(self, other: Effect) -> Effect:
        """Both: latencies add up, else what `other` says wins."""
        changes = {
            f.name: getattr(other, f.name) for f in fields(other) if getattr(other, f.name) != f.default
        }
        return replace(self, **{**changes, "latency": self.latency + other.latency})

    def __str__(self) -> str:
        shown = [(f.name, getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) != f.default]
        return ", ".join(name if value is True else f"{name}={value}" for name, value in shown)

    def response(self) -> Response:
        """The answer that `status` asks for."""
        headers = {"content-type": "application/json"}
        if self.retry_after is not None:
            headers["retry-after"] = str(self.retry_after)
        if isinstance(self.body, str):
            return Response(self.status, {**headers, "content-type": "text/plain"}, self.body.encode())
        if self.body is not None:
            return Response(self.status, headers, json.dumps(self.body).encode())
        return Response(self.status, headers, json.dumps(self._status()).encode())

    def _status(self) -> dict[str, Any]:
        message = self.message or MESSAGES.get(self.status) or "a fault of the sandbox's, on purpose"
        details = {} if self.retry_after is None else {"retryAfterSeconds": self.retry_after}
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": self.reason or REASONS.get(self.status, ""),
            "details": details,
            "code": self.status,
        }
        return {
            key: value for key, value in status.items() if value not in ("",) and (value or key != "details")
        }
