"""Object metadata: the part of ObjectMeta that controllers act on."""

from __future__ import annotations

from typing import Any

from kubeloop.model.base import Model
from kubeloop.model.frozen import EMPTY, Items, Map


class OwnerReference(Model):
    """Who an object belongs to; the garbage collector deletes it when its last owner is gone."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None

    @property
    def group(self) -> str:
        """The API group. Compare owners by group, kind and uid: the version may have moved on."""
        return self.api_version.partition("/")[0] if "/" in self.api_version else ""


class ObjectMeta(Model):
    """What the server and all clients keep about any object.

    Labels, annotations and finalizers are never None. Timestamps stay the strings they came as: they are
    shown or tested for presence, never calculated with. `managedFields` is not kept.
    """

    name: str = ""
    namespace: str | None = None
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Map[str] = EMPTY
    annotations: Map[str] = EMPTY
    finalizers: Items[str] = ()
    owner_references: Items[OwnerReference] = ()

    def to_wire(self) -> dict[str, Any]:
        """The JSON object to send, with what was never set left out: an empty uid is not a uid."""
        return {key: value for key, value in super().to_wire().items() if value}
