"""Namespaces and CRDs on their way in and out."""

from __future__ import annotations

from typing import Any

import pytest

from kubeloop.sandbox import Sandbox, SandboxError

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
WEBAPPS = "webapps.example.com"


def webapp(name: str, namespace: str = "default", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "WebApp",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"image": "nginx"},
    }


def conditions(obj: dict[str, Any] | None) -> dict[str, tuple[str, str]]:
    assert obj is not None
    return {c["type"]: (c["status"], c["reason"]) for c in obj["status"].get("conditions", [])}


def namespace(sandbox: Sandbox, name: str) -> None:
    sandbox.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def test_the_usual_namespaces_are_there_and_stay(sandbox: Sandbox) -> None:
    found = [obj["metadata"]["name"] for obj in sandbox.list("namespaces")]
    assert found == ["default", "kube-node-lease", "kube-public", "kube-system"]
    with pytest.raises(SandboxError, match="this namespace may not be deleted"):
        sandbox.delete("namespaces", "default")


def test_an_empty_namespace_goes_at_once(sandbox: Sandbox) -> None:
    namespace(sandbox, "tmp")
    answer = sandbox.delete("namespaces", "tmp")
    assert answer["status"]["phase"] == "Terminating"
    sandbox.settle()
    assert sandbox.get("namespaces", "tmp") is None


def test_a_namespace_waits_for_the_finalizers_in_it(sandbox: Sandbox) -> None:
    namespace(sandbox, "tmp")
    sandbox.apply(webapp("a", "tmp", finalizers=["a.b/c"]))
    sandbox.apply(webapp("b", "tmp"))
    sandbox.delete("namespaces", "tmp")
    sandbox.settle()
    waiting = sandbox.get("namespaces", "tmp")
    assert conditions(waiting)["NamespaceFinalizersRemaining"] == ("True", "SomeFinalizersRemain")
    assert waiting is not None
    assert "Some resources are remaining: webapps.example.com has 1 resource instances" in str(
        waiting["status"]["conditions"]
    )
    sandbox.patch(WEBAPPS, "a", {"metadata": {"finalizers": None}}, "tmp")
    sandbox.settle()
    assert sandbox.get("namespaces", "tmp") is None


def test_nothing_is_created_in_a_namespace_that_goes(sandbox: Sandbox) -> None:
    namespace(sandbox, "tmp")
    sandbox.apply(webapp("a", "tmp", finalizers=["a.b/c"]))
    sandbox.delete("namespaces", "tmp")
    with pytest.raises(SandboxError) as caught:
        sandbox.apply(webapp("b", "tmp"))
    assert caught.value.code == 403
    assert caught.value.status["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace tmp is being terminated",
            "field": "metadata.namespace",
        }
    ]


def test_a_definition_is_established_and_served(sandbox: Sandbox) -> None:
    definition = sandbox.get(CRDS, WEBAPPS)
    assert definition is not None
    assert conditions(definition) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    assert definition["status"]["storedVersions"] == ["v1"]
    assert definition["status"]["acceptedNames"]["plural"] == "webapps"


def test_taken_names_are_not_accepted(sandbox: Sandbox) -> None:
    definition = sandbox.get(CRDS, WEBAPPS)
    assert definition is not None
    spec = {**definition["spec"], "names": {"plural": "others", "kind": "WebApp"}}
    other = {
        "apiVersion": definition["apiVersion"],
        "kind": definition["kind"],
        "metadata": {"name": "others.example.com"},
        "spec": spec,
    }
    sandbox.create(other)
    sandbox.settle()
    found = sandbox.get(CRDS, "others.example.com")
    assert conditions(found)["NamesAccepted"][0] == "False"
    assert conditions(found)["Established"] == ("False", "NotAccepted")


def test_a_definition_goes_after_its_objects(sandbox: Sandbox) -> None:
    sandbox.apply(webapp("a", finalizers=["a.b/c"]))
    sandbox.apply(webapp("b"))
    sandbox.delete(CRDS, WEBAPPS)
    sandbox.settle()
    assert [obj["metadata"]["name"] for obj in sandbox.list(WEBAPPS)] == ["a"]
    assert conditions(sandbox.get(CRDS, WEBAPPS))["Terminating"] == ("True", "InstanceDeletionInProgress")
    with pytest.raises(
        SandboxError, match="create not allowed while custom resource definition is terminating"
    ):
        sandbox.create(webapp("c"))
    sandbox.patch(WEBAPPS, "a", {"metadata": {"finalizers": None}}, "default")
    sandbox.settle()
    assert sandbox.get(CRDS, WEBAPPS) is None
    assert sandbox.transport().request("GET", "/apis/example.com/v1/webapps").status == 404


def test_a_definition_can_come_back(sandbox: Sandbox) -> None:
    definition = sandbox.get(CRDS, WEBAPPS)
    assert definition is not None
    sandbox.delete(CRDS, WEBAPPS)
    sandbox.settle()
    sandbox.create({**definition, "metadata": {"name": WEBAPPS}})
    sandbox.settle()
    assert sandbox.apply(webapp("a"))["metadata"]["generation"] == 1
