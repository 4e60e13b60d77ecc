"""Where a kind of object lives in the API: group, version, plural, and the URL paths that follow."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource type of the API server, for example deployments in apps/v1.

    `kind` may be empty when only paths are needed. The core group is the empty string.
    """

    group: str
    version: str
    plural: str
    kind: str = ""
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """`group/version`, or just `version` in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """The URL path of the collection, of one object, or of one object's subresource.

        Every segment is percent-encoded, so a name can never lead elsewhere. Without `namespace` a namespaced
        resource means all namespaces.

        Raises ValueError for a namespace on a cluster-scoped resource, for a single object of a namespaced
        one without namespace, and for a subresource without name.
        """
        if namespace is not None and not self.namespaced:
            raise ValueError(f"{self} is cluster-scoped, so namespace {namespace!r} makes no sense")
        if name is not None and namespace is None and self.namespaced:
            raise ValueError(f"{self} is namespaced: object {name!r} needs a namespace")
        if subresource is not None and name is None:
            raise ValueError(f"subresource {subresource!r} of {self} needs an object name")
        segments = ["apis", self.group] if self.group else ["api"]
        segments.append(self.version)
        if namespace is not None:
            segments += ["namespaces", _segment(namespace)]
        segments.append(self.plural)
        if name is not None:
            segments.append(_segment(name))
        if subresource is not None:
            segments += [_segment(part) for part in subresource.split("/")]
        return "/" + "/".join(segments)

    def __str__(self) -> str:
        """`plural.group` as kubectl and CRDs spell it; just `plural` in the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def _segment(text: str) -> str:
    """One path segment: never empty, never `.` or `..`, which intermediaries would resolve away."""
    if text in ("", ".", ".."):
        raise ValueError(f"{text!r} cannot be part of an API path")
    return quote(text, safe="")
