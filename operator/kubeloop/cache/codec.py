"""From the server's bytes to typed objects, and what is kept of each.

The bytes that are validated are the bytes that are kept (packed), so that what went in can always be read
back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from kubeloop.cache.packing import Packer
from kubeloop.model import ApiObject, DynamicObject, KubeObject, PartialObjectMetadata, Resource

K = TypeVar("K", bound=ApiObject)


class Entry:
    """One object in the store: its packed bytes and what decisions need without unpacking them."""

    __slots__ = ("generation", "owner", "packed", "uid", "version")

    def __init__(self, packed: bytes, uid: str, version: int, generation: int, owner: str | None) -> None:
        self.packed = packed
        self.uid = uid
        self.version = version
        """metadata.resourceVersion."""
        self.generation = generation
        self.owner = owner
        """uid of the controller owner."""

    def __repr__(self) -> str:
        return f"Entry(uid={self.uid}, version={self.version})"


class Candidate(Generic[K]):
    """An object that came in: where it belongs, what would be kept, and itself."""

    __slots__ = ("_read", "decoded", "entry", "key")

    def __init__(
        self, key: str, entry: Entry, decoded: K | None, read: Callable[[Entry], K] | None = None
    ) -> None:
        self.key = key
        self.entry = entry
        self.decoded = decoded
        """The object, if it is at hand."""
        self._read = read

    @property
    def object(self) -> K:
        """The object, decoded again if need be."""
        if self.decoded is not None:
            return self.decoded
        if self._read is None:
            raise AssertionError("a candidate has its object or can read it")
        return self._read(self.entry)

    def lighten(self) -> None:
        """Let go of the object: a list of ten thousand takes a tenth of the memory without them."""
        self.decoded = None


@dataclass(frozen=True, slots=True)
class Undecodable:
    """An object that breaks its class: what is known of it, and why it cannot be read."""

    key: str
    uid: str
    version: int
    message: str
    metadata: Mapping[str, Any]


class Codec(Generic[K]):
    """Decodes the objects of one kind. Thread-safe.

    `kind` is a class, or a Resource for objects without one. `transform`, if given, is applied once to each
    object that comes in. Of a kind that is `metadata_only` nothing else is kept, even where whole objects
    come in: as answers to own writes, or from a server that knows no other form.
    """

    def __init__(self, kind: type[K] | Resource, transform: Callable[[K], K] | None = None) -> None:
        self.resource: Resource = kind if isinstance(kind, Resource) else kind.resource  # type: ignore[assignment]
        self.metadata_only = isinstance(kind, type) and issubclass(kind, PartialObjectMetadata)
        self._transform = transform
        self._packer = Packer()
        self._decode = _decoder(kind)

    @property
    def name(self) -> str:
        """What it decodes, for people and metrics: whole objects, or just metadata, of a resource."""
        return f"{self.resource} (metadata)" if self.metadata_only else str(self.resource)

    def candidate(self, raw: bytes) -> Candidate[K] | Undecodable | None:
        """What comes of an object's JSON; None if it is so broken that it has not even a name."""
        try:
            if self.metadata_only:
                raw = _metadata_of(raw)
            decoded: K = self._decode(raw)
            if self._transform is not None:
                decoded = self._transform(decoded)
                raw = to_json(decoded.to_wire())  # type: ignore[attr-defined]
            metadata = decoded.metadata
            owner = decoded.controller_owner() if metadata.owner_references else None
            version = int(metadata.resource_version)
            if not metadata.name:
                raise ValueError("metadata.name is missing")
        except (ValueError, TypeError, KeyError, AttributeError) as error:  # ValidationError is a ValueError
            return _undecodable(raw, error)
        entry = Entry(
            self._packer.pack(raw), metadata.uid, version, metadata.generation, owner.uid if owner else None
        )
        return Candidate(decoded.key, entry, decoded, self.read)

    def read(self, entry: Entry) -> K:
        """A fresh object from what is kept."""
        decoded: K = self._decode(self._packer.unpack(entry.packed))
        return decoded


def _decoder(kind: Any) -> Callable[[bytes], Any]:
    if isinstance(kind, Resource):
        resource = kind
        return lambda raw: DynamicObject(resource, from_json(raw))
    if not issubclass(kind, KubeObject):
        raise TypeError(f"{kind!r} is neither a class of objects nor a Resource")
    decode: Callable[[bytes], Any] = kind.model_validate_json
    return decode


def raw_item(item: Mapping[str, Any]) -> bytes:
    """The JSON of a decoded object, without what no model keeps."""
    metadata = item.get("metadata")
    if isinstance(metadata, Mapping) and "managedFields" in metadata:
        slim = {key: value for key, value in metadata.items() if key != "managedFields"}
        item = {**item, "metadata": slim}
    return to_json(item)


def _metadata_of(raw: bytes) -> bytes:
    """The JSON of an object without all but its metadata. Raises ValueError and TypeError."""
    return raw_item({"metadata": from_json(raw)["metadata"]})


def _undecodable(raw: bytes, error: Exception) -> Undecodable | None:
    """The report on an object that cannot be read; its metadata is looked at without believing anything."""
    try:
        content = from_json(raw)
    except ValueError:
        return None
    metadata = content.get("metadata") if isinstance(content, dict) else None
    if not isinstance(metadata, dict) or not isinstance(name := metadata.get("name"), str) or not name:
        return None
    namespace = metadata.get("namespace")
    try:
        version = int(metadata.get("resourceVersion") or 0)
    except (TypeError, ValueError):
        version = 0
    return Undecodable(
        key=f"{namespace}/{name}" if isinstance(namespace, str) and namespace else name,
        uid=str(metadata.get("uid") or ""),
        version=version,
        message=_explain(error),
        metadata={key: value for key, value in metadata.items() if key != "managedFields"},
    )


def _explain(error: Exception) -> str:
    """One line a person can act on: which field, what is wrong."""
    if isinstance(error, ValidationError):
        problems = [
            f"{'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
            for problem in error.errors(include_url=False, include_input=False, include_context=False)[:5]
        ]
        return "; ".join(problems)
    return str(error) or type(error).__name__
