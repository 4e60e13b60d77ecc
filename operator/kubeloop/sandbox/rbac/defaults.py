"""The roles every cluster starts with, as far as they matter for what the sandbox simulates.

The real server's `admin`, `edit` and `view` name many kinds that do not exist here; these name those that do.
Like there they are aggregated, so that ClusterRoles with the aggregate-to labels extend them.
"""

from __future__ import annotations

from kubeloop.sandbox.registry import Object

_API = "rbac.authorization.k8s.io/v1"
_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
_PUBLIC = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", *_PUBLIC]
_CONTENT = ["configmaps", "events", "pods", "pods/status", "serviceaccounts", "services", "services/status"]
_WORKLOADS = ["deployments", "deployments/scale", "deployments/status", "replicasets", "replicasets/scale"]


def _meta(name: str, **labels: str) -> Object:
    return {"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults", **labels}}


def _role(name: str, rules: list[Object], **labels: str) -> Object:
    return {"apiVersion": _API, "kind": "ClusterRole", "metadata": _meta(name, **labels), "rules": rules}


def _aggregated(name: str, part: str) -> list[Object]:
    selector = {"matchLabels": {f"rbac.authorization.k8s.io/aggregate-to-{name}": "true"}}
    # An aggregate is itself part of the next larger one.
    labels = {f"rbac.authorization.k8s.io/aggregate-to-{part}": "true"} if part else {}
    return [
        {
            "apiVersion": _API,
            "kind": "ClusterRole",
            "metadata": _meta(name, **labels),
            "aggregationRule": {"clusterRoleSelectors": [selector]},
        }
    ]


def _part(name: str, rules: list[Object]) -> Object:
    labels = {f"rbac.authorization.k8s.io/aggregate-to-{name}": "true"}
    return _role(f"system:aggregate-to-{name}", rules, **labels)


def _binding(name: str, *groups: str) -> Object:
    return {
        "apiVersion": _API,
        "kind": "ClusterRoleBinding",
        "metadata": _meta(name),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": g} for g in groups],
    }


def _rule(groups: list[str], resources: list[str], verbs: list[str]) -> Object:
    return {"apiGroups": groups, "resources": resources, "verbs": verbs}


def _urls(urls: list[str]) -> Object:
    return {"nonResourceURLs": urls, "verbs": ["get"]}


_SELF = [
    _rule(["authorization.k8s.io"], ["selfsubjectaccessreviews", "selfsubjectrulesreviews"], ["create"]),
    _rule(["authentication.k8s.io"], ["selfsubjectreviews"], ["create"]),
]
_REVIEWS = [
    _rule(["authentication.k8s.io"], ["tokenreviews"], ["create"]),
    _rule(["authorization.k8s.io"], ["subjectaccessreviews"], ["create"]),
]
_VIEW = [_rule([""], _CONTENT, _READ), _rule(["apps"], _WORKLOADS, _READ), _rule([""], ["namespaces"], _READ)]
_EDIT = [
    _rule([""], [*_CONTENT[:5], "services", "secrets"], _WRITE),
    _rule([""], ["secrets"], _READ),
    _rule(["apps"], [r for r in _WORKLOADS if not r.endswith("status")], _WRITE),
    _rule(["coordination.k8s.io"], ["leases"], [*_WRITE, *_READ]),
]
_ADMIN = [
    _rule(["authorization.k8s.io"], ["localsubjectaccessreviews"], ["create"]),
    _rule(["rbac.authorization.k8s.io"], ["rolebindings", "roles"], [*_WRITE, *_READ]),
]

DEFAULT_OBJECTS: list[Object] = [
    _role("cluster-admin", [_rule(["*"], ["*"], ["*"]), {"nonResourceURLs": ["*"], "verbs": ["*"]}]),
    _role("system:discovery", [_urls(_DISCOVERY)]),
    _role("system:public-info-viewer", [_urls(_PUBLIC)]),
    _role("system:basic-user", _SELF),
    _role("system:auth-delegator", _REVIEWS),
    _part("view", _VIEW),
    _part("edit", _EDIT),
    _part("admin", _ADMIN),
    *_aggregated("view", "edit"),
    *_aggregated("edit", "admin"),
    *_aggregated("admin", ""),
    _binding("cluster-admin", "system:masters"),
    _binding("system:discovery", "system:authenticated"),
    _binding("system:basic-user", "system:authenticated"),
    _binding("system:public-info-viewer", "system:authenticated", "system:unauthenticated"),
]
"""Created when a sandbox with RBAC starts."""
