"""When is a status write needed, and what does it say? Pure.

A status is written only if it says something new: unconditional writes, worst with a fresh timestamp in
a condition, make a controller trigger itself without end (controller-runtime#2831). The server may also
drop fields that its CRD does not know (an older CRD is installed); comparing with what it kept would
then never come to rest (kopf#686), so what was sent and what came of it are remembered together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from kubeloop.model import Model, format_time
from kubeloop.model.conditions import bounded

CONDITIONS = "conditions"


@dataclass(frozen=True, slots=True)
class SentStatus:
    """The last status we sent for an object, and what the server made of it."""

    uid: str
    sent: dict[str, Any]
    kept: dict[str, Any]


def with_transition_times(
    wanted: Mapping[str, Any], previous: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    """`wanted` with a lastTransitionTime in each condition that has none.

    It moves only when the condition's status does (API conventions, "Typical status properties"). A message
    longer than the API allows is cut, so that a long error text is no error of its own.
    """
    conditions = wanted.get(CONDITIONS)
    if not conditions:
        return dict(wanted)
    before = {c.get("type"): c for c in previous.get(CONDITIONS) or () if isinstance(c, Mapping)}
    stamped = []
    for given in conditions:
        message = given.get("message")
        condition = {**given, "message": bounded(message)} if isinstance(message, str) else given
        old = before.get(condition["type"])
        same = old is not None and old.get("status") == condition["status"] and old.get("lastTransitionTime")
        time = same or condition.get("lastTransitionTime") or format_time(now)
        stamped.append({**condition, "lastTransitionTime": time})
    return {**wanted, CONDITIONS: stamped}


def says_the_same(wanted: Model, live: object) -> bool:
    """Whether the status `live` says what `wanted` says, transition times aside: the usual case, and a tenth
    of the price of `plan_status`."""
    if type(live) is not type(wanted):
        return False
    for name in _names(type(wanted)):
        ours, theirs = getattr(wanted, name), getattr(live, name)
        if ours != theirs and not (name == CONDITIONS and _same_conditions(ours, theirs)):
            return False
    return True


def _same_conditions(ours: Sequence[Model], theirs: Sequence[Model]) -> bool:
    if len(ours) != len(theirs):
        return False
    content = _all_but_times(type(ours[0]))
    return all(
        mine.last_transition_time == had.last_transition_time  # type: ignore[attr-defined]
        or (mine.last_transition_time is None and had.last_transition_time)  # type: ignore[attr-defined]
        for mine, had in zip(ours, theirs, strict=True)
    ) and [content(each) for each in ours] == [content(each) for each in theirs]


@cache
def _names(kind: type[Model]) -> tuple[str, ...]:
    return tuple(kind.__pydantic_fields__)  # type: ignore[attr-defined]


@cache
def _all_but_times(kind: type[Model]) -> Callable[[Model], tuple[Any, ...]]:
    names = [name for name in _names(kind) if name != "last_transition_time"]
    return lambda condition: tuple([getattr(condition, name) for name in names])


def plan_status(
    wanted: Mapping[str, Any], live: Mapping[str, Any], sent: SentStatus | None, uid: str, now: datetime
) -> dict[str, Any] | None:
    """The status to send, with transition times filled in, or None if the live one already says so."""
    remembered = sent is not None and sent.uid == uid and sent.kept == live
    previous = sent.sent if remembered and sent is not None else live
    full = with_transition_times(wanted, previous, now)
    return None if full == previous else full


def merge_patch(full: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch for the status subresource that turns the fields of `live` that we know into `full`.

    All our fields are sent, changed or not, so that the answer can only differ from `full` where the
    server dropped something.
    """
    return {"status": {**{key: None for key in live if key not in full}, **full}}
