"""The base of all models."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import pytest
from pydantic import ValidationError

from kubeloop.model import DefinitionError, Duration, Field, Items, Map, Model, Quantity


class Kind(Enum):
    SMALL = "small"


class Inner(Model):
    long_name: int = 1


class Outer(Model):
    some_text: str | None = None
    done: bool = False
    children: Items[Inner] = ()
    child: Inner = Inner()
    amount: Quantity | None = None
    pause: Duration | None = None
    at: datetime | None = None
    kind: Kind | None = None
    odd: str | None = Field(default=None, alias="oddName")

    def describe(self) -> str:
        return "outer"


class Further(Outer):
    extra: int = 0

    def describe(self) -> str:
        return "further " + super().describe()


def test_fields_are_snake_case_here_and_camel_case_on_the_wire() -> None:
    """R0.3."""
    assert Outer.model_validate_json('{"someText": "x", "child": {"longName": 5}}').child.long_name == 5
    assert Outer(some_text="x").to_wire() == {
        "someText": "x",
        "done": False,
        "child": {"longName": 1},
    }


def test_unknown_fields_are_ignored() -> None:
    assert Outer.model_validate_json('{"nope": {"deep": [1]}}') == Outer()


def test_the_wire_form_has_no_nulls_and_reads_back_equal() -> None:
    full = Outer(
        some_text="ä",
        done=True,
        children=(Inner(long_name=2),),
        amount=Quantity("500m"),
        pause=timedelta(minutes=90),
        at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        kind=Kind.SMALL,
        oddName="odd",
    )
    wire = full.to_wire()

    assert wire["pause"] == "1h30m0s"
    assert wire["at"] == "2026-01-02T03:04:05Z"
    assert wire["kind"] == "small"
    assert type(wire["amount"]) is str
    assert Outer.model_validate(wire) == full


def test_a_model_cannot_be_changed_but_copied_with_changes() -> None:
    before = Outer(some_text="a")

    with pytest.raises(dataclasses.FrozenInstanceError):
        before.some_text = "b"  # type: ignore[misc]
    after = before.replace(some_text="b")

    assert (before.some_text, after.some_text) == ("a", "b")
    assert hash(before) == hash(Outer(some_text="a"))
    assert copy.deepcopy(after) == after
    assert pickle.loads(pickle.dumps(after)) == after


def test_a_copy_with_a_bad_change_is_refused() -> None:
    with pytest.raises(ValidationError):
        Outer().replace(done="perhaps")


def test_instances_carry_no_dict() -> None:
    assert not hasattr(Outer(), "__dict__")


def test_super_without_arguments_works_in_models() -> None:
    """`slots=True` makes a second class; the methods must know that one."""
    assert Further(extra=1, some_text="x").describe() == "further outer"


def test_mutable_containers_are_refused_all_at_once_with_advice() -> None:
    with pytest.raises(DefinitionError) as caught:

        class Bad(Model):
            names: list[str] = Field(default_factory=list)
            nested: Map[list[int]]
            table: dict[str, str] | None = None
            free: Any = None
            good: Items[int] = ()

    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        "names",
        "nested",
        "table",
        "free",
    ]
    assert "write Items[T] instead of list" in str(caught.value)


def test_the_model_package_does_not_import_the_kubernetes_package() -> None:
    code = "import sys, kubeloop.model; print([m for m in sys.modules if m.split('.')[0] == 'kubernetes'])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": _root()}
    )

    assert done.stdout.strip() == "[]"


def _root() -> str:
    import kubeloop

    return str(next(iter(kubeloop.__path__))).removesuffix("kubeloop")
