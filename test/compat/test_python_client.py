"""The official Python client, unmodified: typed APIs, dynamic client, watches, informer, leader election."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubernetes import client, config, dynamic, watch
from kubernetes.client import ApiClient, ApiException
from kubernetes.informer import SharedInformer
from kubernetes.leaderelection.electionconfig import Config
from kubernetes.leaderelection.leaderelection import LeaderElection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

PATIENCE = 30.0
"""Seconds that what happens on its own has to happen."""
GROUP = ("compat.example.com", "v1")


@pytest.fixture
def server(own_server: Any) -> Any:
    """One for each test: this client leaves connections and watches open, which end with the server."""
    return own_server


@pytest.fixture
def api(server: Any) -> Iterator[ApiClient]:
    connected = config.new_client_from_config(str(server.kubeconfig))
    yield connected
    connected.rest_client.pool_manager.clear()


@pytest.fixture
def core(api: ApiClient) -> Any:
    return client.CoreV1Api(api)


def greeting(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "compat.example.com/v1",
        "kind": "Greeting",
        "metadata": {"name": name},
        "spec": {"text": "hi", **spec},
    }


def config_map(name: str, **data: str) -> Any:
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data=data)


def until(holds: Callable[[], Any]) -> None:
    pause = threading.Event()
    for _ in range(int(PATIENCE / 0.05)):
        if holds():
            return
        pause.wait(0.05)
    pytest.fail(f"not true within {PATIENCE:.0f} s")


def test_the_server_says_its_version(api: ApiClient) -> None:
    assert client.VersionApi(api).get_code().git_version.startswith("v1.36")
    groups = client.ApisApi(api).get_api_versions().groups
    assert "apps" in [group.name for group in groups]
    names = [resource.name for resource in client.CoreV1Api(api).get_api_resources().resources]
    assert "configmaps" in names


def test_typed_objects_are_created_read_replaced_patched_and_deleted(core: Any) -> None:
    made = core.create_namespaced_config_map("default", config_map("typed", a="1"))
    assert made.metadata.creation_timestamp.tzinfo is not None
    assert [field.manager for field in made.metadata.managed_fields] == ["OpenAPI-Generator"]
    made.data["b"] = "2"
    replaced = core.replace_namespaced_config_map("typed", "default", made)
    assert int(replaced.metadata.resource_version) > int(made.metadata.resource_version)
    with pytest.raises(ApiException) as stale:
        core.replace_namespaced_config_map("typed", "default", made)
    assert (stale.value.status, stale.value.reason) == (409, "Conflict")
    patched = core.patch_namespaced_config_map("typed", "default", {"data": {"a": None}})
    assert patched.data == {"b": "2"}
    patched = core.patch_namespaced_config_map(
        "typed", "default", [{"op": "add", "path": "/data/c", "value": "3"}]
    )
    assert patched.data == {"b": "2", "c": "3"}
    assert core.delete_namespaced_config_map("typed", "default")["status"] == "Success"
    with pytest.raises(ApiException) as gone:
        core.read_namespaced_config_map("typed", "default")
    assert gone.value.status == 404


def test_lists_are_read_by_selector_and_by_page(core: Any) -> None:
    for number in range(5):
        made = config_map(f"page-{number}")
        made.metadata.labels = {"paged": "yes"}
        core.create_namespaced_config_map("default", made)
    first = core.list_namespaced_config_map("default", label_selector="paged=yes", limit=2)
    assert len(first.items) == 2
    assert first.metadata.remaining_item_count is None  # not counted with a selector
    rest = core.list_namespaced_config_map(
        "default", label_selector="paged=yes", limit=10, _continue=first.metadata._continue
    )
    assert len(rest.items) == 3
    one = core.list_namespaced_config_map("default", field_selector="metadata.name=page-3")
    assert [item.metadata.name for item in one.items] == ["page-3"]
    core.delete_collection_namespaced_config_map("default", label_selector="paged=yes")
    assert not core.list_namespaced_config_map("default", label_selector="paged=yes").items


def test_a_deployment_rolls_out(api: ApiClient) -> None:
    apps = client.AppsV1Api(api)
    labels = {"app": "python"}
    wanted = client.V1Deployment(
        metadata=client.V1ObjectMeta(name="python"),
        spec=client.V1DeploymentSpec(
            replicas=2,
            selector=client.V1LabelSelector(match_labels=labels),
            template=client.V1PodTemplateSpec(
                metadata=client.V1ObjectMeta(labels=labels),
                spec=client.V1PodSpec(containers=[client.V1Container(name="web", image="nginx:1.27")]),
            ),
        ),
    )
    made = apps.create_namespaced_deployment("default", wanted)
    assert made.spec.strategy.rolling_update.max_surge == "25%"
    until(lambda: apps.read_namespaced_deployment_status("python", "default").status.available_replicas == 2)
    scaled = apps.patch_namespaced_deployment_scale("python", "default", {"spec": {"replicas": 1}})
    assert scaled.spec.replicas == 1
    apps.delete_namespaced_deployment("python", "default", propagation_policy="Foreground")
    until(lambda: not apps.list_namespaced_replica_set("default").items)


def test_custom_objects_and_their_status(api: ApiClient) -> None:
    custom = client.CustomObjectsApi(api)
    where = (*GROUP, "default", "greetings")
    made = custom.create_namespaced_custom_object(*where, greeting("custom"))
    assert made["spec"]["replicas"] == 1
    custom.patch_namespaced_custom_object_status(*where, "custom", {"status": {"said": "hi"}})
    assert custom.get_namespaced_custom_object(*where, "custom")["status"] == {"said": "hi"}
    with pytest.raises(ApiException) as refused:
        custom.create_namespaced_custom_object(*where, greeting("wrong", text=""))
    assert refused.value.status == 422
    assert [
        item["metadata"]["name"] for item in custom.list_cluster_custom_object(*GROUP, "greetings")["items"]
    ]
    custom.delete_namespaced_custom_object(*where, "custom")


def test_the_dynamic_client_discovers_applies_and_watches(server: Any, api: ApiClient) -> None:
    untyped = dynamic.DynamicClient(api, cache_file=str(server.folder / "discovery.json"))
    greetings = untyped.resources.get(api_version="compat.example.com/v1", kind="Greeting")
    assert greetings.short_names == ["gr"]
    applied = greetings.server_side_apply(
        body=greeting("dynamic"), namespace="default", field_manager="python", force_conflicts=True
    )
    assert applied.metadata.managedFields[0].operation == "Apply"
    seen = []
    watching = greetings.watch(
        namespace="default", resource_version=applied.metadata.resourceVersion, timeout=5
    )
    greetings.patch(
        body={"spec": {"text": "ho"}},
        name="dynamic",
        namespace="default",
        content_type="application/merge-patch+json",
    )
    for event in watching:
        seen.append((event["type"], event["object"].spec.text))
        break
    assert seen == [("MODIFIED", "ho")]
    greetings.delete(name="dynamic", namespace="default")


def test_a_watch_resumes_and_starts_anew_when_its_version_is_too_old(server: Any, core: Any) -> None:
    start = core.list_namespaced_config_map("default").metadata.resource_version
    core.create_namespaced_config_map("default", config_map("watched", a="1"))
    core.patch_namespaced_config_map("watched", "default", {"data": {"a": "2"}})
    core.delete_namespaced_config_map("watched", "default")
    seen = []
    stream = watch.Watch()
    for event in stream.stream(
        core.list_namespaced_config_map, "default", resource_version=start, timeout_seconds=5
    ):
        seen.append((event["type"], event["object"].data["a"]))
        if len(seen) == 3:
            stream.stop()
    assert seen == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")]
    server.sandbox.compact()
    with pytest.raises(ApiException) as expired:
        for _ in watch.Watch().stream(
            core.list_namespaced_config_map, "default", resource_version=start, timeout_seconds=5
        ):
            pass
    assert expired.value.status == 410


def test_the_informer_keeps_its_cache_in_step(core: Any) -> None:
    seen: list[tuple[str, str]] = []
    informer = SharedInformer(core.list_namespaced_config_map, namespace="default")
    for kind in ("ADDED", "MODIFIED", "DELETED"):
        informer.add_event_handler(kind, lambda item, kind=kind: seen.append((kind, item.metadata.name)))
    core.create_namespaced_config_map("default", config_map("earlier"))
    informer.start()
    try:
        until(lambda: ("ADDED", "earlier") in seen)
        core.create_namespaced_config_map("default", config_map("informed", a="1"))
        until(lambda: ("ADDED", "informed") in seen)
        core.patch_namespaced_config_map("informed", "default", {"data": {"a": "2"}})
        until(lambda: ("MODIFIED", "informed") in seen)
        assert informer.cache.get_by_key("default/informed").data == {"a": "2"}
        core.delete_namespaced_config_map("informed", "default")
        until(lambda: ("DELETED", "informed") in seen)
        assert informer.cache.get_by_key("default/informed") is None
    finally:
        informer.stop()
        core.delete_namespaced_config_map("earlier", "default")  # it looks for stop after an event


def test_a_lease_is_held_by_one_of_two(api: ApiClient) -> None:
    def candidate(name: str) -> LeaderElection:
        lock = LeaseLock("election", "default", name)
        lock.api_instance = client.CoordinationV1Api(api)
        times = {"lease_duration": 17, "renew_deadline": 15, "retry_period": 5}
        return LeaderElection(Config(lock, onstarted_leading=lambda: None, onstopped_leading=None, **times))

    first, second = candidate("first"), candidate("second")
    assert first.try_acquire_or_renew() is True
    assert second.try_acquire_or_renew() is False
    assert first.try_acquire_or_renew() is True
    lease = client.CoordinationV1Api(api).read_namespaced_lease("election", "default")
    assert lease.spec.holder_identity == "first"
    assert lease.spec.renew_time > lease.spec.acquire_time
