"""Events: one kind of object under two names, v1 of the core group and events.k8s.io/v1."""

from __future__ import annotations

from functools import cache

from kubeloop.sandbox.builtins import checks
from kubeloop.sandbox.builtins.defaulting import Object
from kubeloop.sandbox.pipeline.metadata import qualified_name_faults
from kubeloop.sandbox.registry import Shared
from kubeloop.sandbox.schema import BuiltinSchema, builtin, causes
from kubeloop.sandbox.schema.equality import same
from kubeloop.sandbox.status import Cause
from kubeloop.sandbox.strategy import BuiltinStrategy

CORE, NEW = "v1", "events.k8s.io/v1"
_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
"""Fields of core Events by their names in events.k8s.io."""
_BACK = {new: old for old, new in _NAMES.items()}
MAX_NOTE = 1024
"""Bytes of a message (core validation: NoteLengthLimit)."""
_MAX_WORD = 128
_IMMUTABLE = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingController",
    "reportingInstance",
)


@cache
def schema(api_version: str) -> BuiltinSchema:
    """The schema of Events in one of their two versions."""
    package = "core" if api_version == CORE else "events"
    return builtin("Event", api_version, f"io.k8s.api.{package}.v1.Event")


def _renamed(obj: Object, names: dict[str, str], api_version: str) -> Object:
    result = {names.get(key, key): value for key, value in obj.items()}
    result["apiVersion"] = api_version
    # The other Go type prints other zero values.
    return schema(api_version).prune(result)[0]


def to_core(obj: Object) -> Object:
    """An Event of events.k8s.io as one of the core group."""
    return _renamed(obj, _BACK, CORE)


def to_new(obj: Object) -> Object:
    """An Event of the core group as one of events.k8s.io."""
    return _renamed(obj, _NAMES, NEW)


SHARED = Shared(("", "events"), CORE, to_new, to_core)


class EventStrategy(BuiltinStrategy):
    """Events of the core group; some rules apply only to those with an `eventTime` (the newer recorders)."""

    allow_create_on_update = True

    def validate_create(self, obj: Object) -> list[Cause]:
        return _legacy(obj, "reportingComponent")

    def validate_update(self, obj: Object, old: Object) -> list[Cause]:
        del old
        return self.validate_create(obj)


class NewEventStrategy(BuiltinStrategy):
    """Events through events.k8s.io: complaints name fields as the server's internal type does."""

    allow_create_on_update = True

    def validate_create(self, obj: Object) -> list[Cause]:
        event = to_core(obj)
        found = _legacy(event, "reportingController") + _series(event)
        if not event.get("eventTime"):
            found.append(causes.required("eventTime"))
        kind = event.get("type", "")
        if kind not in ("Normal", "Warning"):
            found.append(causes.invalid("type", "", f"has invalid value: {kind}"))
        for field in ("firstTimestamp", "lastTimestamp", "count", "source"):
            if event.get(field):
                found.append(causes.invalid(field, "", "needs to be unset"))
        return found

    def validate_update(self, obj: Object, old: Object) -> list[Cause]:
        event, before = to_core(obj), to_core(old)
        found = _legacy(event, "reportingController") + _series(event)
        for field in _IMMUTABLE:
            name = "reportingComponent" if field == "reportingController" else field
            if not same(event.get(name), before.get(name)):
                found += checks.immutable(event.get(name), before.get(name), field)
        return found


def _legacy(obj: Object, controller: str) -> list[Cause]:
    """legacyValidateEvent, on a core Event."""
    where = obj["metadata"].get("namespace", "")
    about = (obj.get("involvedObject") or {}).get("namespace", "")
    found: list[Cause] = []
    if where != (about or "default"):
        text = "does not match event.namespace"
        found.append(causes.invalid("involvedObject.namespace", about, text))
    return found + (_with_time(obj, controller) if obj.get("eventTime") else [])


def _with_time(obj: Object, controller: str) -> list[Cause]:
    found: list[Cause] = []
    component = obj.get("reportingComponent", "")
    if not component:
        found.append(causes.required(controller))
    faults = qualified_name_faults(component)
    found += [causes.invalid(controller, component, fault) for fault in faults]
    for field in ("reportingInstance", "action", "reason"):
        value = obj.get(field, "")
        if not value:
            found.append(causes.required(field))
        if len(value.encode()) > _MAX_WORD:
            found.append(causes.invalid(field, "", f"can have at most {_MAX_WORD} characters"))
    if len(obj.get("message", "").encode()) > MAX_NOTE:
        found.append(causes.invalid("message", "", f"can have at most {MAX_NOTE} characters"))
    return found


def _series(obj: Object) -> list[Cause]:
    series = obj.get("series")
    if not series:
        return []
    found: list[Cause] = []
    if series.get("count", 0) < 2:
        found.append(causes.invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        found.append(causes.required("series.lastObservedTime"))
    return found
