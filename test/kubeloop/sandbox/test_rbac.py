"""Rights from RBAC objects, beyond what the goldens in test/conformance compare with the real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kubeloop.clock import FakeClock
from kubeloop.sandbox import Sandbox, User
from kubeloop.sandbox.access import service_account

RBAC = "rbac.authorization.k8s.io"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def role(name: str, *rules: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, **metadata},
        "rules": list(rules),
    }


def binding(name: str, to: str, subject: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": to},
        "subjects": [subject],
    }


READ = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}


@pytest.fixture
def guarded() -> Iterator[Sandbox]:
    tokens = {
        "root": User("root", ("system:masters",)),
        "jane": User("jane"),
        "robot": service_account("default", "robot"),
    }
    with Sandbox(step=True, clock=FakeClock(), seed=1, tokens=tokens, rbac=True) as running:
        running.settle()
        yield running


def ask(
    sandbox: Sandbox, token: str, method: str, target: str, body: Any = None, **headers: str
) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    sent = {"content-type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
    answer = sandbox.transport(token).request(method, target, headers=sent, body=data)
    return answer.status, json.loads(answer.body) if answer.body[:1] == b"{" else answer.body


def test_rights_begin_and_end_with_their_objects(guarded: Sandbox) -> None:
    assert ask(guarded, "jane", "GET", CONFIG_MAPS)[0] == 403
    guarded.apply(role("reader", READ))
    guarded.apply(binding("readers", "reader", {"apiGroup": RBAC, "kind": "User", "name": "jane"}))
    assert ask(guarded, "jane", "GET", CONFIG_MAPS)[0] == 200
    assert ask(guarded, "jane", "DELETE", CONFIG_MAPS)[0] == 403
    guarded.delete(f"clusterrolebindings.{RBAC}", "readers")
    assert ask(guarded, "jane", "GET", CONFIG_MAPS)[0] == 403


def test_service_accounts_are_users_with_groups(guarded: Sandbox) -> None:
    guarded.apply(role("reader", READ))
    account = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}
    guarded.apply(binding("robots", "reader", account))
    assert ask(guarded, "robot", "GET", CONFIG_MAPS)[0] == 200
    guarded.delete(f"clusterrolebindings.{RBAC}", "robots")
    group = {"apiGroup": RBAC, "kind": "Group", "name": "system:serviceaccounts:default"}
    guarded.apply(binding("all", "reader", group))
    assert ask(guarded, "robot", "GET", CONFIG_MAPS)[0] == 200


def test_roles_are_put_together_by_their_labels(guarded: Sandbox) -> None:
    """`edit` and `view` take in what config/rbac labels for them."""
    guarded.apply(binding("viewers", "view", {"apiGroup": RBAC, "kind": "User", "name": "jane"}))
    assert ask(guarded, "jane", "GET", CONFIG_MAPS)[0] == 200
    assert ask(guarded, "jane", "GET", "/apis/example.com/v1/webapps")[0] == 403
    rule = {"apiGroups": ["example.com"], "resources": ["webapps"], "verbs": ["list"]}
    guarded.apply(role("more", rule, labels={f"{RBAC}/aggregate-to-view": "true"}))
    guarded.settle()
    assert ask(guarded, "jane", "GET", "/apis/example.com/v1/webapps")[0] == 404
    admin = guarded.get(f"clusterroles.{RBAC}", "admin")
    assert admin is not None
    assert rule in admin["rules"]  # view is part of edit, and that of admin


def test_nobody_grants_what_they_do_not_have(guarded: Sandbox) -> None:
    roles = {"apiGroups": [RBAC], "resources": ["clusterroles", "clusterrolebindings"], "verbs": ["*"]}
    guarded.apply(role("granter", {**roles, "verbs": ["create"]}, READ))
    guarded.apply(binding("granters", "granter", {"apiGroup": RBAC, "kind": "User", "name": "jane"}))
    target = f"/apis/{RBAC}/v1/clusterroles"
    assert ask(guarded, "jane", "POST", target, role("fine", {**READ, "verbs": ["get"]}))[0] == 201
    status, answer = ask(guarded, "jane", "POST", target, role("more", {**READ, "verbs": ["get", "delete"]}))
    assert status == 403
    assert answer["message"].endswith('{APIGroups:[""], Resources:["configmaps"], Verbs:["delete"]}')
    bind = binding("me", "cluster-admin", {"apiGroup": RBAC, "kind": "User", "name": "jane"})
    assert ask(guarded, "jane", "POST", f"{target[:-5]}rolebindings", bind)[0] == 403
    guarded.apply(role("escalator", {**roles, "verbs": ["escalate", "bind"]}))
    guarded.apply(binding("e", "escalator", {"apiGroup": RBAC, "kind": "User", "name": "jane"}))
    assert ask(guarded, "jane", "POST", target, role("more", {**READ, "verbs": ["delete"]}))[0] == 201


def test_reviews_answer_what_others_may(guarded: Sandbox) -> None:
    guarded.apply(role("reader", READ))
    guarded.apply(binding("readers", "reader", {"apiGroup": RBAC, "kind": "User", "name": "jane"}))
    attributes = {"verb": "list", "resource": "configmaps", "namespace": "default"}
    spec = {"user": "jane", "resourceAttributes": attributes}
    target = f"{AUTHORIZATION}/subjectaccessreviews"
    status, review = ask(guarded, "root", "POST", target, {"spec": spec})
    assert (status, review["status"]["allowed"]) == (201, True)
    why = 'RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to User "jane"'
    assert review["status"]["reason"] == why
    assert ask(guarded, "jane", "POST", target, {"spec": spec})[0] == 403
    assert ask(guarded, "root", "POST", target, {"spec": {"user": "jane"}})[0] == 422
    assert ask(guarded, "root", "POST", target, {"spec": {"resourceAttributes": attributes}})[0] == 422
    path = {"user": "jane", "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
    assert ask(guarded, "root", "POST", target, {"spec": path})[1]["status"] == {"allowed": False}
    assert ask(guarded, "root", "GET", target)[0] == 405
    local = f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews"
    assert ask(guarded, "root", "POST", local, {"spec": spec})[1]["status"]["allowed"]


def test_ones_own_rules_can_be_listed(guarded: Sandbox) -> None:
    target = f"{AUTHORIZATION}/selfsubjectrulesreviews"
    status, review = ask(guarded, "jane", "POST", target, {"spec": {"namespace": "default"}})
    assert status == 201
    assert any("selfsubjectaccessreviews" in r["resources"] for r in review["status"]["resourceRules"])
    assert any("/version" in r["nonResourceURLs"] for r in review["status"]["nonResourceRules"])
    assert ask(guarded, "jane", "POST", target, {"spec": {}})[0] == 400


def test_tokens_can_be_reviewed(guarded: Sandbox) -> None:
    target = "/apis/authentication.k8s.io/v1/tokenreviews"
    _, review = ask(guarded, "root", "POST", target, {"spec": {"token": "robot"}})
    assert review["status"]["authenticated"]
    assert review["status"]["user"]["username"] == "system:serviceaccount:default:robot"
    _, review = ask(guarded, "root", "POST", target, {"spec": {"token": "wrong"}})
    assert "authenticated" not in review["status"]
    assert ask(guarded, "root", "POST", target, {"spec": {}})[0] == 400
    _, me = ask(guarded, "jane", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert me["status"]["userInfo"] == {"username": "jane", "groups": ["system:authenticated"]}


def test_impersonation_is_a_right_of_its_own(guarded: Sandbox) -> None:
    as_jane = {"impersonate-user": "jane"}
    assert ask(guarded, "root", "GET", CONFIG_MAPS, **as_jane)[0] == 403
    status, answer = ask(guarded, "jane", "GET", CONFIG_MAPS, **{"impersonate-user": "root"})
    assert status == 403
    assert answer["message"] == (
        'users "root" is forbidden: User "jane" cannot impersonate resource "users" in API group "" '
        "at the cluster scope"
    )
    powerful = {"impersonate-user": "jane", "impersonate-group": "system:masters"}
    assert ask(guarded, "root", "GET", CONFIG_MAPS, **powerful)[0] == 200


def test_only_one_source_of_rights() -> None:
    with pytest.raises(ValueError, match="not from both"):
        Sandbox(rbac=True, authorizer=lambda _: True)
