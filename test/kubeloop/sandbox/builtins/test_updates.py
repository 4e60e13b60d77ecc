"""What an update of a built-in object may not change, and what it takes along."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kubeloop.sandbox.builtins import INFOS

INFO = {info.plural: info for info in INFOS}
NOW = datetime(2026, 1, 1, tzinfo=UTC)
Object = dict[str, Any]


def stored(plural: str, **fields: Any) -> Object:
    info = INFO[plural]
    body = {
        "apiVersion": info.api_version,
        "kind": info.kind,
        "metadata": {"name": "a", "namespace": "default"},
    }
    obj, _ = info.schema.prune({**body, **fields})
    return info.strategy.prepare_create(info.strategy.defaults(info.schema.default(obj)), NOW)


def updated(plural: str, old: Object, **fields: Any) -> Object:
    strategy = INFO[plural].strategy
    return strategy.prepare_update(strategy.defaults({**old, **fields}), old)


def causes(plural: str, old: Object, **fields: Any) -> list[tuple[str, str]]:
    found = INFO[plural].strategy.validate_update(updated(plural, old, **fields), old)
    return [(cause.field, cause.message) for cause in found]


def deployment() -> Object:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return stored("deployments", spec={"selector": {"matchLabels": {"a": "b"}}, "template": template})


def test_a_deployments_selector_is_immutable() -> None:
    """bug-reports 13: a changed selector is refused, not applied."""
    old = deployment()
    labels = {"a": "b", "c": "d"}
    template = {**old["spec"]["template"], "metadata": {"labels": labels}}
    spec = {**old["spec"], "selector": {"matchLabels": labels}, "template": template}
    assert causes("deployments", old, spec=spec) == [
        ("spec.selector", 'Invalid value: {"matchLabels":{"a":"b","c":"d"}}: field is immutable')
    ]


def test_a_deployments_generation_moves_with_spec_and_annotations_only() -> None:
    old = deployment()
    strategy = INFO["deployments"].strategy
    assert strategy.has_generation()
    assert not strategy.generation_moves(old, old)
    relabelled = {**old, "metadata": {**old["metadata"], "labels": {"x": "y"}}}
    annotated = {**old, "metadata": {**old["metadata"], "annotations": {"x": "y"}}}
    scaled = {**old, "spec": {**old["spec"], "replicas": 5}}
    moves = [strategy.generation_moves(new, old) for new in (relabelled, annotated, scaled)]
    assert moves == [False, True, True]


def test_the_main_resource_leaves_status_and_status_leaves_spec_and_labels() -> None:
    old = {**deployment(), "status": {"replicas": 1}}
    assert updated("deployments", old, status={"replicas": 9})["status"] == {"replicas": 1}
    strategy = INFO["deployments"].strategy
    written = {
        **old,
        "spec": {},
        "status": {"replicas": 2},
        "metadata": {**old["metadata"], "labels": {"x": "y"}},
    }
    result = strategy.prepare_status_update(written, old)
    assert (result["spec"], result["status"]) == (old["spec"], {"replicas": 2})
    assert "labels" not in result["metadata"]


def test_status_counts_cannot_exceed_the_replicas() -> None:
    old = deployment()
    status = {"replicas": 1, "readyReplicas": 2, "availableReplicas": -1}
    found = INFO["deployments"].strategy.validate_status_update({**old, "status": status}, old)
    assert [(cause.field, cause.message) for cause in found] == [
        ("status.availableReplicas", "Invalid value: -1: must be greater than or equal to 0"),
        ("status.readyReplicas", "Invalid value: 2: cannot be greater than status.replicas"),
    ]


def test_an_immutable_secret_or_config_map_stays_as_it_is() -> None:
    frozen = "Forbidden: field is immutable when `immutable` is set"
    secret = stored("secrets", data={"a": "Yg=="}, immutable=True)
    assert causes("secrets", secret, data={"a": "Yw=="}) == [("data", frozen)]
    assert causes("secrets", secret, immutable=False) == [("immutable", frozen)]
    config = stored("configmaps", data={"a": "b"}, immutable=True)
    assert causes("configmaps", config, data={}) == [("data", frozen)]


def test_a_secrets_type_is_immutable() -> None:
    assert causes("secrets", stored("secrets"), type="x") == [
        ("type", 'Invalid value: "x": field is immutable')
    ]


def test_a_role_reference_cannot_be_changed() -> None:
    old = stored("rolebindings", roleRef={"kind": "Role", "name": "x"})
    (found,) = causes("rolebindings", old, roleRef={"kind": "Role", "name": "y"})
    shown = '{"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"y"}'
    assert found == ("roleRef", f"Invalid value: {shown}: cannot change roleRef")


def test_a_service_keeps_its_address_and_cannot_choose_another() -> None:
    old = stored("services", spec={"ports": [{"port": 80}], "selector": {"a": "b"}})
    bare = {"ports": [{"port": 81}], "selector": {"a": "b"}}
    assert updated("services", old, spec=bare)["spec"]["clusterIP"] == old["spec"]["clusterIP"]
    moved = {**old["spec"], "clusterIP": "10.0.0.99"}
    assert causes("services", old, spec=moved) == [
        ("spec.clusterIPs[0]", 'Invalid value: ["10.0.0.99"]: may not change once set')
    ]


def test_a_service_that_becomes_an_alias_gives_its_address_up() -> None:
    old = stored("services", spec={"ports": [{"port": 80}]})
    alias = {**old["spec"], "type": "ExternalName", "externalName": "x.y"}
    spec = updated("services", old, spec=alias)["spec"]
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "internalTrafficPolicy"} & spec.keys()


def test_string_data_of_a_secret_lands_in_data() -> None:
    assert stored("secrets", stringData={"a": "c"})["data"] == {"a": "Yw=="}


def test_a_namespace_is_labelled_with_its_name_whatever_a_client_says() -> None:
    labels = {"kubernetes.io/metadata.name": "x"}
    obj = updated("namespaces", stored("namespaces"), metadata={"name": "a", "labels": labels})
    assert obj["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a"}


@pytest.mark.parametrize(
    "plural", ["configmaps", "secrets", "events", "leases", "namespaces", "services", "roles"]
)
def test_metadata_only_kinds_have_no_generation(plural: str) -> None:
    assert not INFO[plural].strategy.has_generation()
