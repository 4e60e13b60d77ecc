"""Status conditions with transition times that move only when the status does."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import WithJsonSchema

from kubeloop.model.base import Field, Model
from kubeloop.model.frozen import Items
from kubeloop.model.markers import ListMap
from kubeloop.model.scalars import Int64, Timestamp

ConditionStatus = Literal["True", "False", "Unknown"]

MAX_MESSAGE = 32768
"""Longest condition message, in characters: metav1.Condition's own bound."""


# The CRD bounds it; here `set_condition` cuts it, so that a long error text is no error of its own.
Message = Annotated[str, WithJsonSchema({"type": "string", "maxLength": MAX_MESSAGE})]


class Condition(Model):
    """One aspect of an object's state: metav1.Condition."""

    type: str = Field(min_length=1, max_length=316, description="Aspect that this condition is about.")
    status: ConditionStatus = Field(description="Whether it holds: True, False or Unknown.")
    reason: str = Field(
        default="",
        max_length=1024,
        description="Why, as one CamelCase word for programs.",
    )
    message: Message = Field(default="", description="Why, for people.")
    observed_generation: Int64 | None = Field(
        default=None, ge=0, description="The metadata.generation that this condition was derived from."
    )
    last_transition_time: Timestamp | None = Field(
        default=None, description="When the status last changed from one value to another."
    )


Conditions = Annotated[Items[Condition], ListMap("type")]
"""A status' conditions: a list whose entries are told apart by `type`."""


def format_time(moment: datetime) -> str:
    """A timestamp as metav1.Time writes it: UTC, whole seconds. ValueError for a naive datetime."""
    if moment.tzinfo is None:
        raise ValueError("a timestamp needs a time zone")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def find_condition(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """The condition of that type, or None."""
    return next((condition for condition in conditions if condition.type == type_), None)


def is_true(conditions: Iterable[Condition], type_: str) -> bool:
    """True if the condition of that type is there and holds."""
    found = find_condition(conditions, type_)
    return found is not None and found.status == "True"


def set_condition(existing: tuple[Condition, ...], new: Condition, now: datetime) -> tuple[Condition, ...]:
    """`existing` with `new` in the place of the condition of its type, or appended.

    lastTransitionTime is kept while the status stays the same, else it becomes `now` (whatever `new` says).
    When nothing but the time could differ, the very same tuple comes back: an equal status means no write. A
    message longer than MAX_MESSAGE is cut.
    """
    old = find_condition(existing, new.type)
    if old is not None and old.last_transition_time and _content(old) == _content(new):
        return existing  # by far the most frequent case: nothing has happened
    kept = old.last_transition_time if old is not None and old.status == new.status else None
    settled = new.replace(last_transition_time=kept or format_time(now), message=bounded(new.message))
    if settled == old:
        return existing
    if old is None:
        return (*existing, settled)
    return tuple(settled if condition is old else condition for condition in existing)


def set_conditions(
    existing: tuple[Condition, ...], new: Iterable[Condition], now: datetime
) -> tuple[Condition, ...]:
    """`set_condition` for each of `new`, in order."""
    for condition in new:
        existing = set_condition(existing, condition, now)
    return existing


def _content(condition: Condition) -> tuple[str, str, str, int | None]:
    """All but the type and the time."""
    return (condition.status, condition.reason, condition.message, condition.observed_generation)


def bounded(message: str) -> str:
    """`message`, cut if it is longer than MAX_MESSAGE."""
    return message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…"
