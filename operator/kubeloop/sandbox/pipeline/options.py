"""Query options of requests (and DeleteOptions bodies), decoded and validated with the server's texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubeloop.sandbox.registry import Object
from kubeloop.sandbox.status import ApiFailure, Cause, bad_request, invalid

META_GROUP = "meta.k8s.io"
PROPAGATION = ("Background", "Foreground", "Orphan")
MAX_MANAGER = 128
"""Longest field manager name, in characters."""
MAX_TIMEOUT = 10**9
"""timeoutSeconds above this many seconds mean the same: no timeout that anybody sees."""


def not_supported(value: str, supported: str, field: str) -> Cause:
    """A value outside of an enumeration; `supported` lists it as the server does."""
    text = f'Unsupported value: "{value}": supported values: {supported}'
    return Cause("FieldValueNotSupported", text, field)


def forbidden_cause(text: str, field: str) -> Cause:
    """A value that may not be there."""
    return Cause("FieldValueForbidden", f"Forbidden: {text}", field)


def _bad_dry_run(values: list[str]) -> Cause:
    listed = ", ".join(f'"{value}"' for value in values)
    return Cause(
        "FieldValueNotSupported", f'Unsupported value: [{listed}]: supported values: "All"', "dryRun"
    )


def parse_bool(text: str | None) -> bool:
    """A boolean as apimachinery converts query values: anything but these means true."""
    return text is not None and text.lower() not in ("false", "0")


def parse_int(text: str | None) -> int:
    """An int64 of the query; absent or empty is 0. Raises a 400 failure."""
    if not text:
        return 0
    try:
        return int(text)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def parse_revision(text: str | None) -> int:
    """A resourceVersion; absent, empty and "0" are 0. Raises ValueError with the server's text."""
    if not text:
        return 0
    if text.isascii() and text.isdigit():
        return int(text)
    raise ValueError(
        f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
    )


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Options of list and watch. `send_initial_events` is None when it was not given."""

    label_selector: str = ""
    field_selector: str = ""
    watch: bool = False
    bookmarks: bool = False
    resource_version: str = ""
    match: str = ""
    timeout: float = 0
    limit: int = 0
    continue_: str = ""
    send_initial_events: bool | None = None


def list_options(query: Mapping[str, str], *, watch: bool = False) -> ListOptions:
    """Decode and validate (ValidateListOptions). Raises 400 and 422 failures."""
    initial = query.get("sendInitialEvents")
    options = ListOptions(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        watch=watch or ("watch" in query and parse_bool(query["watch"])),
        bookmarks=parse_bool(query.get("allowWatchBookmarks")),
        resource_version=query.get("resourceVersion", ""),
        match=query.get("resourceVersionMatch", ""),
        timeout=float(min(parse_int(query.get("timeoutSeconds")), MAX_TIMEOUT)),
        limit=parse_int(query.get("limit")),
        continue_=query.get("continue", ""),
        send_initial_events=None if initial in (None, "") else parse_bool(initial),
    )
    from_start = options.watch and options.resource_version in ("", "0") and bool(options.continue_)
    if options.match or options.send_initial_events is not None or from_start:
        causes = _list_causes(options)
        if causes:
            raise invalid("ListOptions", META_GROUP, "", causes)
    return options


def _list_causes(options: ListOptions) -> list[Cause]:
    causes: list[Cause] = []
    match, version = options.match, options.resource_version
    if options.watch and not match and options.send_initial_events is None:
        # A watch without a revision counts as one that asked for "NotOlderThan".
        if options.continue_:
            text = "resourceVersionMatch is forbidden when continue is provided"
            causes.append(forbidden_cause(text, "resourceVersionMatch"))
        return causes
    field = "resourceVersionMatch"
    if options.watch:
        if options.send_initial_events is not None and match != "NotOlderThan":
            text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            causes.append(forbidden_cause(text, field))
        if match:
            if options.send_initial_events is None:
                text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
                causes.append(forbidden_cause(text, field))
            if match not in ("", "NotOlderThan"):
                causes.append(not_supported(match, '"NotOlderThan"', field))
            if options.continue_:
                text = "resourceVersionMatch is forbidden when continue is provided"
                causes.append(forbidden_cause(text, field))
        return causes
    if match:
        if not version:
            text = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            causes.append(forbidden_cause(text, field))
        if options.continue_:
            text = "resourceVersionMatch is forbidden when continue is provided"
            causes.append(forbidden_cause(text, field))
        if match not in ("Exact", "NotOlderThan"):
            causes.append(not_supported(match, '"Exact", "NotOlderThan", ""', field))
        if match == "Exact" and version == "0":
            text = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            causes.append(forbidden_cause(text, field))
    if options.send_initial_events is not None:
        causes.append(forbidden_cause("sendInitialEvents is forbidden for list", "sendInitialEvents"))
    return causes


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of create, update and patch."""

    dry_run: bool = False
    manager: str = ""
    validation: str = "Warn"
    force: bool = False


