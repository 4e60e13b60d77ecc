"""What was sent as status and what the server made of it; and, where that is unknown, what it would keep.

After a restart nothing is remembered. If the installed CRD is older than the operator and prunes some fields
of the status, every object then looks as if these were still to be written. So before a status is written
only because fields are missing, the server is asked once which fields its schema has (its OpenAPI document,
readable by every authenticated user); a restart over settled objects stays without writes (D1, kopf#686).
"""

from __future__ import annotations

import logging
import threading
import zlib
from collections.abc import Mapping
from typing import Any

from cachetools import LRUCache
from pydantic_core import from_json, to_json

from kubeloop.client import ApiError, Client, TransportError
from kubeloop.clock import Clock
from kubeloop.controller.protocol import MEMORY_SIZE
from kubeloop.controller.status import SentStatus, plan_status
from kubeloop.model import KubeObject, Model, Resource
from kubeloop.observe import fields

SCHEMA_TTL = 600.0
"""Seconds that the server's schema is believed; a CRD may be upgraded under a running operator."""

_logger = logging.getLogger("kubeloop.controller.status")


class StatusMemory:
    """Decides about status writes of one kind. Thread-safe."""

    def __init__(self, client: Client, resource: Resource, clock: Clock) -> None:
        self._clock = clock
        self._schema = _ServedStatus(client, resource, clock)
        self._lock = threading.Lock()  # guards _sent (LRUCache reorders on reads) and _told
        self._told: set[str] = set()  # names of fields
        # Only where the server kept something else than it was sent; as bytes, a tenth of the dicts.
        self._sent: LRUCache[str, tuple[str, bytes]] = LRUCache(MEMORY_SIZE)

    def plan(self, app: KubeObject, wanted: Mapping[str, Any]) -> dict[str, Any] | None:
        """The status to send for `app`, transition times filled in; None if nothing new is to be said."""
        live = status_of(app)
        sent = self._recall(app.key)
        full = plan_status(wanted, live, sent, app.uid, self._clock.now())
        if full is None:
            return self._kept_by_now(sent, live)
        if not live:
            return full
        missing = full.keys() - live.keys()
        if missing and all(full.get(key) == value for key, value in live.items()):
            kept = self._schema.fields()
            if kept is not None and not missing & kept:
                self.remember(app, full, live)
                return None
        return full

    def _kept_by_now(self, sent: SentStatus | None, live: Mapping[str, Any]) -> dict[str, Any] | None:
        """What was last sent, if the server dropped fields of it that its schema has meanwhile: the CRD was
        upgraded under us."""
        missing = sent.sent.keys() - live.keys() if sent is not None and sent.kept == live else None
        if sent is None or not missing:
            return None
        kept = self._schema.fields()
        return sent.sent if kept is not None and missing & kept else None

    def remember(self, app: KubeObject, full: dict[str, Any], kept: dict[str, Any]) -> None:
        """`full` was sent for `app`, and the server kept of it what `kept` says."""
        if full == kept:
            self.forget(app.key)
            return
        packed = zlib.compress(to_json([full, kept]), 1)
        with self._lock:
            new = full.keys() - kept.keys() - self._told
            self._told |= new
            self._sent[app.key] = (app.uid, packed)
        if new:
            _logger.warning(
                "the server drops fields of the status: the CRD that is installed is older than this program",
                extra=fields(resource=str(app.resource), dropped=sorted(new)),
            )

    def _recall(self, key: str) -> SentStatus | None:
        with self._lock:
            found = self._sent.get(key)
        return SentStatus(found[0], *from_json(zlib.decompress(found[1]))) if found is not None else None

    def forget(self, key: str) -> None:
        """The object is gone, or there is nothing to remember of it."""
        with self._lock:
            self._sent.pop(key, None)


class _ServedStatus:
    """The names of the fields that the served schema of a kind has in its status. Thread-safe."""

    def __init__(self, client: Client, resource: Resource, clock: Clock) -> None:
        self._client = client
        self._resource = resource
        self._clock = clock
        self._lock = threading.Lock()  # held while asking: workers that need the answer wait for the first
        self._asked: float | None = None
        self._fields: frozenset[str] | None = None

    def fields(self) -> frozenset[str] | None:
        """The names; None if they cannot be known, or if the schema keeps whatever it is sent."""
        with self._lock:
            now = self._clock.monotonic()
            if self._asked is None or now - self._asked > SCHEMA_TTL:
                self._asked = now
                self._fields = self._ask()
            return self._fields

    def _ask(self) -> frozenset[str] | None:
        resource = self._resource
        try:
            document = self._client.get_document(f"/openapi/v3/apis/{resource.api_version}")
        except (ApiError, TransportError) as error:
            _logger.debug("the served schema cannot be read", extra=fields(error=str(error)))
            return None
        wanted = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        for schema in document.get("components", {}).get("schemas", {}).values():
            if wanted in schema.get("x-kubernetes-group-version-kind", ()):
                status = schema.get("properties", {}).get("status", {})
                if status.get("x-kubernetes-preserve-unknown-fields") or "properties" not in status:
                    return None
                return frozenset(status["properties"])
        return None


def status_of(app: KubeObject) -> dict[str, Any]:
    """The status as it is on the wire, {} if there is none."""
    status = getattr(app, "status", None)
    return status.to_wire() if isinstance(status, Model) else {}
