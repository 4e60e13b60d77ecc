"""What the client gives back, and how it is decoded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from pydantic_core import from_json

from kubeloop.client.errors import TransportError
from kubeloop.client.transport import Response
from kubeloop.model import Resource


class Answer:
    """The server's answer to a patch: the object as it is now, decoded when asked for.

    `raw` is its JSON, `status` the HTTP status, `created` whether an apply made the object (201).
    """

    def __init__(self, status: int, raw: bytes, verb: str = "patch", what: str = "object") -> None:
        self.status = status
        self.raw = raw
        self._verb = verb
        self._what = what

    @cached_property
    def object(self) -> dict[str, Any]:
        """The object. Raises `TransportError` if the body is none."""
        return _decode(self.raw, self._verb, self._what)

    @property
    def created(self) -> bool:
        return self.status == 201


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a list. `continue_` is empty on the last page; `resource_version` is the whole list's."""

    items: list[dict[str, Any]]
    resource_version: str
    continue_: str


@dataclass(frozen=True, slots=True)
class ObjectList:
    """A whole list, as of `resource_version`."""

    items: list[dict[str, Any]]
    resource_version: str


class RequestInfo(NamedTuple):
    """One try of a request, for metrics: its HTTP method, its status (0: no answer), its seconds."""

    method: str
    code: int
    seconds: float


def decode_object(response: Response, verb: str, what: str) -> dict[str, Any]:
    """The answer's object. Raises `TransportError` if the body is no JSON object."""
    return _decode(response.body, verb, what)


def decode_page(response: Response, what: str, resource: Resource) -> Page:
    """The answer's list. A body that is not a list (a proxy's page, a Status) must not pass for an empty one.

    Items of built-in kinds come without apiVersion and kind; they get them here.
    """
    document = _decode(response.body, "list", what)
    metadata = document.get("metadata")
    items = document.get("items", ...)
    kind = document.get("kind")
    if not isinstance(metadata, dict) or not isinstance(kind, str) or not kind.endswith("List"):
        raise TransportError("list", what, f"the answer is not a list but {str(kind)[:60]!r}")
    if items is None:
        items = []
    if not isinstance(items, list):
        raise TransportError("list", what, "the answer is a list without items")
    item_kind = resource.kind or kind.removesuffix("List")
    for item in items:
        if isinstance(item, dict):
            item.setdefault("apiVersion", resource.api_version)
            item.setdefault("kind", item_kind)
    return Page(items, str(metadata.get("resourceVersion") or ""), str(metadata.get("continue") or ""))


def _decode(body: bytes, verb: str, what: str) -> dict[str, Any]:
    try:
        decoded = from_json(body)
    except ValueError as error:
        raise TransportError(verb, what, f"the answer is not JSON: {error}") from None
    if not isinstance(decoded, dict):
        raise TransportError(verb, what, "the answer is not a JSON object")
    return decoded
