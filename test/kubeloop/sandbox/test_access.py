"""Tokens, the authorisation hook, and the request log."""

from __future__ import annotations

import pytest

from kubeloop.sandbox import Sandbox, User
from kubeloop.sandbox.access import Attributes

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def test_a_wrong_token_is_unauthorized_and_no_token_is_anonymous() -> None:
    asked: list[Attributes] = []

    def authorize(attributes: Attributes) -> bool:
        asked.append(attributes)
        return attributes.user.name == "jane"

    with Sandbox(step=True, tokens={"secret": User("jane")}, authorizer=authorize) as sandbox:
        assert sandbox.transport("secret").request("GET", CONFIG_MAPS).status == 200
        wrong = sandbox.transport("wrong").request("GET", CONFIG_MAPS)
        assert (wrong.status, b'"message":"Unauthorized"' in wrong.body) == (401, True)
        anonymous = sandbox.transport().request("GET", f"{CONFIG_MAPS}/x")
        assert anonymous.status == 403
        assert (
            b'configmaps \\"x\\" is forbidden: User \\"system:anonymous\\" cannot get resource '
            b'\\"configmaps\\" in API group \\"\\" in the namespace \\"default\\"'
        ) in anonymous.body
    assert [(a.user.name, a.verb, a.resource, a.namespace, a.name) for a in asked] == [
        ("jane", "list", "configmaps", "default", ""),
        ("system:anonymous", "get", "configmaps", "default", "x"),
    ]


@pytest.mark.parametrize(
    ("method", "target", "verb", "resource", "subresource"),
    [
        ("GET", CONFIG_MAPS, "list", "configmaps", ""),
        ("GET", f"{CONFIG_MAPS}?watch=true&timeoutSeconds=1", "watch", "configmaps", ""),
        ("GET", f"{CONFIG_MAPS}/a", "get", "configmaps", ""),
        ("DELETE", CONFIG_MAPS, "deletecollection", "configmaps", ""),
        ("DELETE", f"{CONFIG_MAPS}/a", "delete", "configmaps", ""),
        ("PATCH", "/apis/apps/v1/namespaces/default/deployments/a/scale", "patch", "deployments", "scale"),
        ("GET", "/version", "get", "", ""),
    ],
)
def test_the_log_names_requests_as_an_audit_log_does(
    sandbox: Sandbox, method: str, target: str, verb: str, resource: str, subresource: str
) -> None:
    mark = sandbox.log.mark()
    sandbox.transport().request(method, target, headers={"User-Agent": "me/1"})
    (entry,) = sandbox.log.entries(since=mark)
    assert (entry.verb, entry.resource, entry.subresource) == (verb, resource, subresource)
    assert entry.user_agent == "me/1"


def test_the_log_tells_writes_that_changed_something(sandbox: Sandbox) -> None:
    body = b'{"metadata":{"name":"a"},"data":{"x":"y"}}'
    transport = sandbox.transport()
    headers = {"User-Agent": "operator/1", "Content-Type": "application/merge-patch+json"}
    mark = sandbox.log.mark()
    transport.request("POST", CONFIG_MAPS, headers={"User-Agent": "operator/1"}, body=body)
    transport.request("PATCH", f"{CONFIG_MAPS}/a", headers=headers, body=b'{"data":{"x":"y"}}')
    transport.request("PATCH", f"{CONFIG_MAPS}/b", headers=headers, body=b"{}")
    transport.request("GET", f"{CONFIG_MAPS}/a", headers=headers)
    writes = sandbox.log.writes(since=mark)
    assert [(e.verb, e.name, e.status, e.wrote) for e in writes] == [
        ("create", "", 201, True),
        ("patch", "a", 200, False),
        ("patch", "b", 404, False),
    ]
    assert [e.verb for e in sandbox.log.writes(since=mark, only_effective=True, user_agent="operator")] == [
        "create"
    ]
    assert sandbox.log.writes(since=mark, user_agent="kubectl") == []
    assert sandbox.log.entries(since=mark, status=404, resource="configmaps")[0].name == "b"
    assert str(writes[0]) == f"#{writes[0].number} create configmaps default -> 201 wrote (operator/1)"


def test_the_sandboxs_own_controllers_are_marked(sandbox: Sandbox) -> None:
    sandbox.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tmp"}})
    mark = sandbox.log.mark()
    sandbox.transport().request("DELETE", "/api/v1/namespaces/tmp")
    sandbox.settle()
    assert [e.verb for e in sandbox.log.writes(since=mark)] == ["delete"]
    assert sandbox.log.writes(since=mark, internal=True)


def test_a_stopped_sandbox_refuses_connections() -> None:
    sandbox = Sandbox(step=True).start()
    transport = sandbox.transport()
    sandbox.stop()
    with pytest.raises(ConnectionRefusedError):
        transport.request("GET", CONFIG_MAPS)
