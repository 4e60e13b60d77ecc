"""Names, served resources and the limits of what is simulated."""

from __future__ import annotations

from typing import Any

import pytest

from kubeloop.sandbox.crd import accept, default_crd, established, infos, name_conditions
from kubeloop.sandbox.status import ApiFailure

NOW = "2026-01-01T00:00:00Z"


def crd(plural: str = "webapps", kind: str = "WebApp", **version: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object"}}}
    v1 = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
    return default_crd(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": plural, "kind": kind, "shortNames": ["wa"]},
                "versions": [v1],
            },
            "status": {
                "conditions": None,
                "acceptedNames": {"plural": "", "kind": ""},
                "storedVersions": ["v1"],
            },
        }
    )


def accepted(obj: dict[str, Any], *others: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "status": name_conditions(obj, others, NOW)}


def test_free_names_make_a_crd_established() -> None:
    done = accepted(crd())
    assert established(done)
    assert done["status"]["acceptedNames"]["listKind"] == "WebAppList"
    reasons = [condition["reason"] for condition in done["status"]["conditions"]]
    assert reasons == ["NoConflicts", "InitialNamesAccepted"]


def test_names_that_another_crd_of_the_group_holds_are_not_accepted() -> None:
    second = accepted(crd("others"), accepted(crd()))
    assert not established(second)
    names, conditions = second["status"]["acceptedNames"], second["status"]["conditions"]
    assert names == {"plural": "others", "kind": ""}
    assert conditions[0]["reason"] == "ListKindConflict"
    assert conditions[0]["message"] == '"WebAppList" is already in use'


def test_conditions_keep_their_transition_time_while_they_hold() -> None:
    done = accepted(crd())
    again = name_conditions(done, [], "2027-01-01T00:00:00Z")
    assert [c["lastTransitionTime"] for c in again["conditions"]] == [NOW, NOW]


def test_one_resource_is_served_per_served_version() -> None:
    obj = crd(
        subresources={
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
        }
    )
    obj["spec"]["versions"].append(
        {**obj["spec"]["versions"][0], "name": "v2", "storage": False, "served": False}
    )
    (info,) = infos(accepted(obj))
    assert (info.api_version, info.plural, info.kind, info.short_names) == (
        "example.com/v1",
        "webapps",
        "WebApp",
        ("wa",),
    )
    assert info.subresources == {"status", "scale"}
    assert info.strategy.status_subresource


def test_a_number_that_scale_will_read_must_not_be_negative() -> None:
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    (info,) = infos(accepted(crd(subresources={"scale": scale})))
    (cause,) = info.strategy.validate_create({"metadata": {"name": "a"}, "spec": {"replicas": -1}})
    assert cause.field == ".spec.replicas"
    assert cause.message == "Invalid value: -1: should be a non-negative integer"


def test_cel_rules_without_the_library_are_refused_instead_of_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kubeloop.sandbox.cel.find_spec", lambda _name: None)
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": "true"}]}
    with pytest.raises(ApiFailure, match="install the extra 'sandbox'") as failure:
        accept(crd(schema={"openAPIV3Schema": schema}))
    assert failure.value.code == 501
