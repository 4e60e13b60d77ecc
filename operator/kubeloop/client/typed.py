"""`Api`: the client bound to one kind, with typed objects in and out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar, overload

from kubeloop.client.answers import Answer
from kubeloop.client.client import Client
from kubeloop.client.errors import MissingKeyError
from kubeloop.client.patches import Apply, MergePatch, Patch
from kubeloop.model import ApiObject, DynamicObject, KubeObject, PartialObjectMetadata, Resource

K = TypeVar("K", bound=ApiObject)
Typed = TypeVar("Typed", bound=KubeObject)


class Api(Generic[K]):
    """One kind's operations. `Api(client, WebApp)` speaks WebApps, `Api(client, Resource(...))` any resource
    without a class. Of kinds that are `metadata_only` it reads just that, and cannot write objects whole.

    `namespace` is used wherever none is given. Objects to write are typed ones or plain mappings. Besides
    what `Client` raises, decoding raises `pydantic.ValidationError` for an object that breaks its class.
    """

    @overload
    def __init__(
        self: Api[Typed], client: Client, kind: type[Typed], namespace: str | None = None
    ) -> None: ...
    @overload
    def __init__(
        self: Api[DynamicObject], client: Client, kind: Resource, namespace: str | None = None
    ) -> None: ...
    def __init__(self, client: Client, kind: Any, namespace: str | None = None) -> None:
        self.client = client
        self.resource: Resource = kind if isinstance(kind, Resource) else kind.resource
        self._kind = None if isinstance(kind, Resource) else kind
        self._namespace = namespace
        self._metadata_only = self._kind is not None and issubclass(self._kind, PartialObjectMetadata)

    def decode(self, obj: Mapping[str, Any]) -> K:
        """A plain object as a typed one."""
        decoded: Any = (
            DynamicObject(self.resource, obj) if self._kind is None else self._kind.model_validate(obj)
        )
        result: K = decoded
        return result

    def get(self, name: str, namespace: str | None = None) -> K:
        """One object. Raises `NotFound`."""
        space = self._space(namespace)
        return self.decode(self.client.get(self.resource, name, space, metadata_only=self._metadata_only))

    def list(self, *, label_selector: str | None = None, field_selector: str | None = None) -> list[K]:
        """All objects of the namespace, or of all namespaces."""
        found = self.client.list(
            self.resource,
            self._namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            metadata_only=self._metadata_only,
        )
        return [self.decode(item) for item in found.items]

    def create(
        self, obj: K | Mapping[str, Any], *, field_manager: str | None = None, dry_run: bool = False
    ) -> K:
        """Create an object. Raises `AlreadyExists`."""
        wire = self._whole(obj)
        return self.decode(
            self.client.create(self.resource, wire, field_manager=field_manager, dry_run=dry_run)
        )

    def replace(self, obj: K | Mapping[str, Any], *, field_manager: str | None = None) -> K:
        """Replace an object whole. Note that a typed object does not know fields that its class lacks."""
        return self.decode(self.client.replace(self.resource, self._whole(obj), field_manager=field_manager))

    def apply(
        self,
        obj: K | Mapping[str, Any],
        *,
        field_manager: str,
        force: bool = False,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> K:
        """Server-side apply. Raises `Conflict` if others own fields of ours and `force` is not set."""
        wire = self._placed(obj)
        metadata = wire["metadata"]
        answer = self.client.patch(
            self.resource,
            _required(metadata, "name"),
            metadata.get("namespace"),
            Apply(wire),
            subresource=subresource,
            field_manager=field_manager,
            force=force or None,
            dry_run=dry_run,
        )
        return self.decode(answer.object)

    def patch(
        self,
        name: str,
        patch: Patch,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        field_manager: str | None = None,
        force: bool | None = None,
    ) -> K:
        """Change part of an object."""
        answer: Answer = self.client.patch(
            self.resource,
            name,
            self._space(namespace),
            patch,
            subresource=subresource,
            field_manager=field_manager,
            force=force,
        )
        return self.decode(answer.object)

    def patch_status(
        self,
        name: str,
        status: Mapping[str, Any],
        namespace: str | None = None,
        *,
        field_manager: str | None = None,
    ) -> K:
        """Merge into the status, through its subresource."""
        document = MergePatch({"status": status})
        return self.patch(name, document, namespace, subresource="status", field_manager=field_manager)

    def delete(
        self,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        propagation: str | None = None,
    ) -> None:
        """Ask for deletion. Raises `NotFound`, or `Conflict` if it is not the object with `uid`."""
        self.client.delete(self.resource, name, self._space(namespace), uid=uid, propagation=propagation)

    def watch(self, resource_version: str = "", **options: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        """One watch, undecoded: event type and object. For one that lasts see `kubeloop.cache.events`."""
        from pydantic_core import from_json

        for line in self.client.watch(
            self.resource,
            self._namespace,
            resource_version=resource_version,
            metadata_only=self._metadata_only,
            **options,
        ):
            event = from_json(line)
            yield event["type"], event["object"]

    def _space(self, namespace: str | None) -> str | None:
        if not self.resource.namespaced:
            return None
        space = namespace or self._namespace
        if not space:
            raise MissingKeyError(".metadata.namespace")
        return space

    def _whole(self, obj: K | Mapping[str, Any]) -> dict[str, Any]:
        """The wire form of an object that is written whole."""
        if isinstance(obj, PartialObjectMetadata):
            raise TypeError(f"only the metadata of {obj.kind} {obj.key} is known: writing it would empty it")
        return self._placed(obj)

    def _placed(self, obj: K | Mapping[str, Any]) -> dict[str, Any]:
        """The wire form, complete with what the server needs to know it by."""
        wire = obj.to_wire() if isinstance(obj, ApiObject) else dict(obj)  # type: ignore[attr-defined]
        metadata = dict(wire.get("metadata") or {})
        if self.resource.namespaced:
            metadata["namespace"] = self._space(metadata.get("namespace"))
        kind = wire.get("kind") or self.resource.kind
        return {**wire, "apiVersion": self.resource.api_version, "kind": kind, "metadata": metadata}


def _required(metadata: Mapping[str, Any], key: str) -> str:
    value = metadata.get(key)
    if not value:
        raise MissingKeyError(f".metadata.{key}")
    return str(value)
