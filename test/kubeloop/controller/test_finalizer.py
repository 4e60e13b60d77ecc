"""The finalizer patches, played against a JSON patch implementation (R0.16 to R0.18)."""

from __future__ import annotations

from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeloop.controller.finalizer import Phase, add_patch, phase_of, remove_patch

OURS = "webapp.example.com/cleanup"
others = st.lists(st.sampled_from(["a.example/x", "b.example/y", "c.example/z"]), max_size=4)


def patched(finalizers: list[str] | None, ops: list[dict[str, Any]], uid: str = "u") -> list[str]:
    metadata: dict[str, Any] = {"uid": uid}
    if finalizers is not None:
        metadata["finalizers"] = finalizers
    # As the real server does, a test of a missing path against null holds.
    ops = [op for op in ops if not (op["op"] == "test" and op["value"] is None and not finalizers)]
    result: list[str] = jsonpatch.apply_patch({"metadata": metadata}, ops)["metadata"]["finalizers"]
    return result


@given(others)
def test_adding_keeps_the_others_and_comes_last(finalizers: list[str]) -> None:
    assert patched(finalizers or None, add_patch("u", finalizers, OURS)) == [*finalizers, OURS]


@given(others, others)
def test_removing_takes_only_ours(before: list[str], after: list[str]) -> None:
    finalizers = [*before, OURS, *after]
    assert patched(list(finalizers), remove_patch("u", finalizers, OURS)) == before + after


@given(others.filter(bool))
def test_removing_fails_rather_than_taking_somebody_elses(now: list[str]) -> None:
    """kube-rs#964: by now another entry may stand at the index."""
    with pytest.raises((jsonpatch.JsonPatchTestFailed, jsonpatch.JsonPatchConflict)):
        patched(now, remove_patch("u", [OURS], OURS))


@given(others, others)
def test_adding_fails_if_the_list_has_changed(seen: list[str], now: list[str]) -> None:
    if seen and seen != now:
        with pytest.raises((jsonpatch.JsonPatchTestFailed, jsonpatch.JsonPointerException)):
            patched(now or None, add_patch("u", seen, OURS))


def test_another_incarnation_of_the_name_is_not_touched() -> None:
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        patched([OURS], remove_patch("old", [OURS], OURS), uid="new")


@pytest.mark.parametrize(
    ("finalizers", "finalizer", "deleting", "phase"),
    [
        ([], OURS, False, Phase.ADD),
        (["x/y"], OURS, False, Phase.ADD),
        ([OURS], OURS, False, Phase.APPLY),
        ([OURS, "x/y"], OURS, True, Phase.CLEANUP),
        (["x/y"], OURS, True, Phase.GONE),  # cluster-api#8949: never proposed again while deleting
        ([], None, False, Phase.APPLY),
        (["x/y"], None, True, Phase.GONE),
    ],
)
def test_the_phases_of_an_object(
    finalizers: list[str], finalizer: str | None, deleting: bool, phase: Phase
) -> None:
    assert phase_of(finalizers, finalizer, deleting=deleting) is phase
