"""Admission: what the real server's plugins NamespaceLifecycle and ServiceAccount decide before a write."""

from __future__ import annotations

from kubeloop.sandbox.pipeline.backend import CRDS, NAMESPACES, Backend, Call
from kubeloop.sandbox.registry import Object
from kubeloop.sandbox.status import forbidden, namespace_terminating, not_found

PODS = ("", "pods")
ACCOUNTS = ("", "serviceaccounts")
_TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_SECONDS = 3607
"""An hour and seven seconds, by which the server knows tokens that it asked for itself."""
_TOKEN_VOLUME = {
    "defaultMode": 0o644,
    "sources": [
        {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {
            "downwardAPI": {
                "items": [
                    {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
                ]
            }
        },
    ],
}
IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
"""Namespaces that may not be deleted."""


def admit_create(backend: Backend, call: Call, name: str) -> None:
    """Nothing is created in a namespace or of a CRD that is on its way out. Raises 403 and 404."""
    info, namespace = call.info, call.target.namespace
    if info.custom:
        definition = backend.store.get(CRDS, "", info.qualified)
        if definition is not None and definition.obj["metadata"].get("deletionTimestamp"):
            why = "create not allowed while custom resource definition is terminating"
            raise forbidden(info.group, info.plural, name, why)
    if not info.namespaced:
        return
    record = backend.store.get(NAMESPACES, "", namespace)
    if record is None:
        raise not_found("", "namespaces", namespace)
    if record.obj["metadata"].get("deletionTimestamp"):
        raise namespace_terminating(info.group, info.plural, name, namespace)


def admit_pod(backend: Backend, call: Call, obj: Object) -> Object:
    """A new pod with its service account's token (plugin ServiceAccount). Raises a 403 failure."""
    info, namespace = call.info, call.target.namespace
    spec = obj.get("spec") or {}
    name = spec.get("serviceAccountName") or "default"
    account = backend.store.get(ACCOUNTS, namespace, name)
    if account is None:
        why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise forbidden(info.group, info.plural, obj["metadata"].get("name", ""), why)
    wanted = spec.get("automountServiceAccountToken")
    if wanted is None:
        wanted = account.obj.get("automountServiceAccountToken", True)
    mounted = any(
        mount.get("mountPath") == _TOKEN_PATH
        for container in spec.get("containers") or ()
        for mount in container.get("volumeMounts") or ()
    )
    if not wanted or mounted:
        return obj
    volume = f"kube-api-access-{backend.suffix()}"
    mount = {"name": volume, "readOnly": True, "mountPath": _TOKEN_PATH}
    changed = {
        kind: [{**c, "volumeMounts": [*(c.get("volumeMounts") or ()), mount]} for c in spec[kind]]
        for kind in ("initContainers", "containers")
        if spec.get(kind)
    }
    volumes = [*(spec.get("volumes") or ()), {"name": volume, "projected": _TOKEN_VOLUME}]
    return {**obj, "spec": {**spec, **changed, "volumes": volumes}}


def admit_delete(call: Call, name: str) -> None:
    """Some namespaces stay. Raises a 403 failure."""
    if call.info.key == NAMESPACES and name in IMMORTAL:
        raise forbidden("", "namespaces", name, "this namespace may not be deleted")
