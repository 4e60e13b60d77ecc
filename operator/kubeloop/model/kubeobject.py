"""Whole objects: typed ones (`KubeObject`) and those of which only the resource is known (`DynamicObject`).

Both have the same surface, `ApiObject`, so that caches, queues and owner mapping need not care which they
hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from kubeloop.model.base import Field, Model
from kubeloop.model.frozen import EMPTY, FrozenDict, freeze, thaw
from kubeloop.model.metadata import ObjectMeta, OwnerReference
from kubeloop.model.resource import Resource


class ApiObject:
    """What any object of the API answers, whether its kind has a class or not."""

    __slots__ = ()

    if TYPE_CHECKING:  # given by the subclasses; a real property here would be taken for a field's default

        @property
        def resource(self) -> Resource: ...
        @property
        def metadata(self) -> ObjectMeta: ...

    @property
    def api_version(self) -> str:
        """`group/version`. Taken from the resource, since items of a list come without it."""
        return self.resource.api_version

    @property
    def kind(self) -> str:
        """The kind. Taken from the resource, since items of a list come without it."""
        return self.resource.kind

    @property
    def key(self) -> str:
        """`namespace/name`, or `name` for a cluster-scoped object: what queues and stores know it by."""
        return f"{self.metadata.namespace}/{self.metadata.name}" if self.metadata.namespace else self.name

    @property
    def name(self) -> str:
        """metadata.name."""
        return self.metadata.name

    @property
    def namespace(self) -> str | None:
        """metadata.namespace; None for a cluster-scoped object."""
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        """metadata.uid: which incarnation of the name this is."""
        return self.metadata.uid

    @property
    def resource_version(self) -> int:
        """metadata.resourceVersion as the integer it has been guaranteed to be since Kubernetes 1.35.

        0 for an object that was never stored. Raises ValueError if a server sends anything else.
        """
        return int(self.metadata.resource_version or 0)

    @property
    def generation(self) -> int:
        """metadata.generation: counts changes of the desired state."""
        return self.metadata.generation

    @property
    def deleting(self) -> bool:
        """True once deletion was asked for; finalizers may keep the object for long after that."""
        return self.metadata.deletion_timestamp is not None

    @property
    def labels(self) -> Mapping[str, str]:
        """metadata.labels, never None."""
        return self.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """metadata.annotations, never None."""
        return self.metadata.annotations

    def controller_owner(self) -> OwnerReference | None:
        """The owner that controls this object; the server allows at most one."""
        for owner in self.metadata.owner_references:
            if owner.controller:
                return owner
        return None

    def owner_reference(self) -> dict[str, Any]:
        """What goes into a child's metadata.ownerReferences to make this object its controller.

        Raises ValueError if this object has no uid yet, that is, was never stored.
        """
        if not self.uid:
            raise ValueError(f"{self.kind} {self.key} has no uid yet and cannot own anything")
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }


class KubeObject(ApiObject, Model):
    """An object of a declared kind. Subclasses set `resource` and declare `spec`, `status` or others."""

    resource: ClassVar[Resource]

    metadata: ObjectMeta = Field(default=ObjectMeta())

    def to_wire(self) -> dict[str, Any]:
        """The JSON object to send, apiVersion and kind first."""
        return {"apiVersion": self.api_version, "kind": self.kind, **super().to_wire()}


class DynamicObject(ApiObject, Mapping[str, Any]):
    """An object of any resource, with no class for its kind: the same surface, and its content as a mapping.

    `book["spec"]["title"]`. The content is deeply immutable (lists are tuples); managedFields is not kept.
    """

    __slots__ = ("_content", "metadata", "resource")

    metadata: ObjectMeta
    resource: Resource
    _content: FrozenDict[str, Any]

    def __init__(self, resource: Resource, content: Mapping[str, Any]) -> None:
        """Raises `pydantic.ValidationError` if the metadata is malformed."""
        metadata = content.get("metadata") or EMPTY
        slim = {key: value for key, value in metadata.items() if key != "managedFields"}
        store = object.__setattr__
        store(self, "resource", resource)
        store(self, "metadata", ObjectMeta.model_validate(slim))
        store(self, "_content", freeze({**content, "metadata": slim}))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name} of a {type(self).__name__} cannot be set: objects are shared")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{name} of a {type(self).__name__} cannot be deleted: objects are shared")

    def __getitem__(self, key: str) -> Any:
        return self._content[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DynamicObject):
            return self.resource == other.resource and self._content == other._content
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self.resource, self.uid, self.metadata.resource_version))

    def __repr__(self) -> str:
        return f"DynamicObject({self.resource}, {self.key!r})"

    @property
    def kind(self) -> str:
        """The kind: as the object says, else as the resource says."""
        return str(self._content.get("kind") or self.resource.kind)

    def to_wire(self) -> dict[str, Any]:
        """A plain, mutable JSON object, apiVersion and kind first."""
        return {"apiVersion": self.api_version, "kind": self.kind, **thaw(self._content)}
