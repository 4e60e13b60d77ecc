"""How operations on resources become request targets, and how objects are named in messages."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from kubeloop.model import Resource


def target(path: str, query: Mapping[str, object | None]) -> str:
    """`path` with those of `query` that are neither None nor empty; booleans as the API wants them."""
    parts = [f"{name}={_value(value)}" for name, value in query.items() if value is not None and value != ""]
    return f"{path}?{'&'.join(parts)}" if parts else path


def _value(value: object) -> str:
    if value is True or value is False:
        return "true" if value else "false"
    return quote(str(value), safe="")


def describe(
    resource: Resource, name: str | None = None, namespace: str | None = None, subresource: str | None = None
) -> str:
    """`webapps.example.com/status default/hello`, as messages name an object; a collection without name."""
    what = f"{resource}/{subresource}" if subresource else str(resource)
    if name is None:
        return f"{what} in {namespace}" if namespace else what
    return f"{what} {namespace}/{name}" if namespace else f"{what} {name}"
