"""Managers of every other write: creates, updates, patches."""

from __future__ import annotations

from typing import Any

from kubeloop.sandbox.apply import apply, track_update
from kubeloop.sandbox.schema import BuiltinSchema, CustomSchema

NOW = "2026-01-01T00:00:00Z"
LATER = "2026-01-02T00:00:00Z"
Object = dict[str, Any]


def thing(**spec: Any) -> Object:
    metadata = {"name": "a", "namespace": "default", "uid": "1"}
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata, "spec": spec}


def tracked(
    schema: CustomSchema, old: Object | None, new: Object, manager: str, now: str = NOW, **more: Any
) -> Object:
    return track_update(
        old, new, manager=manager, schema=schema, api_version=schema.api_version, now=now, **more
    )


def written(old: Object, **spec: Any) -> Object:
    return {**old, "spec": spec}


def entries(obj: Object) -> dict[str, tuple[Any, str]]:
    return {e["manager"]: (e["fieldsV1"], e["time"]) for e in obj["metadata"].get("managedFields", [])}


def test_a_create_owns_everything_it_sets(custom: CustomSchema) -> None:
    obj = tracked(custom, None, thing(image="a", labels={"x": "y"}), "one")
    owned = {"f:spec": {".": {}, "f:image": {}, "f:labels": {".": {}, "f:x": {}}}}
    assert entries(obj) == {"one": (owned, NOW)}


def test_an_update_moves_only_what_it_changed(custom: CustomSchema) -> None:
    first = tracked(custom, None, thing(image="a", replicas=1), "one")
    second = tracked(custom, first, written(first, image="b", replicas=1), "two", LATER)
    assert entries(second) == {
        "one": ({"f:spec": {".": {}, "f:replicas": {}}}, NOW),
        "two": ({"f:spec": {"f:image": {}}}, LATER),
    }


def test_an_update_that_changes_nothing_moves_no_time(custom: CustomSchema) -> None:
    first = tracked(custom, None, thing(image="a"), "one")
    assert tracked(custom, first, written(first, image="a"), "one", LATER) == first


def test_a_manager_whose_last_field_goes_is_forgotten(custom: CustomSchema) -> None:
    first = tracked(custom, None, thing(image="a"), "one")
    second = tracked(custom, first, written(first, image="a", replicas=1), "two")
    third = tracked(custom, second, written(second, image="a"), "three")
    assert list(entries(third)) == ["one"]


def test_a_client_that_forgets_managed_fields_does_not_delete_them(custom: CustomSchema) -> None:
    first = tracked(custom, None, thing(image="a"), "one")
    bare = written(first, image="a")
    bare["metadata"] = {k: v for k, v in bare["metadata"].items() if k != "managedFields"}
    assert entries(tracked(custom, first, bare, "two")) == entries(first)


def test_an_empty_list_resets_managed_fields(custom: CustomSchema) -> None:
    first = tracked(custom, None, thing(image="a"), "one")
    reset = {**first, "metadata": {**first["metadata"], "managedFields": []}}
    assert "managedFields" not in tracked(custom, first, reset, "two")["metadata"]


def test_more_than_ten_updaters_are_folded_together(custom: CustomSchema) -> None:
    obj = tracked(custom, None, thing(labels={"m0": "x"}), "m0", "2026-01-01T00:00:00Z")
    for number in range(1, 12):
        labels = {**obj["spec"]["labels"], f"m{number}": "x"}
        now = f"2026-01-01T00:00:{number:02d}Z"
        obj = tracked(custom, obj, written(obj, labels=labels), f"m{number}", now)
    managers = entries(obj)
    assert len(managers) == 10
    assert "ancient-changes" in managers
    assert "m11" in managers


def test_a_built_in_struct_is_not_owned_as_such(deployment: BuiltinSchema) -> None:
    """Custom resources have f:spec with a dot; structs of built-in kinds always exist."""
    body, _ = deployment.prune(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "a", "namespace": "default"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}},
        }
    )
    obj = track_update(None, body, manager="one", schema=deployment, api_version="apps/v1", now=NOW)
    assert entries(obj)["one"][0] == {"f:spec": {"f:replicas": {}, "f:selector": {}}}


def test_an_update_takes_fields_from_appliers_without_asking(custom: CustomSchema) -> None:
    live = apply(
        None,
        thing(image="a"),
        manager="applier",
        force=False,
        schema=custom,
        api_version="example.com/v1",
        now=NOW,
    )
    obj = tracked(custom, live, written(live, image="b"), "one")
    assert list(entries(obj)) == ["one"]
