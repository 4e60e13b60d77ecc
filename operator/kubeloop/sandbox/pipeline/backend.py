"""What every step works on: store, registry, clock, randomness, log; and the state of one request."""

from __future__ import annotations

import random
import threading
import uuid
from dataclasses import dataclass, field

from kubeloop.clock import Clock
from kubeloop.sandbox.access import Access, User
from kubeloop.sandbox.pipeline.request import Request, Target
from kubeloop.sandbox.registry import Object, Registry, ResourceInfo
from kubeloop.sandbox.requestlog import RequestLog
from kubeloop.sandbox.store import Record, Store

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
"""The letters of generated names (apimachinery's rand.String: no vowels, no look-alikes)."""

NAMESPACES = ("", "namespaces")
CRDS = ("apiextensions.k8s.io", "customresourcedefinitions")


@dataclass(slots=True)
class Backend:
    """The parts of one sandbox. `rng` makes uids and generated names, so that a seed repeats a whole run."""

    store: Store
    registry: Registry
    clock: Clock
    rng: random.Random = field(default_factory=random.Random)
    access: Access = field(default_factory=Access)
    log: RequestLog = field(default_factory=RequestLog)
    faults: list[BaseException] = field(default_factory=list)
    """Internal errors, kept for the test to see."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def now(self) -> str:
        """The time as metadata writes it: RFC 3339, whole seconds."""
        return self.clock.now().isoformat()[:19] + "Z"  # several times as fast as strftime

    def new_uid(self) -> str:
        """A random uid (version 4)."""
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def suffix(self) -> str:
        """Five random letters for generateName."""
        return "".join(self.rng.choice(_SUFFIX) for _ in range(5))


@dataclass(slots=True)
class Call:
    """One request on its way through the pipeline."""

    request: Request
    target: Target
    user: User
    info: ResourceInfo
    warnings: list[str] = field(default_factory=list)
    manager: str = ""
    wrote: bool = False
    hollow: bool = False
    """Whether an apply of a custom resource leaves an empty map in storage that no reader sees."""

    def warn(self, text: str) -> None:
        """Add a ``Warning`` header; repeats are dropped as the server does."""
        if text not in self.warnings:
            self.warnings.append(text)


def as_read(record: Record, info: ResourceInfo) -> Record:
    """A stored object as it is read today: of custom resources the schema may have changed meanwhile."""
    schema = info.storage_schema
    return record if schema is None else record.as_read(schema)


def note_written(call: Call, record: Record) -> None:
    """Note of a new state how it will be read: by the schema it has just been pruned and defaulted by."""
    info = call.info
    if info.storage_schema is None:
        return
    if call.hollow:
        record.distrust(info.storage_schema)
    elif info.schema is info.storage_schema:
        record.trust(info.storage_schema)


def in_version(record: Record, info: ResourceInfo) -> Object:
    """A stored object as version `info` shows it (conversion strategy None: only apiVersion differs)."""
    obj = as_read(record, info).obj
    if obj["apiVersion"] == info.api_version:
        return obj
    if info.shared is not None:
        return info.shared.shown(obj)
    return {**obj, "apiVersion": info.api_version}


def user_agent(call: Call) -> str:
    """The client's name of itself."""
    return call.request.headers.get("user-agent", "")
