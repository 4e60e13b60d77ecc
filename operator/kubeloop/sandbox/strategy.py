"""What the strategies of built-in kinds have in common."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from kubeloop.sandbox.registry import Object, Strategy, without

Paths = tuple[tuple[str, ...], ...]


class BuiltinStrategy(Strategy):
    """Base: a kind of the server itself.

    `generation` says whether the kind counts metadata.generation; `status_resets` what an apply to
    ``/status`` never owns. Kinds with a status override `empty_status`, which is what creates start with.
    """

    allow_unconditional_update = True
    generation: ClassVar[bool] = False
    status_resets: ClassVar[Paths] = (("spec",),)

    def empty_status(self) -> Object:
        """The status of an object that was just created."""
        return {}

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        del now
        return {**obj, "status": self.empty_status()} if self.status_subresource else obj

    def prepare_update(self, obj: Object, old: Object) -> Object:
        if not self.status_subresource:
            return obj
        if obj.get("status") is old.get("status"):
            return obj
        result = without(obj, "status")
        if "status" in old:
            result["status"] = old["status"]
        return result

    def prepare_status_update(self, obj: Object, old: Object) -> Object:
        """Unlike for custom resources metadata may be written through ``/status``; only the spec may not."""
        if obj.get("spec") is old.get("spec"):
            return obj
        result = without(obj, "spec")
        if "spec" in old:
            result["spec"] = old["spec"]
        return result

    def reset_fields(self, subresource: str) -> Paths:
        if subresource == "status":
            return self.status_resets
        return (("status",),) if self.status_subresource else ()

    def has_generation(self) -> bool:
        return self.generation
