"""Failures as the API server words them: `ApiFailure` and the constructors of its usual `Status` objects.

Every text here was compared with a kube-apiserver 1.36; clients (kubectl first) match on `reason` and
`details`, people read `message`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OPTIMISTIC_LOCK = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
"""The message of a conflict on resourceVersion (apiserver: registry.OptimisticLockErrorMsg)."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of `details.causes`; `message` is the text after the field's name (``Required value``)."""

    reason: str
    message: str
    field: str

    def to_wire(self) -> dict[str, str]:
        wire = {"reason": self.reason, "message": self.message, "field": self.field}
        return {key: value for key, value in wire.items() if value}


class ApiFailure(Exception):
    """A request that ends with a `Status` of kind Failure.

    `resource` names what was asked for in messages: ``webapps.example.com`` or ``pods``.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = dict(details) if details is not None else None
        self.headers = dict(headers or {})
        self.list_meta: dict[str, Any] = {}
        """The Status' `metadata`: an expired list says there how it can go on."""

    def to_status(self) -> dict[str, Any]:
        """The wire form (``kind: Status``)."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.list_meta,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


def qualified(group: str, plural: str) -> str:
    """A resource as messages name it: ``webapps.example.com``, core resources bare."""
    return f"{plural}.{group}" if group else plural


def _details(name: str, group: str, kind: str, **more: Any) -> dict[str, Any]:
    details = {"name": name, "group": group, "kind": kind, **more}
    return {key: value for key, value in details.items() if value not in ("", None, [])}


def not_found(group: str, plural: str, name: str) -> ApiFailure:
    """404 for an object."""
    return ApiFailure(
        404,
        "NotFound",
        f'{qualified(group, plural)} "{name}" not found',
        details=_details(name, group, plural),
    )


def no_such_path() -> ApiFailure:
    """404 as a Status for a path that means no resource."""
    return ApiFailure(404, "NotFound", "the server could not find the requested resource", details={})


def already_exists(group: str, plural: str, name: str) -> ApiFailure:
    """409 of a create."""
    return ApiFailure(
        409,
        "AlreadyExists",
        f'{qualified(group, plural)} "{name}" already exists',
        details=_details(name, group, plural),
    )


def generate_name_conflict(group: str, plural: str, name: str) -> ApiFailure:
    """409 of a create with generateName whose drawn names were all taken."""
    return ApiFailure(
        409,
        "AlreadyExists",
        f'{qualified(group, plural)} "{name}" already exists, the server was not able to generate a '
        "unique name for the object",
        details=_details(name, group, plural, retryAfterSeconds=1),
        headers={"Retry-After": "1"},
    )


def conflict(group: str, plural: str, name: str, message: str = OPTIMISTIC_LOCK) -> ApiFailure:
    """409 of an update: an outdated resourceVersion, or a precondition that does not hold."""
    return ApiFailure(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {qualified(group, plural)} "{name}": {message}',
        details=_details(name, group, plural),
    )


def apply_conflict(conflicts: Sequence[tuple[str, str]]) -> ApiFailure:
    """409 of a server-side apply; `conflicts` pairs the cause's message with its field, in order."""
    texts = [f"{message}: {field}" for message, field in conflicts]
    text = f"1 conflict: {texts[0]}" if len(texts) == 1 else f"{len(texts)} conflicts: [{', '.join(texts)}]"
    return ApiFailure(
        409,
        "Conflict",
        f"Apply failed with {text}",
        details={"causes": [Cause("FieldManagerConflict", m, f).to_wire() for m, f in conflicts]},
    )


def invalid(kind: str, group: str, name: str, causes: Iterable[Cause]) -> ApiFailure:
    """422 with its causes; several are listed in brackets, as field.ErrorList.ToAggregate does."""
    listed = list(causes)
    texts = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in listed))
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    subject = f"{kind}.{group}" if group else kind
    return ApiFailure(
        422,
        "Invalid",
        f'{subject} "{name}" is invalid' + (f": {text}" if texts else ""),
        details=_details(name, group, kind, causes=[cause.to_wire() for cause in listed]),
    )


def bad_request(message: str) -> ApiFailure:
    """400."""
    return ApiFailure(400, "BadRequest", message)


def unauthorized() -> ApiFailure:
    """401."""
    return ApiFailure(401, "Unauthorized", "Unauthorized")


def forbidden(group: str, plural: str, name: str, why: str, *, causes: Iterable[Cause] = ()) -> ApiFailure:
    """403 of an object or a collection (`name` empty)."""
    subject = qualified(group, plural)
    text = f'{subject} "{name}" is forbidden: {why}' if name else f"{subject} is forbidden: {why}"
    return ApiFailure(
        403,
        "Forbidden",
        text,
        details=_details(name, group, plural, causes=[cause.to_wire() for cause in causes]),
    )


def namespace_terminating(group: str, plural: str, name: str, namespace: str) -> ApiFailure:
    """403 of a create in a namespace that is being deleted (clients look for the cause)."""
    return forbidden(
        group,
        plural,
        name,
        f"unable to create new content in namespace {namespace} because it is being terminated",
        causes=[
            Cause("NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace")
        ],
    )


def expired(message: str) -> ApiFailure:
    """410 with reason Expired: a resourceVersion or continue token from before the last compaction."""
    return ApiFailure(410, "Expired", message)


def too_large_resource_version(asked: int, current: int) -> ApiFailure:
    """504: the resourceVersion lies in the future; clients look for the cause."""
    return ApiFailure(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {asked}, current: {current}",
        details={
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
        headers={"Retry-After": "1"},
    )


def method_not_allowed() -> ApiFailure:
    """405."""
    return ApiFailure(
        405, "MethodNotAllowed", "the server does not allow this method on the requested resource", details={}
    )


def unsupported_media_type(message: str) -> ApiFailure:
    """415."""
    return ApiFailure(415, "UnsupportedMediaType", message)


def not_acceptable(message: str) -> ApiFailure:
    """406."""
    return ApiFailure(406, "NotAcceptable", message)


def request_too_large(limit: int) -> ApiFailure:
    """413; `limit` in bytes."""
    return ApiFailure(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def internal_error(message: str) -> ApiFailure:
    """500; a fault of the sandbox itself, which it also keeps for the test to see."""
    return ApiFailure(
        500,
        "InternalError",
        f"Internal error occurred: {message}",
        details={"causes": [{"message": message}]},
    )


def not_implemented_here(feature: str) -> ApiFailure:
    """501: the real server knows `feature`, this one does not simulate it and will not guess an answer."""
    return ApiFailure(501, "NotImplemented", f"the sandbox does not simulate {feature}")
