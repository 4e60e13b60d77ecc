"""Admission: what the real server's built-in plugins decide before a write (here: NamespaceLifecycle)."""

from __future__ import annotations

from kubeloop.sandbox.pipeline.backend import CRDS, NAMESPACES, Backend, Call
from kubeloop.sandbox.status import forbidden, namespace_terminating, not_found

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


def admit_delete(call: Call, name: str) -> None:
    """Some namespaces stay. Raises a 403 failure."""
    if call.info.key == NAMESPACES and name in IMMORTAL:
        raise forbidden("", "namespaces", name, "this namespace may not be deleted")
