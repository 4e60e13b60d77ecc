"""Strategic merge patch on pods: keyed lists, directives, orders."""

from __future__ import annotations

from typing import Any

import pytest

from kubeloop.sandbox.patch import strategic_merge_patch
from kubeloop.sandbox.schema import builtin
from kubeloop.sandbox.status import ApiFailure

POD = builtin("Pod", "v1", "io.k8s.api.core.v1.Pod")


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "a", "finalizers": ["x/a", "x/b"]},
        "spec": {"containers": list(containers), **spec},
    }


def merged(live: dict[str, Any], **spec: Any) -> dict[str, Any]:
    result: dict[str, Any] = strategic_merge_patch(live, {"spec": spec}, POD)["spec"]
    return result


def names(spec: dict[str, Any]) -> list[str]:
    return [container["name"] for container in spec["containers"]]


def test_containers_merge_by_name() -> None:
    live = pod({"name": "a", "image": "1"}, {"name": "b", "image": "2"})
    spec = merged(live, containers=[{"name": "b", "image": "3"}])
    assert spec["containers"] == [{"name": "a", "image": "1"}, {"name": "b", "image": "3"}]


def test_lists_without_a_strategy_are_replaced() -> None:
    live = pod({"name": "a", "args": ["1", "2"]})
    assert merged(live, containers=[{"name": "a", "args": ["3"]}])["containers"][0]["args"] == ["3"]


def test_delete_removes_one_item() -> None:
    live = pod({"name": "a"}, {"name": "b"})
    assert names(merged(live, containers=[{"name": "a", "$patch": "delete"}])) == ["b"]


def test_replace_drops_what_is_not_in_the_patch() -> None:
    live = pod({"name": "a"}, {"name": "b"})
    assert names(merged(live, containers=[{"$patch": "replace"}, {"name": "c"}])) == ["c"]


def test_a_map_can_be_replaced_or_deleted() -> None:
    live = pod(nodeSelector={"a": "b"})
    assert merged(live, nodeSelector={"$patch": "replace", "c": "d"})["nodeSelector"] == {"c": "d"}
    assert merged(live, nodeSelector={"$patch": "delete"})["nodeSelector"] == {}


def test_an_unknown_directive_fails_as_in_the_real_server() -> None:
    with pytest.raises(ApiFailure) as failure:
        merged(pod(nodeSelector={"a": "b"}), nodeSelector={"$patch": "bogus"})
    assert failure.value.code == 500
    assert failure.value.message == "unknown patch type: bogus in map: map[$patch:bogus]"


def test_set_element_order_reorders() -> None:
    live = pod({"name": "a"}, {"name": "b"}, {"name": "c"})
    order = {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}
    spec = merged(live, **order, containers=[{"name": "a", "image": "x"}])
    assert names(spec) == ["b", "c", "a"]


def test_retain_keys_drops_the_other_keys() -> None:
    live = pod(volumes=[{"name": "v", "emptyDir": {}}])
    patch = {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}
    assert merged(live, volumes=[patch])["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]


def test_primitive_lists_merge_and_delete() -> None:
    live = pod()
    patch = {"metadata": {"finalizers": ["x/c"], "$deleteFromPrimitiveList/finalizers": ["x/a"]}}
    assert set(strategic_merge_patch(live, patch, POD)["metadata"]["finalizers"]) == {"x/b", "x/c"}


def test_null_deletes_and_is_dropped_from_what_is_new() -> None:
    live = pod(nodeName="n")
    spec = merged(live, nodeName=None, securityContext={"runAsUser": None, "fsGroup": 1})
    assert spec == {"containers": [], "securityContext": {"fsGroup": 1}}


def test_a_keyed_item_without_its_key_is_refused() -> None:
    with pytest.raises(ApiFailure, match="does not contain declared merge key: name"):
        merged(pod({"name": "a"}), containers=[{"image": "x"}])
