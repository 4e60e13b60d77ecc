"""Resource paths."""

from __future__ import annotations

import pytest

from kubeloop.model import Resource

WEBAPPS = Resource("example.com", "v1", "webapps", "WebApp")
SERVICES = Resource("", "v1", "services", "Service")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)


@pytest.mark.parametrize(
    ("resource", "arguments", "path"),
    [
        (WEBAPPS, {}, "/apis/example.com/v1/webapps"),
        (WEBAPPS, {"namespace": "a"}, "/apis/example.com/v1/namespaces/a/webapps"),
        (WEBAPPS, {"namespace": "a", "name": "b"}, "/apis/example.com/v1/namespaces/a/webapps/b"),
        (
            WEBAPPS,
            {"namespace": "a", "name": "b", "subresource": "status"},
            "/apis/example.com/v1/namespaces/a/webapps/b/status",
        ),
        (SERVICES, {"namespace": "a", "name": "b"}, "/api/v1/namespaces/a/services/b"),
        (NODES, {"name": "n"}, "/api/v1/nodes/n"),
        (NODES, {"name": "a/../b?c#d"}, "/api/v1/nodes/a%2F..%2Fb%3Fc%23d"),
    ],
)
def test_a_path_names_group_namespace_object_and_subresource(
    resource: Resource, arguments: dict[str, str], path: str
) -> None:
    assert resource.path(**arguments) == path


@pytest.mark.parametrize(
    ("resource", "arguments"),
    [
        (NODES, {"namespace": "a"}),
        (WEBAPPS, {"name": "b"}),
        (WEBAPPS, {"namespace": "a", "subresource": "status"}),
        (WEBAPPS, {"namespace": "", "name": "b"}),
        (NODES, {"name": ".."}),
    ],
)
def test_a_path_that_would_lead_elsewhere_is_refused(resource: Resource, arguments: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"namespace|name|path"):
        resource.path(**arguments)


def test_a_resource_prints_as_kubectl_spells_it() -> None:
    assert (str(WEBAPPS), str(SERVICES)) == ("webapps.example.com", "services")
    assert (WEBAPPS.api_version, SERVICES.api_version) == ("example.com/v1", "v1")
