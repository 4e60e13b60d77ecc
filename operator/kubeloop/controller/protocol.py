"""The apply protocol as a decision: create, keep, repair, wait, or leave a foreign object alone."""

from __future__ import annotations

import enum
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cachetools import LRUCache

from kubeloop.controller.drift import APPLIED, covers, read_stamp
from kubeloop.model import KubeObject

MEMORY_SIZE = 65_536
"""How many applied objects are remembered. What falls out is judged by its annotation instead."""


class Step(enum.Enum):
    """What to do about one wanted child."""

    CREATE = "create"
    """Not there: apply without force, so that a foreign object that appeared meanwhile conflicts."""
    KEEP = "keep"
    """Ours and as we left it: no request."""
    REPAIR = "repair"
    """Ours, but it or the wish has changed: apply with force, bound to its uid."""
    WAIT = "wait"
    """Ours, but being deleted: what is applied now would go with it."""
    FOREIGN = "foreign"
    """Somebody else's: no write."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What is remembered of an apply: whose object, which content, and the generation it led to."""

    uid: str
    digest: str
    generation: int
    fingerprint: bytes = b""
    """Of the manifest with that digest, to know it again without working the digest out."""


class AppliedMemory:
    """Bounded memory of applies by object (kind and key). Thread-safe."""

    def __init__(self, size: int = MEMORY_SIZE) -> None:
        self._lock = threading.Lock()  # guards _entries: LRUCache reorders on reads
        self._entries: LRUCache[tuple[str, str], Applied] = LRUCache(size)

    def get(self, kind: str, key: str) -> Applied | None:
        with self._lock:
            return self._entries.get((kind, key))

    def put(self, kind: str, key: str, applied: Applied) -> None:
        with self._lock:
            self._entries[kind, key] = applied

    def drop(self, kind: str, key: str) -> None:
        with self._lock:
            self._entries.pop((kind, key), None)


def decide(
    wanted: Mapping[str, Any],
    digest: str,
    live: KubeObject | None,
    owner_uid: str,
    applied: Applied | None,
) -> Step:
    """The next step for the `wanted` content (its `digest`) of the owner with `owner_uid`.

    `live` is the object of that name as last seen, `applied` what is remembered of our last apply.
    """
    if live is None:
        return Step.CREATE
    owner = live.controller_owner()
    if owner is None and not live.deleting and _was_ours(digest, live, applied):
        return Step.REPAIR
    if owner is None or owner.uid != owner_uid:
        return Step.FOREIGN
    if live.deleting:
        return Step.WAIT
    return Step.KEEP if is_settled(wanted, digest, live, applied) else Step.REPAIR


def _was_ours(digest: str, live: KubeObject, applied: Applied | None) -> bool:
    """Whether an object without a controller is one that we applied for this very owner (its uid is part of
    the digest), and that has only lost its owner reference."""
    if applied is not None and (applied.uid, applied.digest) == (live.uid, digest):
        return True
    stamped = read_stamp(live.annotations.get(APPLIED))
    return stamped is not None and stamped[0] == digest


def is_settled(wanted: Mapping[str, Any], digest: str, live: KubeObject, applied: Applied | None) -> bool:
    """Whether `live` is as our apply of `wanted` left it."""
    stamped = read_stamp(live.annotations.get(APPLIED))
    if stamped is None or stamped[0] != digest or not _metadata_intact(wanted, live):
        return False
    known = None
    if applied is not None and (applied.uid, applied.digest) == (live.uid, digest):
        known = applied.generation
    elif applied is None:
        known = stamped[1]
    # Kinds without a generation (Service, ConfigMap) always take the second way.
    if known is not None and live.generation and live.generation == known:
        return True
    return covers(_content(wanted), live.to_wire())


def _metadata_intact(wanted: Mapping[str, Any], live: KubeObject) -> bool:
    metadata = wanted.get("metadata", {})
    return (
        _has(metadata.get("labels"), live.labels)
        and _has(metadata.get("annotations"), live.annotations)
        and all(
            any(
                have.uid == reference.get("uid") and covers(reference, have.to_wire())
                for have in live.metadata.owner_references
            )
            for reference in metadata.get("ownerReferences", ())
        )
    )


def _has(wanted: Mapping[str, str] | None, live: Mapping[str, str]) -> bool:
    return not wanted or all(live.get(key) == value for key, value in wanted.items())


def _content(wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in wanted.items() if key not in ("apiVersion", "kind", "metadata")}
