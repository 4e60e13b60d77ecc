"""Discovery and OpenAPI documents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubeloop.sandbox.builtins import INFOS
from kubeloop.sandbox.crd import infos
from kubeloop.sandbox.discovery import document
from kubeloop.sandbox.discovery.groups import version_rank
from kubeloop.sandbox.discovery.swagger import encode
from kubeloop.sandbox.registry import Registry

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


@pytest.fixture(scope="module")
def registry() -> Registry:
    schema = {
        "type": "object",
        "description": "A web app.",
        "properties": {
            "spec": {"type": "object", "properties": {"port": {"x-kubernetes-int-or-string": True}}}
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"plural": "webapps", "kind": "WebApp", "shortNames": ["wa"], "categories": ["all"]}
    crd = {"spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}}
    return Registry([*INFOS, *infos(crd)])


def get(registry: Registry, path: str, accept: str = "application/json") -> Any:
    found = document(registry, path, accept)
    assert found is not None
    return json.loads(found[0])


def test_aggregated_discovery_lists_every_resource_once(registry: Registry) -> None:
    found = document(registry, "/apis", AGGREGATED)
    assert found is not None
    assert found[1] == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    groups = {item["metadata"]["name"]: item["versions"] for item in json.loads(found[0])["items"]}
    (webapps,) = groups["example.com"][0]["resources"]
    assert webapps["shortNames"] == ["wa"]
    assert webapps["categories"] == ["all"]
    assert [sub["subresource"] for sub in webapps["subresources"]] == ["status"]
    deployments = groups["apps"][0]["resources"][0]
    scale = deployments["subresources"][0]
    assert scale["responseKind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}


def test_the_first_acceptable_form_wins(registry: Registry) -> None:
    assert get(registry, "/apis")["kind"] == "APIGroupList"
    assert get(registry, "/api")["kind"] == "APIVersions"
    assert get(registry, "/apis", "application/json," + AGGREGATED)["kind"] == "APIGroupList"
    assert get(registry, "/api", AGGREGATED)["kind"] == "APIGroupDiscoveryList"


def test_legacy_documents(registry: Registry) -> None:
    listed = get(registry, "/apis/apps/v1")["resources"]
    assert {"deployments", "deployments/scale", "deployments/status", "replicasets"} <= {
        r["name"] for r in listed
    }
    assert get(registry, "/apis/example.com")["preferredVersion"]["groupVersion"] == "example.com/v1"
    assert get(registry, "/api/v1")["groupVersion"] == "v1"
    assert document(registry, "/apis/nope", "") is None
    assert document(registry, "/apis/apps/v9", "") is None
    assert document(registry, "/somewhere", "") is None


def test_openapi_of_a_crd_says_what_kubectl_needs(registry: Registry) -> None:
    url = get(registry, "/openapi/v3")["paths"]["apis/example.com/v1"]["serverRelativeURL"]
    assert url.startswith("/openapi/v3/apis/example.com/v1?hash=")
    doc = get(registry, "/openapi/v3/apis/example.com/v1")
    schema = doc["components"]["schemas"]["com.example.v1.WebApp"]
    assert schema["description"] == "A web app."
    assert schema["x-kubernetes-group-version-kind"] == [
        {"group": "example.com", "kind": "WebApp", "version": "v1"}
    ]
    port = schema["properties"]["spec"]["properties"]["port"]
    assert port["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    patch = doc["paths"]["/apis/example.com/v1/namespaces/{namespace}/webapps/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"]["kind"] == "WebApp"
    assert "fieldValidation" in {parameter["name"] for parameter in patch["parameters"]}
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]


def test_every_reference_of_a_document_leads_somewhere(registry: Registry) -> None:
    for path in ("api/v1", "apis/apps/v1", "apis/example.com/v1", "apis/apiextensions.k8s.io/v1"):
        found = document(registry, f"/openapi/v3/{path}", "")
        assert found is not None
        text = found[0].decode()
        schemas = json.loads(text)["components"]["schemas"]
        wanted = {part.split('"')[0] for part in text.split('"$ref":"#/components/schemas/')[1:]}
        assert wanted <= schemas.keys()
        assert "x-go" not in text


def test_descriptions_are_published(registry: Registry) -> None:
    schemas = get(registry, "/openapi/v3/apis/apps/v1")["components"]["schemas"]
    spec = schemas["io.k8s.api.apps.v1.DeploymentSpec"]
    assert spec["properties"]["replicas"]["description"].startswith("Number of desired pods.")


def test_openapi_v2_comes_in_the_form_that_is_named_first(registry: Registry) -> None:
    assert get(registry, "/openapi/v2")["swagger"] == "2.0"
    protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    for accept in (protobuf, f"{protobuf}, application/json"):
        found = document(registry, "/openapi/v2", accept)
        assert found is not None
        assert found[0].startswith(b"\n\x032.0\x12")
        assert found[1] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    found = document(registry, "/openapi/v2", f"application/json, {protobuf}")
    assert found is not None
    assert found[1] == "application/json"


def test_openapi_v2_in_protobuf_has_the_numbers_of_its_proto_file() -> None:
    """Each number checked by hand against OpenAPIv2.proto."""
    schema = {
        "description": "d",
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"type": "array", "items": {"$ref": "#/definitions/b"}}, "n": {"maxLength": 300}},
        "x-kubernetes-map-type": "atomic",
    }
    text = {"swagger": "2.0", "info": {"title": "t", "version": "v"}, "definitions": {"x": schema}}
    assert encode(text) == (
        b"\n\x032.0\x12\x06\n\x01t\x12\x01vB\x00Jt\nr\n\x01x\x12m"
        b'"\x01d\xb2\x01\x08\n\x06object\x9a\x01\x01a'
        b"\xca\x011\n%\n\x01a\x12 \xb2\x01\x07\n\x05array\xba\x01\x13\n\x11\n\x0f#/definitions/b"
        b"\n\x08\n\x01n\x12\x03X\xac\x02"
        b'\xfa\x01$\n\x15x-kubernetes-map-type\x12\x0b\x12\t"atomic"\n'
    )


def test_the_version_names_the_sandbox(registry: Registry) -> None:
    assert get(registry, "/version")["gitVersion"] == "v1.36.3+sandbox"


def test_versions_are_ordered_as_kubernetes_does() -> None:
    versions = ["v1beta1", "foo", "v2", "v1", "v11alpha2", "v1beta2", "v10"]
    assert sorted(versions, key=version_rank) == ["v10", "v2", "v1", "v1beta2", "v1beta1", "v11alpha2", "foo"]