def write_options(query: Mapping[str, str], kind: str) -> WriteOptions:
    """Decode and validate; `kind` is CreateOptions, UpdateOptions or PatchOptions. Raises a 422 failure.

    What concerns patches only (force, a needed manager) is checked by `check_patch_options`.
    """
    if not query:
        return WriteOptions()
    causes: list[Cause] = []
    dry_run = query.get("dryRun")
    if dry_run not in (None, "All"):
        causes.append(_bad_dry_run([dry_run]))
    manager = query.get("fieldManager", "")
    if len(manager) > MAX_MANAGER:
        text = f"Too long: may not be more than {MAX_MANAGER} bytes"
        causes.append(Cause("FieldValueTooLong", text, "fieldManager"))
    for index, char in enumerate(manager if not manager.isprintable() else ""):
        if not char.isprintable():
            shown = manager.encode("unicode_escape").decode()
            text = f'Invalid value: "{shown}": invalid character U+{ord(char):04X} (at position {index})'
            causes.append(Cause("FieldValueInvalid", text, "fieldManager"))
    validation = query.get("fieldValidation", "")
    if validation not in ("", "Ignore", "Strict", "Warn"):
        causes.append(not_supported(validation, '"", "Ignore", "Strict", "Warn"', "fieldValidation"))
    if causes:
        raise invalid(kind, META_GROUP, "", causes)
    return WriteOptions(
        dry_run=dry_run == "All",
        manager=manager,
        validation=validation or "Warn",
        force=parse_bool(query.get("force")),
    )


def check_patch_options(query: Mapping[str, str], *, apply: bool) -> None:
    """What ValidatePatchOptions adds. Raises a 422 failure."""
    if apply and not query.get("fieldManager"):
        cause = Cause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager")
        raise invalid("PatchOptions", META_GROUP, "", [cause])
    if not apply and "force" in query:
        cause = forbidden_cause("may not be specified for non-apply patch", "force")
        raise invalid("PatchOptions", META_GROUP, "", [cause])


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Options of delete. `propagation` is empty when the client left it to the server."""

    dry_run: bool = False
    propagation: str = ""
    grace_seconds: int | None = None
    uid: str | None = None
    resource_version: str | None = None


def delete_options(query: Mapping[str, str], body: Object | None) -> DeleteOptions:
    """From the body when there is one, else from the query, as the server does. Raises 400 and 422."""
    source: dict[str, Any] = dict(body or {})
    if body is None:
        if "propagationPolicy" in query:
            source["propagationPolicy"] = query["propagationPolicy"]
        if "gracePeriodSeconds" in query:
            source["gracePeriodSeconds"] = parse_int(query["gracePeriodSeconds"])
        if "orphanDependents" in query:
            source["orphanDependents"] = parse_bool(query["orphanDependents"])
        if "dryRun" in query:
            source["dryRun"] = [query["dryRun"]]
    causes: list[Cause] = []
    propagation = source.get("propagationPolicy") or ""
    if source.get("orphanDependents") is not None:
        if propagation:
            text = (
                f'Invalid value: "{propagation}": orphanDependents and deletionPropagation cannot be both set'
            )
            causes.append(Cause("FieldValueInvalid", text, "propagationPolicy"))
        propagation = "Orphan" if source["orphanDependents"] else "Background"
    if source.get("propagationPolicy") and source["propagationPolicy"] not in PROPAGATION:
        supported = '"Foreground", "Background", "Orphan", "nil"'
        causes.append(not_supported(source["propagationPolicy"], supported, "propagationPolicy"))
    dry_run = list(source.get("dryRun") or [])
    if any(value != "All" for value in dry_run):
        causes.append(_bad_dry_run(dry_run))
    if causes:
        raise invalid("DeleteOptions", META_GROUP, "", causes)
    preconditions = source.get("preconditions") or {}
    return DeleteOptions(
        dry_run=bool(dry_run),
        propagation=propagation,
        grace_seconds=source.get("gracePeriodSeconds"),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
    )


def default_manager(user_agent: str) -> str:
    """The field manager of a request that names none: the user agent up to its first slash."""
    prefix = user_agent.partition("/")[0]
    return "".join(char for char in prefix if char.isprintable())[:MAX_MANAGER]


def revision_failure(error: ValueError) -> ApiFailure:
    """The 500 without a reason that the server answers to a malformed resourceVersion in some places."""
    return ApiFailure(500, "", str(error))
