"""The CustomResourceDefinition around a schema: names, printer columns, subresources, versions.

What was not asked for is absent from the manifest, not empty. All checks that the API server would make on
these parts are made here first, so that a mistake is found where it was written.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from kubeloop.model.markers import Rule
from kubeloop.model.problems import did_you_mean
from kubeloop.model.resource import Resource
from kubeloop.model.unions import Schema

ColumnType = Literal["string", "integer", "number", "boolean", "date"]
Scope = Literal["Namespaced", "Cluster"]

_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")  # RFC 1035
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")  # RFC 1123
_KIND = re.compile(r"[A-Za-z]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_PATH = re.compile(r"(\.[A-Za-z_][\w-]*(\[[^\]]*\])?)+")
# What metadata columns may show; the schema of a custom resource does not describe its metadata.
_METADATA = {
    ".metadata.creationTimestamp": "date",
    ".metadata.deletionTimestamp": "date",
    ".metadata.generation": "integer",
    ".metadata.name": "string",
    ".metadata.namespace": "string",
}


@dataclass(frozen=True)
class Column:
    """One column of `kubectl get`. The type is taken from the schema unless given.

    `json_path` starts with a dot: `.spec.image`. Columns with a `priority` above 0 show with `-o wide` only.
    """

    name: str
    json_path: str
    type: ColumnType | None = None
    description: str | None = None
    format: str | None = None
    priority: int | None = None


AGE = Column("Age", ".metadata.creationTimestamp", "date")
"""The column that kubectl shows when a CRD declares none, and that every CRD with columns must repeat."""


@dataclass(frozen=True)
class Scale:
    """The scale subresource, for `kubectl scale` and autoscalers. The paths start with a dot."""

    spec_replicas_path: str = ".spec.replicas"
    status_replicas_path: str = ".status.replicas"
    label_selector_path: str | None = None

    def to_wire(self) -> dict[str, str]:
        """`subresources.scale` of a CRD."""
        wire = {"specReplicasPath": self.spec_replicas_path, "statusReplicasPath": self.status_replicas_path}
        if self.label_selector_path is not None:
            wire["labelSelectorPath"] = self.label_selector_path
        return wire


@dataclass(frozen=True)
class Definition:
    """Everything about a custom resource but its schema."""

    resource: Resource
    singular: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    scale: Scale | None = None
    columns: tuple[Column, ...] = ()
    selectable_fields: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    served: bool = True
    storage: bool = True
    deprecated: bool | str = False
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    def name_problems(self) -> Iterator[str]:
        """What is wrong with the names, found without the schema."""
        resource = self.resource
        if not _SUBDOMAIN.fullmatch(resource.group) or "." not in resource.group:
            yield f"the group {resource.group!r} must be a domain name, as in example.com/v1"
        if not _LABEL.fullmatch(resource.version):
            yield f"the version {resource.version!r} must be lower-case letters and digits, as in v1"
        if not _KIND.fullmatch(resource.kind):
            yield f"the kind {resource.kind!r} must be letters and digits"
        for what, word in (
            ("plural", resource.plural),
            ("singular", self.singular),
            *(("short name", word) for word in self.short_names),
            *(("category", word) for word in self.categories),
        ):
            if not _LABEL.fullmatch(word):
                yield f"the {what} {word!r} must be lower-case letters, digits and '-'"
        for name, count in _counts([resource.plural, self.singular, *self.short_names]).items():
            if count > 1 and name != self.singular:
                yield f"the name {name!r} is given twice"

    def manifest(self, schema: Schema, *, has_status: bool) -> dict[str, Any]:
        """The apiextensions.k8s.io/v1 object."""
        names: dict[str, Any] = {"kind": self.resource.kind, "plural": self.resource.plural}
        names["singular"] = self.singular
        if self.short_names:
            names["shortNames"] = list(self.short_names)
        if self.categories:
            names["categories"] = list(self.categories)
        metadata: dict[str, Any] = {"name": str(self.resource)}
        if self.labels:
            metadata["labels"] = dict(self.labels)
        if self.annotations:
            metadata["annotations"] = dict(self.annotations)
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": metadata,
            "spec": {
                "group": self.resource.group,
                "names": names,
                "scope": "Namespaced" if self.resource.namespaced else "Cluster",
                "versions": [self._version(schema, has_status)],
            },
        }

    def _version(self, schema: Schema, has_status: bool) -> dict[str, Any]:
        version: dict[str, Any] = {
            "name": self.resource.version,
            "served": self.served,
            "storage": self.storage,
        }
        if self.deprecated:
            version["deprecated"] = True
        if isinstance(self.deprecated, str):
            version["deprecationWarning"] = self.deprecated
        subresources: dict[str, Any] = {"status": {}} if has_status else {}
        if self.scale is not None:
            subresources["scale"] = self.scale.to_wire()
        if subresources:
            version["subresources"] = subresources
        if self.columns:
            version["additionalPrinterColumns"] = [_column(column, schema) for column in self.columns]
        if self.selectable_fields:
            version["selectableFields"] = [{"jsonPath": path} for path in self.selectable_fields]
        version["schema"] = {"openAPIV3Schema": schema}
        return version

    def path_problems(self, schema: Schema) -> Iterator[str]:
        """What is wrong with the paths into the object."""
        for column in self.columns:
            what = f"column {column.name!r}"
            if column.json_path in _METADATA:
                continue
            found = yield from _resolve(what, column.json_path, schema)
            if found is not None and column.type is None and found.get("type") not in get_args(ColumnType):
                yield f"{what}: say its type, the schema has no simple one for {column.json_path}"
        if self.scale is not None:
            for path, root, kind in (
                (self.scale.spec_replicas_path, ".spec.", "integer"),
                (self.scale.status_replicas_path, ".status.", "integer"),
                (self.scale.label_selector_path, (".spec.", ".status."), "string"),
            ):
                if path is None:
                    continue
                if not path.startswith(root):
                    yield f"scale: {path} must lie under {root}"
                found = yield from _resolve("scale", path, schema)
                if found is not None and found.get("type") != kind:
                    yield f"scale: {path} must be of type {kind}, not {found.get('type', 'any')}"
        for path in self.selectable_fields:
            found = yield from _resolve("selectable field", path, schema)
            if found is not None and found.get("type") not in ("string", "boolean", "integer"):
                yield f"selectable field: {path} must be a string, boolean or integer"


def _column(column: Column, schema: Schema) -> dict[str, Any]:
    kind = column.type or _METADATA.get(column.json_path)
    if kind is None:
        found = find_path(column.json_path, schema) or {}
        kind = "date" if found.get("format") == "date-time" else found["type"]
    entry = {
        "name": column.name,
        "type": kind,
        "format": column.format,
        "description": column.description,
        "jsonPath": column.json_path,
        "priority": column.priority,
    }
    return {key: value for key, value in entry.items() if value is not None}


def find_path(path: str, schema: Schema) -> Schema | None:
    """The schema of what a simple JSON path leads to, None if there is no such field."""
    node: Schema | None = schema
    for step in path.strip(".").split("."):
        name = step.partition("[")[0]
        node = (node or {}).get("properties", {}).get(name) or (node or {}).get("additionalProperties")
        if node is not None and "[" in step:
            node = node.get("items")
        if node is None:
            return None
    return node


def _resolve(what: str, path: str, schema: Schema) -> Generator[str, None, Schema | None]:
    """`find_path` that yields a problem, with a guess, when the path leads nowhere."""
    if not path.startswith("."):
        yield f"{what}: the path {path!r} must start with a dot"
        return None
    if "?(" in path or ".." in path or path.startswith(".metadata."):
        return None  # filters, recursion and metadata are beyond the schema
    if not _PATH.fullmatch(path):
        yield f"{what}: {path!r} is no JSON path"
        return None
    found = find_path(path, schema)
    if found is None:
        yield f"{what}: there is no {path}{did_you_mean(path, _all_paths(schema))}"
    return found


def _all_paths(schema: Schema, prefix: str = "") -> Iterator[str]:
    for name, child in schema.get("properties", {}).items():
        yield f"{prefix}.{name}"
        yield from _all_paths(child, f"{prefix}.{name}")


def _counts(words: Sequence[str]) -> dict[str, int]:
    return {word: words.count(word) for word in words}
