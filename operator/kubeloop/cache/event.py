"""What informers tell: objects that appeared, changed, went away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kubeloop.model import ApiObject

K = TypeVar("K", bound=ApiObject)


@dataclass(frozen=True, slots=True)
class Added(Generic[K]):
    """An object that was not known before, or known under another uid.

    `own`: it was in the store already, as the answer to a write of this process.
    """

    object: K
    own: bool = False


@dataclass(frozen=True, slots=True)
class Deleted(Generic[K]):
    """An object that is gone, as it was last seen. After a gap in the watch that may be long ago."""

    object: K
    own: bool = False


class Modified(Generic[K]):
    """An object that changed: how it is and, decoded when asked for, how it was when last told of.

    `own`: the change was in the store already, as the answer to a write of this process.
    """

    __match_args__ = ("object", "old")
    __slots__ = ("_old", "object", "own")

    def __init__(self, object: K, old: K | Callable[[], K], own: bool = False) -> None:
        self.object = object
        self._old = old
        self.own = own

    @property
    def old(self) -> K:
        """The object before the change."""
        if not isinstance(self._old, ApiObject):
            self._old = self._old()
        return self._old

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Modified):
            return (self.object, self.old, self.own) == (other.object, other.old, other.own)
        return NotImplemented

    def __hash__(self) -> int:
        return hash((Modified, self.object))

    def __repr__(self) -> str:
        return f"Modified(object={self.object!r}, own={self.own})"


Event = Added[K] | Modified[K] | Deleted[K]
