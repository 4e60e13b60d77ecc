"""Aggregated ClusterRoles: their rules are those of the ClusterRoles that their selectors find."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from kubeloop.sandbox.builtins.checks import selects
from kubeloop.sandbox.controllers.base import Controller
from kubeloop.sandbox.controllers.client import SystemClient
from kubeloop.sandbox.pipeline.backend import Backend
from kubeloop.sandbox.rbac import CLUSTER_ROLES
from kubeloop.sandbox.registry import Object
from kubeloop.sandbox.store import Event


class RoleAggregationController(Controller):
    """Keys are names of ClusterRoles with an aggregationRule."""

    name = "clusterrole-aggregation-controller"

    def __init__(self, backend: Backend, client: SystemClient) -> None:
        self._backend = backend
        self._client = client

    def observe(self, event: Event) -> Iterable[Hashable]:
        if event.resource != CLUSTER_ROLES:
            return []
        records, _ = self._backend.store.current(CLUSTER_ROLES)
        return [record.name for record in records if record.obj.get("aggregationRule")]

    def reconcile(self, key: Hashable) -> float | None:
        record = self._backend.store.get(CLUSTER_ROLES, "", str(key))
        if record is None or not record.obj.get("aggregationRule"):
            return None
        rules: list[Object] = []
        for other in self._backend.store.current(CLUSTER_ROLES)[0]:
            if other.name != record.name and _selected(record.obj["aggregationRule"], other.obj):
                rules += [rule for rule in other.obj.get("rules") or () if rule not in rules]
        if rules != (record.obj.get("rules") or []):
            info = self._backend.registry.any_version(*CLUSTER_ROLES)
            assert info is not None
            self._client.merge(info, "", record.name, {"rules": rules})
        return None


def _selected(aggregation: Object, role: Object) -> bool:
    labels = role["metadata"].get("labels") or {}
    selectors = aggregation.get("clusterRoleSelectors") or ()
    return any(selects(selector, labels) for selector in selectors)
