"""When is a status write needed, and what does it say? Pure.

A status is written only if it says something new: unconditional writes, worst with a fresh timestamp in
a condition, make a controller trigger itself without end (controller-runtime#2831). The server may also
drop fields that its CRD does not know (an older CRD is installed); comparing with what it kept would
then never come to rest (kopf#686), so what was sent and what came of it are remembered together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kubeloop.model import format_time

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

    It moves only when the condition's status does (API conventions, "Typical status properties").
    """
    conditions = wanted.get(CONDITIONS)
    if not conditions:
        return dict(wanted)
    before = {c.get("type"): c for c in previous.get(CONDITIONS) or () if isinstance(c, Mapping)}
    stamped = []
    for condition in conditions:
        old = before.get(condition["type"])
        same = old is not None and old.get("status") == condition["status"] and old.get("lastTransitionTime")
        time = same or condition.get("lastTransitionTime") or format_time(now)
        stamped.append({**condition, "lastTransitionTime": time})
    return {**wanted, CONDITIONS: stamped}


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
