"""The served built-in resources: names, verbs, subresources and the strategy of each."""

from __future__ import annotations

from kubeloop.sandbox.builtins.access import BindingStrategy, LeaseStrategy, RoleStrategy
from kubeloop.sandbox.builtins.core import (
    ConfigMapStrategy,
    NamespaceStrategy,
    SecretStrategy,
    ServiceAccountStrategy,
)
from kubeloop.sandbox.builtins.events import SHARED, EventStrategy, NewEventStrategy
from kubeloop.sandbox.builtins.pods import PodStrategy
from kubeloop.sandbox.builtins.services import ServiceStrategy
from kubeloop.sandbox.builtins.workloads import DeploymentStrategy, ReplicaSetStrategy
from kubeloop.sandbox.crd import CRDStrategy
from kubeloop.sandbox.registry import ALL_VERBS, ResourceInfo, ScalePaths, Shared, Strategy
from kubeloop.sandbox.schema import builtin

_PACKAGES = {
    "": "io.k8s.api.core.v1.",
    "apps": "io.k8s.api.apps.v1.",
    "events.k8s.io": "io.k8s.api.events.v1.",
    "coordination.k8s.io": "io.k8s.api.coordination.v1.",
    "rbac.authorization.k8s.io": "io.k8s.api.rbac.v1.",
    "apiextensions.k8s.io": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.",
}
_STATUS = frozenset(("status",))
_SCALABLE = frozenset(("status", "scale"))
_SCALE = ScalePaths(".spec.replicas", ".status.replicas", ".spec.selector")


def _info(
    group: str,
    kind: str,
    strategy: Strategy,
    *,
    namespaced: bool = True,
    short: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
    subresources: frozenset[str] = frozenset(),
    verbs: tuple[str, ...] = ALL_VERBS,
    scale: ScalePaths | None = None,
    selectable: tuple[str, ...] = (),
    shared: Shared | None = None,
) -> ResourceInfo:
    api_version = f"{group}/v1" if group else "v1"
    return ResourceInfo(
        group=group,
        version="v1",
        kind=kind,
        plural=kind.lower() + "s",
        singular=kind.lower(),
        schema=builtin(kind, api_version, _PACKAGES[group] + kind),
        strategy=strategy,
        namespaced=namespaced,
        short_names=short,
        categories=categories,
        subresources=subresources,
        verbs=verbs,
        scale=scale,
        selectable_fields=selectable,
        shared=shared,
    )


_RBAC = "rbac.authorization.k8s.io"
_NO_COLLECTION_DELETE = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")
_EVENT_FIELDS = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)
_NEW_EVENT_FIELDS = (
    *(field.replace("involvedObject", "regarding") for field in _EVENT_FIELDS[:7]),
    "reason",
    "reportingController",
    "type",
)
_POD_FIELDS = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
)

INFOS: list[ResourceInfo] = [
    _info("", "ConfigMap", ConfigMapStrategy(), short=("cm",)),
    _info("", "Event", EventStrategy(), short=("ev",), selectable=_EVENT_FIELDS),
    _info(
        "",
        "Namespace",
        NamespaceStrategy(),
        namespaced=False,
        short=("ns",),
        subresources=frozenset(("status", "finalize")),
        verbs=_NO_COLLECTION_DELETE,
        selectable=("status.phase",),
    ),
    _info(
        "",
        "Pod",
        PodStrategy(),
        short=("po",),
        categories=("all",),
        subresources=_STATUS,
        selectable=_POD_FIELDS,
    ),
    _info("", "Secret", SecretStrategy(), selectable=("type",)),
    _info("", "ServiceAccount", ServiceAccountStrategy(), short=("sa",)),
    _info(
        "",
        "Service",
        ServiceStrategy(),
        short=("svc",),
        categories=("all",),
        subresources=_STATUS,
        selectable=("spec.clusterIP", "spec.type"),
    ),
    _info(
        "events.k8s.io",
        "Event",
        NewEventStrategy(),
        short=("ev",),
        selectable=_NEW_EVENT_FIELDS,
        shared=SHARED,
    ),
    _info(
        "apps",
        "Deployment",
        DeploymentStrategy(),
        short=("deploy",),
        categories=("all",),
        subresources=_SCALABLE,
        scale=_SCALE,
    ),
    _info(
        "apps",
        "ReplicaSet",
        ReplicaSetStrategy(),
        short=("rs",),
        categories=("all",),
        subresources=_SCALABLE,
        scale=_SCALE,
    ),
    _info(_RBAC, "ClusterRoleBinding", BindingStrategy(namespaced=False), namespaced=False),
    _info(_RBAC, "ClusterRole", RoleStrategy(namespaced=False), namespaced=False),
    _info(_RBAC, "RoleBinding", BindingStrategy(namespaced=True)),
    _info(_RBAC, "Role", RoleStrategy(namespaced=True)),
    _info(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        CRDStrategy(),
        namespaced=False,
        short=("crd", "crds"),
        categories=("api-extensions",),
        subresources=_STATUS,
    ),
    _info("coordination.k8s.io", "Lease", LeaseStrategy()),
]
"""Every built-in resource of the sandbox."""
