"""The garbage collector, step by step: what kube-controller-manager's does with owners and dependents."""

from __future__ import annotations

from typing import Any

from kubeloop.sandbox import Sandbox

CONFIG_MAPS = "configmaps"


def owner_of(obj: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
        **more,
    }


def config_map(sandbox: Sandbox, name: str, *owners: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    references = {"ownerReferences": list(owners)} if owners else {}
    return sandbox.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **references, **metadata}}
    )


def names(sandbox: Sandbox) -> list[str]:
    return [obj["metadata"]["name"] for obj in sandbox.list(CONFIG_MAPS, "default")]


def test_dependents_follow_their_owner(sandbox: Sandbox) -> None:
    owner = config_map(sandbox, "owner")
    child = config_map(sandbox, "child", owner_of(owner))
    config_map(sandbox, "grandchild", owner_of(child))
    config_map(sandbox, "other")
    sandbox.settle()
    sandbox.delete(CONFIG_MAPS, "owner", "default")
    sandbox.settle()
    assert names(sandbox) == ["other"]


def test_a_dependent_with_another_owner_stays_and_forgets_the_dead_one(sandbox: Sandbox) -> None:
    first, second = config_map(sandbox, "first"), config_map(sandbox, "second")
    config_map(sandbox, "child", owner_of(first), owner_of(second))
    sandbox.delete(CONFIG_MAPS, "first", "default")
    sandbox.settle()
    child = sandbox.get(CONFIG_MAPS, "child", "default")
    assert child is not None
    assert [owner["name"] for owner in child["metadata"]["ownerReferences"]] == ["second"]


def test_an_owner_that_never_was_is_no_owner(sandbox: Sandbox) -> None:
    """The name is there, but its uid is another: the dependent goes."""
    owner = config_map(sandbox, "owner")
    config_map(sandbox, "child", {**owner_of(owner), "uid": "another"})
    sandbox.settle()
    assert names(sandbox) == ["owner"]


def test_an_owner_of_an_unknown_kind_deletes_nothing(sandbox: Sandbox) -> None:
    config_map(sandbox, "child", {"apiVersion": "x.y/v1", "kind": "Z", "name": "a", "uid": "1"})
    sandbox.settle()
    assert names(sandbox) == ["child"]


def test_in_the_foreground_the_owner_waits_for_what_blocks_it(sandbox: Sandbox) -> None:
    owner = config_map(sandbox, "owner")
    config_map(sandbox, "blocking", owner_of(owner, blockOwnerDeletion=True), finalizers=["a.b/c"])
    config_map(sandbox, "free", owner_of(owner), finalizers=["a.b/c"])
    sandbox.delete(CONFIG_MAPS, "owner", "default", propagation="Foreground")
    sandbox.settle()
    assert names(sandbox) == ["blocking", "free", "owner"]
    assert all(obj["metadata"].get("deletionTimestamp") for obj in sandbox.list(CONFIG_MAPS, "default"))
    sandbox.patch(CONFIG_MAPS, "blocking", {"metadata": {"finalizers": None}}, "default")
    sandbox.settle()
    assert names(sandbox) == ["free"]


def test_orphans_stay_without_their_owner(sandbox: Sandbox) -> None:
    owner = config_map(sandbox, "owner")
    config_map(sandbox, "child", owner_of(owner))
    sandbox.delete(CONFIG_MAPS, "owner", "default", propagation="Orphan")
    sandbox.settle()
    (child,) = sandbox.list(CONFIG_MAPS, "default")
    assert "ownerReferences" not in child["metadata"]


def test_a_child_that_is_created_after_its_owner_died_goes_too(sandbox: Sandbox) -> None:
    owner = config_map(sandbox, "owner")
    sandbox.delete(CONFIG_MAPS, "owner", "default")
    sandbox.settle()
    config_map(sandbox, "late", owner_of(owner))
    sandbox.settle()
    assert names(sandbox) == []
