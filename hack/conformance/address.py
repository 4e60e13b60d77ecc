"""Where a request goes: aliases of kinds (``cm/a``, ``widget@other/w/status?dryRun=All``) made into paths."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .variables import ScriptError


@dataclass(frozen=True, slots=True)
class Kind:
    """What an alias stands for."""

    api: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def root(self) -> str:
        return f"/apis/{self.api}" if "/" in self.api else f"/api/{self.api}"


@dataclass(frozen=True, slots=True)
class Place:
    """A target taken apart: the path to send, and what the alias says of the body."""

    path: str
    query: str
    kind: Kind | None = None
    name: str = ""
    subresource: str = ""
    alias: str = ""

    @property
    def target(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path


def place(target: str, kinds: Mapping[str, Kind], *, namespace: str, group: str, create: bool) -> Place:
    """Where `target` leads; a `create` goes to the collection. Raises `ScriptError` for an unknown alias."""
    address, _, query = target.partition("?")
    if address.startswith("/"):
        return Place(address, query)
    alias, *rest = address.split("/")
    alias, _, other = alias.partition("@")
    kind = kinds.get(alias)
    if kind is None:
        raise ScriptError(f"no kind {alias!r}")
    path = kind.root.replace("${group}", group)
    if kind.namespaced and other != "*":
        path += f"/namespaces/{other or namespace}"
    path += f"/{kind.plural}"
    name, subresource = [*rest, "", ""][:2]
    if name and not create:
        path += f"/{name}"
    if subresource:
        path += f"/{name}/{subresource}" if create else f"/{subresource}"
    return Place(path, query, kind, name, subresource, alias)


def identity(place: Place, group: str) -> dict[str, Any]:
    """What `create`, `replace` and `apply` fill into a body: apiVersion, kind and name."""
    if place.kind is None:
        return {}
    result: dict[str, Any] = {
        "apiVersion": place.kind.api.replace("${group}", group),
        "kind": place.kind.kind,
    }
    if place.subresource == "scale":
        result = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
    if place.name:
        result["metadata"] = {"name": place.name}
    return result
