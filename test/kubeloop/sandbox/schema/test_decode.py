"""A built-in object after its round trip through the server's Go type."""

from __future__ import annotations

from typing import Any

import pytest

from kubeloop.sandbox.schema import BuiltinSchema, builtin
from kubeloop.sandbox.status import ApiFailure

DEPLOYMENT = builtin("Deployment", "apps/v1", "io.k8s.api.apps.v1.Deployment")
LEASE = builtin("Lease", "coordination.k8s.io/v1", "io.k8s.api.coordination.v1.Lease")
ROLE = builtin("Role", "rbac.authorization.k8s.io/v1", "io.k8s.api.rbac.v1.Role")


def deployment(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": spec}


def container(**fields: Any) -> dict[str, Any]:
    return deployment(template={"metadata": {}, "spec": {"containers": [{"name": "c", **fields}]}})


def failure(schema: BuiltinSchema, obj: dict[str, Any]) -> str:
    with pytest.raises(ApiFailure) as caught:
        schema.prune(obj)
    assert caught.value.code == 400
    return caught.value.message


def test_what_go_always_prints_is_there() -> None:
    obj, _ = DEPLOYMENT.prune(container())
    assert obj["status"] == {}
    assert obj["spec"]["strategy"] == {}
    assert obj["spec"]["template"]["spec"]["containers"] == [{"name": "c", "resources": {}}]
    assert ROLE.prune({"metadata": {"name": "a"}})[0]["rules"] is None


def test_nulls_and_empty_optional_values_go() -> None:
    obj, _ = DEPLOYMENT.prune(
        deployment(replicas=0, paused=False, minReadySeconds=None, revisionHistoryLimit=None)
    )
    assert obj["spec"]["replicas"] == 0
    assert not {"paused", "minReadySeconds", "revisionHistoryLimit"} & obj["spec"].keys()


def test_unknown_fields_are_dropped_and_named_in_the_order_of_the_document() -> None:
    body = container(bogus=1)
    body["spec"]["other"] = 2
    obj, unknown = DEPLOYMENT.prune(body)
    assert unknown == ["spec.template.spec.containers[0].bogus", "spec.other"]
    assert "other" not in obj["spec"]


def test_a_decoded_object_decodes_to_itself() -> None:
    once, _ = DEPLOYMENT.prune(container(ports=[{"containerPort": 80}]))
    assert DEPLOYMENT.prune(once)[0] is once


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            deployment(replicas="x"),
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            deployment(replicas=2**40),
            "json: cannot unmarshal number 1099511627776 into Go struct field DeploymentSpec.spec.replicas "
            "of type int32",
        ),
        (
            container(ports=[{"containerPort": "http"}]),
            "json: cannot unmarshal string into Go struct field "
            "ContainerPort.spec.template.spec.containers.ports.containerPort of type int32",
        ),
        (
            container(resources={"limits": {"cpu": "abc"}}),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
    ],
)
def test_wrong_types_are_refused_in_gos_words(body: dict[str, Any], text: str) -> None:
    assert failure(DEPLOYMENT, body) == (
        f'Deployment in version "v1" cannot be handled as a Deployment: {text}'
    )


def test_micro_times_need_six_digits() -> None:
    """bug-reports: a Lease renewed with another precision is refused."""
    spec = {"renewTime": "2026-01-01T00:00:00Z"}
    assert failure(LEASE, {"metadata": {"name": "a"}, "spec": spec}).endswith(
        'parsing time "2026-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": '
        'cannot parse "Z" as ".000000"'
    )


def test_quantities_become_canonical() -> None:
    obj, _ = DEPLOYMENT.prune(container(resources={"limits": {"memory": "1024Mi", "cpu": 0.5}}))
    limits = obj["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"memory": "1Gi", "cpu": "500m"}
