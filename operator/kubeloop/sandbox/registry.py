"""Which resources are served: their definitions, and the rules (schema and strategy) each brings along.

`ResourceInfo` is the one description of a resource that the pipeline, discovery, tables and OpenAPI work
from. Built-in kinds and CRDs differ only in the `Schema` and `Strategy` that stand in it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from kubeloop.sandbox.schema import KindSchema
from kubeloop.sandbox.status import Cause

Object = dict[str, Any]
"""An API object on the wire. Once stored it is never changed in place."""

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
SUBRESOURCE_VERBS = ("get", "patch", "update")


class Strategy:
    """The rules of one kind beyond its schema; this base class is what a plain custom resource does.

    Methods get complete objects (metadata included) and return new ones; they never change their input.
    `status_subresource` says whether writes to the main resource leave `status` alone.
    """

    name_rule: str = "subdomain"
    """How names are validated: ``subdomain`` (RFC 1123, 253), ``label`` (RFC 1123, 63), ``label1035``
    (services), ``path`` (anything that can be a path segment: RBAC)."""
    allow_unconditional_update: bool = False
    """Whether an update may come without a resourceVersion (custom resources: no, most built-ins: yes)."""
    allow_create_on_update: bool = False
    """Whether PUT creates what is not there (Lease, Service, Event ...)."""
    graceful: bool = False
    """Whether a delete only marks the object until its grace period is over (pods)."""
    default_propagation: str = "Background"
    """What a delete without propagationPolicy does with dependents."""

    def __init__(self, *, status_subresource: bool = False) -> None:
        self.status_subresource = status_subresource

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        """Reset what a client may not choose on create (status, for kinds with that subresource)."""
        del now
        if self.status_subresource and "status" in obj:
            return without(obj, "status")
        return obj

    def prepare_update(self, obj: Object, old: Object) -> Object:
        """Put back what an update of the main resource may not change."""
        return _with_field(obj, old, "status") if self.status_subresource else obj

    def prepare_status_update(self, obj: Object, old: Object) -> Object:
        """Put back everything but what an update of ``/status`` may change."""
        return _with_field(old, obj, "status")

    def reset_fields(self, subresource: str) -> tuple[tuple[str, ...], ...]:
        """Paths that an apply configuration for `subresource` (empty: the main resource) never owns."""
        if subresource == "status":
            return (("spec",), ("metadata",))
        return (("status",),) if self.status_subresource else ()

    def defaults(self, obj: Object) -> Object:
        """Defaults that a schema cannot express (built-in kinds)."""
        return obj

    def validate_create(self, obj: Object) -> list[Cause]:
        """What the schema could not check. Metadata common to all kinds is checked by the pipeline."""
        del obj
        return []

    def validate_update(self, obj: Object, old: Object) -> list[Cause]:
        """As `validate_create`, plus immutable fields."""
        del obj, old
        return []

    def validate_status_update(self, obj: Object, old: Object) -> list[Cause]:
        """As `validate_update` for a write to ``/status``."""
        del obj, old
        return []

    def has_generation(self) -> bool:
        """Whether the server counts `metadata.generation` for this kind."""
        return True

    def generation_moves(self, obj: Object, old: Object) -> bool:
        """Whether this change of the main resource bumps `metadata.generation` (status already put back)."""
        return {k: v for k, v in obj.items() if k != "metadata"} != {
            k: v for k, v in old.items() if k != "metadata"
        }

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        """Texts for ``Warning`` headers of a successful write."""
        del obj, old
        return []


def without(obj: Object, name: str) -> Object:
    """A copy of `obj` that lacks the top-level field `name`."""
    return {key: value for key, value in obj.items() if key != name}


def _with_field(obj: Object, source: Object, name: str) -> Object:
    result = without(obj, name)
    if name in source:
        result[name] = source[name]
    return result


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where the scale subresource finds its numbers, as dotted paths (``.spec.replicas``)."""

    spec_replicas: str
    status_replicas: str
    label_selector: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A printer column; `json_path` is as in a CRD (``.spec.image``)."""

    name: str
    type: str
    json_path: str
    description: str = ""
    format: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Shared:
    """How a resource shows the objects of another one: events.k8s.io those of the core group.

    `key` and `api_version` are those of the other resource; `shown` and `stored` convert an object from and
    to its shape.
    """

    key: tuple[str, str]
    api_version: str
    shown: Callable[[Object], Object]
    stored: Callable[[Object], Object]


@dataclass(frozen=True, slots=True, eq=False)
class ResourceInfo:
    """One served resource in one version. Compared by identity."""

    group: str
    version: str
    kind: str
    plural: str
    schema: KindSchema
    strategy: Strategy
    singular: str = ""
    list_kind: str = ""
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: frozenset[str] = frozenset()
    columns: tuple[Column, ...] = ()
    scale: ScalePaths | None = None
    selectable_fields: tuple[str, ...] = ()
    """Dotted paths (``spec.image``) that field selectors may use besides metadata.name and .namespace."""
    custom: bool = False
    storage_version: str = ""
    """The version objects are stored in; empty: `version`."""
    storage_schema: KindSchema | None = None
    """By which stored objects are read (custom resources: it may have changed since they were written)."""
    openapi: Mapping[str, Any] = field(default_factory=dict)
    """The published OpenAPI v3 schema of the kind (CRDs)."""
    shared: Shared | None = None
    """Whose objects these are, when not its own."""
    warning: str = ""
    """A deprecation warning sent with every answer (CRD versions)."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def storage_api_version(self) -> str:
        version = self.storage_version or self.version
        return f"{self.group}/{version}" if self.group else version

    def to_storage(self, obj: Object) -> Object:
        """`obj` as it is stored."""
        if self.shared is not None:
            return self.shared.stored(obj)
        version = self.storage_api_version
        return obj if obj["apiVersion"] == version else {**obj, "apiVersion": version}

    @property
    def key(self) -> tuple[str, str]:
        """What all versions of a resource share: (group, plural)."""
        return (self.group, self.plural) if self.shared is None else self.shared.key

    @property
    def qualified(self) -> str:
        """``webapps.example.com``; core resources bare."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def list_name(self) -> str:
        return self.list_kind or f"{self.kind}List"

    @property
    def singular_name(self) -> str:
        return self.singular or self.kind.lower()

    def with_changes(self, **changes: Any) -> ResourceInfo:
        """A copy with some fields replaced."""
        return replace(self, **changes)


class Registry:
    """The served resources; thread-safe, readers see immutable snapshots.

    `generation` counts changes, so that documents built from a snapshot can be cached by it.
    """

    def __init__(self, infos: Iterable[ResourceInfo] = ()) -> None:
        self._lock = threading.Lock()  # serialises writers; readers take the attributes' snapshots
        self._infos: tuple[ResourceInfo, ...] = ()
        self._by_path: dict[tuple[str, str, str], ResourceInfo] = {}
        self._by_kind: dict[tuple[str, str, str], ResourceInfo] = {}
        self._groups: frozenset[tuple[str, str]] = frozenset()
        self.generation = 0
        self.replace(add=infos)

    def replace(self, *, add: Iterable[ResourceInfo] = (), remove: Iterable[tuple[str, str]] = ()) -> None:
        """Atomically drop the resources `remove` ((group, plural), all versions) and add `add`."""
        with self._lock:
            gone = set(remove)
            infos = tuple(info for info in self._infos if info.key not in gone) + tuple(add)
            self._by_path = {(i.group, i.version, i.plural): i for i in infos}
            self._by_kind = {(i.group, i.version, i.kind): i for i in infos}
            self._groups = frozenset((i.group, i.version) for i in infos)
            self._infos = infos
            self.generation += 1

    def infos(self) -> tuple[ResourceInfo, ...]:
        """All resources, in the order of registration."""
        return self._infos

    def find(self, group: str, version: str, plural: str) -> ResourceInfo | None:
        """The resource at ``/apis/group/version/plural``."""
        return self._by_path.get((group, version, plural))

    def by_kind(self, group: str, version: str, kind: str) -> ResourceInfo | None:
        """The resource whose objects carry this apiVersion and kind."""
        return self._by_kind.get((group, version, kind))

    def any_version(self, group: str, plural: str) -> ResourceInfo | None:
        """Some version of a resource, the first registered one."""
        return next((i for i in self._infos if (i.group, i.plural) == (group, plural)), None)

    def serves(self, group: str, version: str) -> bool:
        """Whether any resource lives in this group and version."""
        return (group, version) in self._groups
