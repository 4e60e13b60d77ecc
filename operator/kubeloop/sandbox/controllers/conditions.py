"""Lists of conditions, as controllers keep them."""

from __future__ import annotations

from collections.abc import Sequence

from kubeloop.sandbox.registry import Object


def find(conditions: Sequence[Object], kind: str) -> Object | None:
    """The condition of one type."""
    return next((condition for condition in conditions if condition["type"] == kind), None)


def put(
    conditions: Sequence[Object],
    kind: str,
    status: str,
    reason: str,
    message: str,
    now: str,
    *,
    update_time: bool = False,
) -> list[Object]:
    """`conditions` with one set; lastTransitionTime only moves with the status.

    With `update_time` it also keeps lastUpdateTime, and an equal status and reason leave all as it is
    (Deployments do that: the message is not looked at).
    """
    old = find(conditions, kind)
    equal = old is not None and old["status"] == status and old["reason"] == reason
    if equal and old is not None and (update_time or old["message"] == message):
        return list(conditions)
    new: Object = {"type": kind, "status": status, "reason": reason, "message": message}
    same = old is not None and old["status"] == status
    new["lastTransitionTime"] = old["lastTransitionTime"] if same and old is not None else now
    if update_time:
        new["lastUpdateTime"] = now
    if old is None:
        return [*conditions, new]
    return [new if condition is old else condition for condition in conditions]
