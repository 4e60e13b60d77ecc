"""Who manages what: `metadata.managedFields` as a table, and back.

An entry is identified by manager, operation, subresource and, for updates only, apiVersion: appliers keep
one entry over all versions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from kubeloop.sandbox.apply.fieldset import LEAF, SELF, Set, union
from kubeloop.sandbox.apply.path import canonical

APPLY = "Apply"
UPDATE = "Update"
MAX_UPDATE_MANAGERS = 10
"""More update entries than this are folded together, oldest first (DefaultMaxUpdateManagers)."""
OLD_UPDATES = "ancient-changes"


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells two entries apart; `version` is empty for appliers."""

    manager: str
    operation: str
    version: str = ""
    subresource: str = ""

    @property
    def applied(self) -> bool:
        return self.operation == APPLY

    def display(self) -> str:
        """As conflicts name it: ``"kubectl" using apps/v1``."""
        text = _quote(self.manager)
        if self.subresource:
            text += f" with subresource {_quote(self.subresource)}"
        return text if self.applied else f"{text} using {self.version}"


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@dataclass(slots=True)
class Entry:
    """One manager's fields, at the version it spoke, and when its set last moved (RFC 3339)."""

    fields: Set
    api_version: str
    time: str | None
    source: dict[str, Any] | None = None
    """The wire form this was decoded from, reused when nothing changed."""

    def with_fields(self, fields: Set) -> Entry:
        return self if fields is self.fields else Entry(fields, self.api_version, self.time)


Managers = dict[Identity, Entry]


class UndecodableError(ValueError):
    """managedFields that are not valid; the server then goes on as if there were none."""


def identity(manager: str, operation: str, api_version: str, subresource: str) -> Identity:
    """The identity of a request's manager; nameless ones are ``unknown``."""
    version = "" if operation == APPLY else api_version
    return Identity(manager or "unknown", operation, version, subresource)


def decode(entries: Iterable[dict[str, Any]] | None, *, trusted: bool = True) -> Managers:
    """The table of an object's managedFields; `trusted` when this server wrote them itself."""
    managers: Managers = {}
    for entry in entries or ():
        operation = entry.get("operation")
        if operation not in (APPLY, UPDATE):
            raise UndecodableError("operation must be `Apply` or `Update`")
        version = entry.get("apiVersion")
        if not version:
            raise UndecodableError("apiVersion must not be empty")
        if entry.get("fieldsType") != "FieldsV1":
            raise UndecodableError("invalid fieldsType in managed fields entry")
        fields = entry.get("fieldsV1") or {}
        who = Identity(
            entry.get("manager", ""),
            operation,
            "" if operation == APPLY else version,
            entry.get("subresource", ""),
        )
        source = entry if trusted else None
        managers[who] = Entry(fields if trusted else normalise(fields), version, entry.get("time"), source)
    return managers


def normalise(fields: Any) -> Set:
    """A client's fieldsV1 in this server's spelling (UndecodableError when it is not one)."""
    if not isinstance(fields, dict):
        raise UndecodableError("error decoding set")
    out: Set = {}
    for key, below in fields.items():
        if key == SELF:
            out[SELF] = LEAF
            continue
        try:
            out[canonical(key)] = normalise(below)
        except ValueError as error:
            raise UndecodableError(str(error)) from error
    return LEAF if len(out) == 1 and SELF in out else out


def encode(managers: Managers) -> list[dict[str, Any]]:
    """The wire form, in the server's order: operation, time, manager, version, subresource."""
    listed = sorted(managers.items(), key=_order) if len(managers) > 1 else managers.items()
    return [entry.source or _wire(who, entry) for who, entry in listed]


def _order(item: tuple[Identity, Entry]) -> tuple[str, str, str, str, str]:
    who, entry = item
    return (who.operation, entry.time or "", who.manager, entry.api_version, who.subresource)


def _wire(who: Identity, entry: Entry) -> dict[str, Any]:
    wire: dict[str, Any] = {
        "manager": who.manager,
        "operation": who.operation,
        "apiVersion": entry.api_version,
    }
    if entry.time is not None:
        wire["time"] = entry.time
    wire["fieldsType"] = "FieldsV1"
    wire["fieldsV1"] = entry.fields
    if who.subresource:
        wire["subresource"] = who.subresource
    return wire


def cap_updates(managers: Managers) -> Managers:
    """Fold the oldest update entries of one version into ``ancient-changes`` until ten are left."""
    updaters = [who for who in managers if not who.applied]
    if len(updaters) <= MAX_UPDATE_MANAGERS:
        return managers
    updaters.sort(key=lambda who: (managers[who].time or "", who.manager, who.version, who.subresource))
    managers = dict(managers)
    first: dict[str, Identity] = {}
    count = len(updaters)
    for who in updaters:
        if count <= MAX_UPDATE_MANAGERS:
            break
        entry = managers[who]
        bucket = Identity(OLD_UPDATES, UPDATE, entry.api_version)
        if entry.api_version not in first:
            first[entry.api_version] = who
            continue
        if bucket not in managers:
            managers[bucket] = replace(managers.pop(first[entry.api_version]), source=None)
        merged = union(entry.fields, managers[bucket].fields)
        del managers[who]
        managers[bucket] = Entry(merged, entry.api_version, entry.time)
        count -= 1
    return managers
