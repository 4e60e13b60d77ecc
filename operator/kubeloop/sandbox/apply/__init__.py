"""Field management: server-side apply, and the tracking of every other write in `metadata.managedFields`.

Contract: pure functions on plain objects. `apply` merges a configuration into the live object and raises
the server's 409 with its causes; `track_update` is called with the complete new object of a create, update
or patch. Neither changes its arguments; results share every part that did not change, so that "nothing
changed" can be told by identity or cheap comparison. Times move only where the server moves them;
`keep_times` undoes them where in the end nothing but a time moved.

Order in a request, as in the server: `apply` (its result is converted to the kind's type already and only
wants defaulting) or, for other writes, decoding, defaulting and `track_update`; then admission, `keep_times`
and only then the strategy: what a strategy adds (a namespace's finalizer, a cluster IP) is nobody's field.
"""

from __future__ import annotations

from typing import Any

from kubeloop.sandbox.apply import lastapplied, managers, updater
from kubeloop.sandbox.apply.fieldset import Set, difference, from_path, ordered, union
from kubeloop.sandbox.apply.managers import APPLY, UPDATE, Entry, Identity, Managers
from kubeloop.sandbox.apply.path import display
from kubeloop.sandbox.apply.typed import TypedError, field_set, fits
from kubeloop.sandbox.schema import KindSchema
from kubeloop.sandbox.schema.equality import same
from kubeloop.sandbox.status import ApiFailure, Cause, bad_request

__all__ = ["apply", "keep_times", "track_update"]

Object = dict[str, Any]
Reset = tuple[tuple[str, ...], ...]

BEFORE_FIRST_APPLY = "before-first-apply"

_STRIPPED: Set = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {
        ".": {},
        **{
            "f:" + name: {}
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "clusterName",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        },
    },
}
"""Never owned by anybody (managedfields: stripMetaManager)."""


def apply(
    live: Object | None,
    config: Object,
    *,
    manager: str,
    force: bool,
    schema: KindSchema,
    api_version: str,
    now: str,
    subresource: str = "",
    reset: Reset = (),
) -> Object:
    """The object after `manager` applied `config`, with its new managedFields.

    `live` is None when the object does not exist. `reset` names the fields this endpoint never writes.
    When the apply changed neither the object nor anybody's fields, `live` itself is returned.
    Raises ApiFailure: 409 with causes, 400 for managedFields in the configuration, 500 for a
    configuration that does not fit the schema (as the server does).
    """
    _check_config(config, schema, api_version)
    node, ignored = schema.root, _reset_set(reset)
    try:
        fields = field_set(config, node)
    except TypedError as error:
        raise _untyped(config, schema, api_version, error) from error
    base = {} if live is None else _without_entries(live)
    table = _decoded(live)
    if live is not None and not table:
        table, before = updater.update(schema.empty(), base, node, table, ignored)
        before = difference(before, _STRIPPED)
        if before:
            who = managers.identity(BEFORE_FIRST_APPLY, UPDATE, api_version, subresource)
            table = {who: Entry(before, api_version, now)}
    me = managers.identity(manager, APPLY, api_version, subresource)

    def attempt(forced: bool) -> tuple[Object, Managers]:
        return updater.apply(
            base,
            config,
            fields,
            node,
            table,
            me,
            api_version,
            force=forced,
            reset=ignored,
            stripped=_STRIPPED,
        )

    try:
        merged, result = attempt(force)
    except updater.Conflicts as conflicts:
        excused = lastapplied.excused(manager, base, node, api_version)
        left = {who: difference(found, excused) for who, found in conflicts.sets.items()}
        left = {who: found for who, found in left.items() if found}
        if left:
            raise _conflict(left) from conflicts
        merged, result = attempt(True)
    if merged is not base and me in result and not same(merged, base):
        entry = result[me]
        result[me] = Entry(entry.fields, entry.api_version, now)
    if manager == "kubectl":
        merged = lastapplied.refreshed(merged, config)
    if merged is base:
        if live is not None and _unchanged(table, result, live):
            return live
    else:
        merged = schema.converted(merged, base)
    return _with_entries(merged, result)


