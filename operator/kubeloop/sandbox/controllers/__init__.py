"""The controllers that give the sandbox its life: garbage collection, namespaces, CRDs, Deployments and pods.

Contract: they act on the store only through requests, as kube-controller-manager does (marked internal in the
request log). All of them run in one loop: on one thread between `start` and `stop`, or step by step with
`settle`, which works until nothing more is due at the present time of the sandbox's clock.
"""

from __future__ import annotations

from kubeloop.sandbox.controllers.base import DoesNotSettleError, Loop
from kubeloop.sandbox.controllers.client import SystemClient
from kubeloop.sandbox.controllers.crds import CrdController
from kubeloop.sandbox.controllers.deployments import DeploymentController
from kubeloop.sandbox.controllers.garbage import GarbageCollector
from kubeloop.sandbox.controllers.graph import Graph
from kubeloop.sandbox.controllers.namespaces import NamespaceController
from kubeloop.sandbox.controllers.pods import DeploymentOptions, Kubelet, ReplicaSetController
from kubeloop.sandbox.controllers.roles import RoleAggregationController
from kubeloop.sandbox.pipeline.backend import Backend
from kubeloop.sandbox.pipeline.server import ApiServer

__all__ = ["Controllers", "DeploymentOptions", "DoesNotSettleError"]


class Controllers(Loop):
    """All controllers of one sandbox."""

    def __init__(self, backend: Backend, api: ApiServer, options: DeploymentOptions) -> None:
        graph = Graph()
        client = SystemClient(api)
        super().__init__(
            backend,
            graph,
            [
                CrdController(backend, SystemClient(api, "kube-apiserver/sandbox")),
                NamespaceController(backend, client),
                GarbageCollector(backend, client, graph),
                DeploymentController(backend, client, graph),
                ReplicaSetController(backend, client, graph),
                RoleAggregationController(backend, client),
                Kubelet(backend, SystemClient(api, "kubelet/sandbox"), options),
            ],
        )
