"""Which of a CRD's names are free: the server's naming and establishing controllers, as one function."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Object = dict[str, Any]


def established(crd: Object) -> bool:
    """Whether the CRD's condition Established is true: only then are its resources served."""
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions)


def name_conditions(crd: Object, others: Iterable[Object], now: str) -> Object:
    """The CRD's status after its names were compared with those that `others` of its group hold.

    `now` (RFC 3339) becomes the transition time of conditions whose status changes. A name once accepted
    is kept while it is asked for; a CRD once established stays so.
    """
    status = dict(crd.get("status") or {})
    wanted = crd["spec"]["names"]
    held = {key: value for key, value in (status.get("acceptedNames") or {}).items() if value}
    taken, kinds = _taken(crd, others)
    accepted: Object = {"plural": "", "kind": ""}
    problem: tuple[str, str] | None = None
    for field, reason, reserved in (
        ("plural", "PluralConflict", taken),
        ("singular", "SingularConflict", taken),
        ("shortNames", "ShortNamesConflict", taken),
        ("kind", "KindConflict", kinds),
        ("listKind", "ListKindConflict", kinds),
    ):
        value = wanted.get(field)
        if not value:
            continue
        names = value if isinstance(value, list) else [value]
        own = held.get(field, [])
        ours = own if isinstance(own, list) else [own]
        used = [name for name in names if name in reserved and name not in ours]
        if used:
            listed = " ".join(f'"{name}"' for name in used)
            problem = (reason, f"{listed} is already in use")
            if field in held:
                accepted[field] = held[field]
        else:
            accepted[field] = value
    if wanted.get("categories"):
        accepted["categories"] = wanted["categories"]
    conditions = list(status.get("conditions") or ())
    if problem:
        conditions = _set(conditions, "NamesAccepted", "False", *problem, now)
    else:
        conditions = _set(conditions, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now)
    if established(crd):
        text = ("InitialNamesAccepted", "the initial names have been accepted")
        conditions = _set(conditions, "Established", "True", *text, now)
    elif problem:
        text = ("NotAccepted", "not all names are accepted")
        conditions = _set(conditions, "Established", "False", *text, now)
    else:
        text = ("InitialNamesAccepted", "the initial names have been accepted")
        conditions = _set(conditions, "Established", "True", *text, now)
    return {**status, "conditions": conditions, "acceptedNames": accepted}


def _taken(crd: Object, others: Iterable[Object]) -> tuple[set[str], set[str]]:
    resources: set[str] = set()
    kinds: set[str] = set()
    # A CRD's own accepted names count as well: a short name cannot be the singular that it already has.
    for other in (*others, crd):
        if other["spec"]["group"] != crd["spec"]["group"]:
            continue
        if other is not crd and other["metadata"]["name"] == crd["metadata"]["name"]:
            continue
        names = (other.get("status") or {}).get("acceptedNames") or {}
        resources.update(filter(None, (names.get("plural"), names.get("singular"))))
        resources.update(names.get("shortNames") or ())
        kinds.update(filter(None, (names.get("kind"), names.get("listKind"))))
    return resources, kinds


def _set(
    conditions: list[Object], kind: str, value: str, reason: str, message: str, now: str
) -> list[Object]:
    new = {"type": kind, "status": value, "lastTransitionTime": now, "reason": reason, "message": message}
    for index, old in enumerate(conditions):
        if old.get("type") == kind:
            if old.get("status") == value:
                new["lastTransitionTime"] = old.get("lastTransitionTime", now)
            return [*conditions[:index], {**old, **new}, *conditions[index + 1 :]]
    return [*conditions, new]