def track_update(
    old: Object | None,
    new: Object,
    *,
    manager: str,
    schema: KindSchema,
    api_version: str,
    now: str,
    subresource: str = "",
    reset: Reset = (),
) -> Object:
    """`new` with the managedFields that follow when `manager` wrote it over `old` (None: created it).

    A client that sends managedFields itself replaces them (an empty list or one empty entry resets them);
    through a subresource they are ignored.
    """
    entries = _sent_entries(old, new, subresource)
    if entries is None:
        return _with_entries(new, {})
    table = entries
    if not table and old is not None:
        return _with_entries(new, {})  # never applied and never tracked: stays untracked
    if subresource and not fits(new, schema.root):
        return _with_entries(new, {})  # the server gives up on tracking; the bad part will be put back
    base = schema.empty() if old is None else old
    table, mine = updater.update(base, new, schema.root, table, _reset_set(reset))
    mine = difference(mine, _STRIPPED)
    if mine:
        me = managers.identity(manager, UPDATE, api_version, subresource)
        before = table.get(me)
        fields = union(mine, before.fields) if before else mine
        table = {**table, me: Entry(fields, api_version, now)}
    return _with_entries(new, managers.cap_updates(table))


def keep_times(old: Object, new: Object) -> Object:
    """`new` with the entries' old times when nothing but those times differs from `old`.

    Called after defaulting, before the object is stored: keeps a repeated apply from being a write.
    """
    before = old["metadata"].get("managedFields") or []
    after = new["metadata"].get("managedFields") or []
    if not after or len(before) != len(after) or before is after:
        return new
    for then, now in zip(before, after, strict=True):
        if then is not now and {**then, "time": None} != {**now, "time": None}:
            return new
    restored = {**new, "metadata": {**new["metadata"], "managedFields": before}}
    return old if same(restored, old) else new


def _check_config(config: Object, schema: KindSchema, api_version: str) -> None:
    if config.get("apiVersion") != api_version or config.get("kind") != schema.kind:
        found, kind = config.get("apiVersion", ""), config.get("kind", "")
        raise bad_request(f"invalid object type: {_gvk(found, kind)}")
    if (config.get("metadata") or {}).get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")


def _gvk(api_version: str, kind: str) -> str:
    return f"{api_version if '/' in api_version else '/' + api_version}, Kind={kind}"


def _untyped(config: Object, schema: KindSchema, api_version: str, error: TypedError) -> ApiFailure:
    metadata = config.get("metadata") or {}
    where = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
    subject = f"{where}; {_gvk(api_version, schema.kind)}"
    return ApiFailure(500, "", f"failed to create typed patch object ({subject}): {error}")


def _conflict(sets: dict[Identity, Set]) -> ApiFailure:
    causes: list[Cause] = []
    lines: list[str] = []
    for who in sorted(sets, key=lambda w: (w.manager, w.operation, w.version, w.subresource)):
        lines.append(f"conflicts with {who.display()}:")
        for path in ordered(sets[who]):
            shown = display(path)
            causes.append(Cause("FieldManagerConflict", f"conflict with {who.display()}", shown))
            lines.append(f"- {shown}")
    if len(causes) == 1:
        text = f"1 conflict: {causes[0].message}: {causes[0].field}"
    else:
        text = f"{len(causes)} conflicts: " + "\n".join(lines)
    return ApiFailure(
        409,
        "Conflict",
        f"Apply failed with {text}",
        details={"causes": [cause.to_wire() for cause in causes]},
    )


_reset_sets: dict[Reset, Set] = {}


def _reset_set(reset: Reset) -> Set:
    known = _reset_sets.get(reset)
    if known is None:
        known = {}
        for path in reset:
            known = union(known, from_path(*path))
        _reset_sets[reset] = known
    return known


def _decoded(live: Object | None) -> Managers:
    if live is None:
        return {}
    return managers.decode(live["metadata"].get("managedFields"))


def _sent_entries(old: Object | None, new: Object, subresource: str) -> Managers | None:
    """The table to start from; None when the client asked to reset it."""
    before = old["metadata"].get("managedFields") if old is not None else None
    sent = (new.get("metadata") or {}).get("managedFields")
    if subresource or sent is before:
        return managers.decode(before)
    if sent is not None and (not sent or sent == [{}]):
        return {} if old is None else None
    try:
        table = managers.decode(sent, trusted=False)
    except managers.UndecodableError:
        table = {}
    return table or managers.decode(before)


def _unchanged(table: Managers, result: Managers, live: Object) -> bool:
    if result is table:
        return True
    if len(table) != len(result) or len(table) != len(live["metadata"].get("managedFields") or ()):
        return False
    return all(result.get(who) is entry for who, entry in table.items())


def _without_entries(obj: Object) -> Object:
    metadata = obj["metadata"]
    if "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}


def _with_entries(obj: Object, table: Managers) -> Object:
    metadata = {k: v for k, v in obj.get("metadata", {}).items() if k != "managedFields"}
    if table:
        metadata["managedFields"] = managers.encode(table)
    return {**obj, "metadata": metadata}
