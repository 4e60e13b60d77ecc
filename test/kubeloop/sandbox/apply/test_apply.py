"""Server-side apply: ownership, conflicts, removal, no-ops."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubeloop.sandbox.apply import apply, keep_times, track_update
from kubeloop.sandbox.schema import BuiltinSchema, CustomSchema
from kubeloop.sandbox.status import ApiFailure

NOW = "2026-01-01T00:00:00Z"
LATER = "2026-01-02T00:00:00Z"
Object = dict[str, Any]


def thing(**spec: Any) -> Object:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": spec,
    }


def applied(
    schema: CustomSchema | BuiltinSchema,
    live: Object | None,
    config: Object,
    manager: str = "one",
    *,
    force: bool = False,
    now: str = NOW,
    **more: Any,
) -> Object:
    return apply(
        live,
        config,
        manager=manager,
        force=force,
        schema=schema,
        api_version=schema.api_version,
        now=now,
        **more,
    )


def entries(obj: Object) -> dict[tuple[str, str, str], Any]:
    return {
        (e["manager"], e["operation"], e.get("subresource", "")): e["fieldsV1"]
        for e in obj["metadata"].get("managedFields", [])
    }


def test_an_applied_field_is_owned_and_its_map_only_by_key(custom: CustomSchema) -> None:
    obj = applied(custom, None, thing(image="nginx", labels={"a": "b"}))
    owned = {"f:spec": {"f:image": {}, "f:labels": {"f:a": {}}}}
    assert entries(obj) == {("one", "Apply", ""): owned}


def test_changing_what_another_manages_is_a_conflict_with_its_cause(custom: CustomSchema) -> None:
    live = applied(custom, None, thing(replicas=1))
    with pytest.raises(ApiFailure) as failure:
        applied(custom, live, thing(replicas=2), "two")
    assert failure.value.code == 409
    assert failure.value.message == 'Apply failed with 1 conflict: conflict with "one": .spec.replicas'
    assert failure.value.details == {
        "causes": [
            {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".spec.replicas"}
        ]
    }


def test_several_conflicts_are_listed_by_manager(custom: CustomSchema) -> None:
    live = applied(custom, None, thing(replicas=1, image="a"))
    with pytest.raises(ApiFailure) as failure:
        applied(custom, live, thing(replicas=2, image="b"), "two")
    expected = 'Apply failed with 2 conflicts: conflicts with "one":\n- .spec.image\n- .spec.replicas'
    assert failure.value.message == expected


def test_an_updater_is_named_with_its_version_and_subresource(custom: CustomSchema) -> None:
    live = track_update(
        None,
        thing(replicas=1),
        manager="kubectl",
        schema=custom,
        api_version="example.com/v1",
        now=NOW,
        subresource="scale",
    )
    with pytest.raises(
        ApiFailure, match=r'"kubectl" with subresource "scale" using example.com/v1: \.spec\.rep'
    ):
        applied(custom, live, thing(replicas=2))


def test_force_takes_the_field_over(custom: CustomSchema) -> None:
    live = applied(custom, None, thing(replicas=1, image="a"))
    obj = applied(custom, live, thing(replicas=2), "two", force=True)
    assert obj["spec"] == {"replicas": 2, "image": "a"}
    assert entries(obj) == {
        ("one", "Apply", ""): {"f:spec": {"f:image": {}}},
        ("two", "Apply", ""): {"f:spec": {"f:replicas": {}}},
    }


def test_the_same_value_is_shared_and_stays_until_the_last_owner_drops_it(custom: CustomSchema) -> None:
    live = applied(custom, applied(custom, None, thing(replicas=1)), thing(replicas=1), "two")
    once = applied(custom, live, thing())
    assert once["spec"] == {"replicas": 1}
    twice = applied(custom, once, thing(), "two")
    assert "replicas" not in (twice["spec"] or {})


def test_dropping_a_list_item_removes_it_and_leaves_the_others_items(custom: CustomSchema) -> None:
    mine = thing(ports=[{"port": 80}, {"port": 81, "protocol": "UDP"}])
    live = applied(custom, applied(custom, None, mine), thing(ports=[{"port": 82}]), "two")
    obj = applied(custom, live, thing(ports=[{"port": 81, "protocol": "UDP"}]))
    assert [port["port"] for port in obj["spec"]["ports"]] == [81, 82]


def test_a_key_field_with_a_default_identifies_items_that_omit_it(custom: CustomSchema) -> None:
    live = applied(custom, None, thing(ports=[{"port": 80, "protocol": "TCP"}]))
    obj = applied(custom, live, thing(ports=[{"port": 80, "name": "http"}]), "two")
    assert obj["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "name": "http"}]


def test_an_atomic_list_is_one_field(custom: CustomSchema) -> None:
    live = applied(custom, None, thing(atoms=["a"], whole={"a": "b"}))
    with pytest.raises(ApiFailure, match="2 conflicts"):
        applied(custom, live, thing(atoms=["b"], whole={"c": "d"}), "two")


def test_duplicates_in_a_set_are_refused_in_the_servers_words(custom: CustomSchema) -> None:
    with pytest.raises(ApiFailure) as failure:
        applied(custom, None, thing(names=["a", "a"]))
    assert failure.value.message == (
        "failed to create typed patch object (default/a; example.com/v1, Kind=Thing): "
        '.spec.names: duplicate entries for key [="a"]'
    )


def test_managed_fields_in_the_configuration_are_refused(custom: CustomSchema) -> None:
    config = thing()
    config["metadata"]["managedFields"] = []
    with pytest.raises(ApiFailure, match=r"metadata\.managedFields must be nil") as failure:
        applied(custom, None, config)
    assert failure.value.code == 400


def test_applying_the_same_again_returns_the_live_object_itself(custom: CustomSchema) -> None:
    live = applied(custom, None, thing(image="a", names=["x"], ports=[{"port": 1}]))
    again = applied(custom, live, thing(image="a", names=["x"], ports=[{"port": 1}]), now=LATER)
    assert again is live


def test_a_new_owner_of_unchanged_values_gets_an_entry_without_a_time(custom: CustomSchema) -> None:
    live = applied(custom, None, thing(image="a"))
    obj = applied(custom, live, thing(image="a"), "two", now=LATER)
    times = {e["manager"]: e.get("time") for e in obj["metadata"]["managedFields"]}
    assert times == {"one": NOW, "two": None}


def test_an_untracked_object_gets_a_manager_for_what_was_there_before(custom: CustomSchema) -> None:
    live = thing(image="a", replicas=1)
    obj = applied(custom, live, thing(image="a"))
    assert entries(obj)[("before-first-apply", "Update", "")] == {
        "f:spec": {".": {}, "f:image": {}, "f:replicas": {}}
    }


def test_times_move_back_when_nothing_else_moved(custom: CustomSchema) -> None:
    live = applied(custom, None, thing(image="a"))
    moved = {**live, "metadata": {**live["metadata"]}}
    moved["metadata"]["managedFields"] = [{**live["metadata"]["managedFields"][0], "time": LATER}]
    assert keep_times(live, moved) is live
    changed = {**moved, "spec": {"image": "b"}}
    assert keep_times(live, changed) is changed


def test_fields_that_an_endpoint_resets_are_never_owned_through_it(deployment: BuiltinSchema) -> None:
    config = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"replicas": 2},
        "status": {"replicas": 5},
    }
    obj = applied(deployment, None, config, reset=(("status",),))
    assert entries(obj) == {("one", "Apply", ""): {"f:spec": {"f:replicas": {}}}}


def test_the_last_applied_annotation_excuses_kubectls_own_fields(custom: CustomSchema) -> None:
    annotation = "kubectl.kubernetes.io/last-applied-configuration"
    live = thing(replicas=1)
    live["metadata"]["annotations"] = {
        annotation: '{"apiVersion":"example.com/v1","kind":"Thing","metadata":{},"spec":{"replicas":1}}'
    }
    live = track_update(
        None,
        live,
        manager="kubectl-client-side-apply",
        schema=custom,
        api_version="example.com/v1",
        now=NOW,
    )
    obj = applied(custom, live, thing(replicas=2), "kubectl")
    assert obj["spec"]["replicas"] == 2
    assert '"replicas":2' in obj["metadata"]["annotations"][annotation]
    with pytest.raises(ApiFailure, match="kubectl-client-side-apply"):
        applied(custom, live, thing(replicas=2), "somebody")


names = st.sampled_from(["a", "b", "c"])
# Nothing empty: an empty list or map is nobody's field, and goes in odd ways (as in the server).
parts = {
    "image": names,
    "replicas": st.integers(0, 2),
    "labels": st.dictionaries(names, names, min_size=1),
    "whole": st.dictionaries(names, names, min_size=1),
    "atoms": st.lists(names, min_size=1, max_size=2),
    "names": st.lists(names, min_size=1, max_size=3, unique=True),
    "ports": st.lists(
        st.fixed_dictionaries({"port": st.integers(1, 3)}, optional={"name": names}),
        min_size=1,
        max_size=3,
        unique_by=lambda port: port["port"],
    ),
}
specs = st.fixed_dictionaries({"image": names}, optional={k: v for k, v in parts.items() if k != "image"})


@settings(max_examples=60, deadline=None)
@given(first=specs, second=specs, other=specs)
def test_applying_twice_is_a_no_op(
    custom: CustomSchema, first: Object, second: Object, other: Object
) -> None:
    live = applied(custom, None, thing(**first))
    live = applied(custom, live, thing(**other), "two", force=True)
    once = applied(custom, live, thing(**second), force=True, now=LATER)
    assert applied(custom, once, thing(**second), force=True, now=LATER) is once


@settings(max_examples=60, deadline=None)
@given(first=specs, second=specs)
def test_a_single_manager_gets_exactly_what_it_applies(
    custom: CustomSchema, first: Object, second: Object
) -> None:
    live = applied(custom, None, thing(**first))
    obj = applied(custom, live, thing(**second))
    assert obj["spec"] == second
