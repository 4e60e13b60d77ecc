"""One row per object of a built-in kind, cell by cell (kubernetes: pkg/printers/internalversion)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from kubeloop.sandbox.tables.duration import UNKNOWN, since
from kubeloop.sandbox.tables.podrow import pod

Object = dict[str, Any]
Row = Callable[[Object, datetime], list[Any]]

NONE = "<none>"


def _name(obj: Object) -> str:
    return str(obj["metadata"].get("name", ""))


def _age(obj: Object, now: datetime) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)


def selector_text(selector: Object | None) -> str:
    """A label selector as `LabelSelectorAsSelector(...).String()` gives it."""
    if selector is None:
        return ""
    terms: list[tuple[str, str]] = [
        (key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()
    ]
    for term in selector.get("matchExpressions") or ():
        key, values = term.get("key", ""), ",".join(sorted(term.get("values") or ()))
        match term.get("operator"):
            case "In":
                text = f"{key} in ({values})"
            case "NotIn":
                text = f"{key} notin ({values})"
            case "Exists":
                text = key
            case _:
                text = f"!{key}"
        terms.append((key, text))
    return ",".join(text for _, text in sorted(terms))


def _containers(template: Object) -> tuple[str, str]:
    containers = (template.get("spec") or {}).get("containers") or ()
    names = ",".join(container.get("name", "") for container in containers)
    return names, ",".join(container.get("image", "") for container in containers)


def _deployment(obj: Object, now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    names, images = _containers(spec.get("template") or {})
    return [
        _name(obj),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        _age(obj, now),
        names,
        images,
        selector_text(spec.get("selector")),
    ]


def _replica_set(obj: Object, now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    names, images = _containers(spec.get("template") or {})
    selector = selector_text(spec.get("selector")) or NONE
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [_name(obj), *counts, _age(obj, now), names, images, selector]


def _namespace(obj: Object, now: datetime) -> list[Any]:
    return [_name(obj), (obj.get("status") or {}).get("phase", ""), _age(obj, now)]


def _config_map(obj: Object, now: datetime) -> list[Any]:
    return [_name(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), _age(obj, now)]


def _secret(obj: Object, now: datetime) -> list[Any]:
    return [_name(obj), obj.get("type", ""), len(obj.get("data") or ()), _age(obj, now)]


def _service_account(obj: Object, now: datetime) -> list[Any]:
    return [_name(obj), _age(obj, now)]


def _lease(obj: Object, now: datetime) -> list[Any]:
    return [_name(obj), (obj.get("spec") or {}).get("holderIdentity", ""), _age(obj, now)]


def _created_at(obj: Object, now: datetime) -> list[Any]:
    del now
    return [_name(obj), obj["metadata"].get("creationTimestamp", UNKNOWN)]


def _binding(obj: Object, now: datetime) -> list[Any]:
    ref = obj.get("roleRef") or {}
    groups: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in obj.get("subjects") or ():
        name = subject.get("name", "")
        if subject.get("kind") == "ServiceAccount":
            where = subject.get("namespace") or obj["metadata"].get("namespace", "")
            name = f"{where}/{name}"
        groups.setdefault(subject.get("kind", ""), []).append(name)
    cells = [", ".join(groups[kind]) for kind in ("User", "Group", "ServiceAccount")]
    return [_name(obj), f"{ref.get('kind', '')}/{ref.get('name', '')}", _age(obj, now), *cells]


def _ports(ports: list[Object]) -> str:
    pieces = []
    for port in ports:
        number = f"{port.get('port')}:{port['nodePort']}" if port.get("nodePort") else str(port.get("port"))
        pieces.append(f"{number}/{port.get('protocol', '')}")
    return ",".join(pieces) or NONE


def _external(spec: Object, status: Object) -> str:
    listed = list(spec.get("externalIPs") or ())
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(listed) or NONE
        case "LoadBalancer":
            ingress = (status.get("loadBalancer") or {}).get("ingress") or ()
            found = sorted({i.get("ip") or i.get("hostname") or "" for i in ingress} - {""})
            return ",".join([*found, *listed]) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
        case _:
            return UNKNOWN


def _service(obj: Object, now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    ips = spec.get("clusterIPs") or [NONE]
    selector = ",".join(f"{key}={value}" for key, value in sorted((spec.get("selector") or {}).items()))
    return [
        _name(obj),
        spec.get("type", ""),
        ips[0],
        _external(spec, status),
        _ports(spec.get("ports") or []),
        _age(obj, now),
        selector or NONE,
    ]


def _source(component: str, instance: str) -> str:
    return f"{component}, {instance}" if instance else component


def _event(obj: Object, now: datetime) -> list[Any]:
    first = since(obj.get("firstTimestamp") or obj.get("eventTime"), now)
    last = since(obj["lastTimestamp"], now) if obj.get("lastTimestamp") else first
    count = obj.get("count") or 1
    series = obj.get("series")
    if series:
        last, count = since(series.get("lastObservedTime"), now), series.get("count", 0)
    about, source = obj.get("involvedObject") or {}, obj.get("source") or {}
    target = about.get("kind", "").lower()
    if about.get("name"):
        target = f"{target}/{about['name']}"
    component = source.get("component") or obj.get("reportingComponent", "")
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        target,
        about.get("fieldPath", ""),
        _source(component, source.get("host") or obj.get("reportingInstance", "")),
        obj.get("message", "").strip(),
        first,
        count,
        _name(obj),
    ]


ROWS: dict[tuple[str, str], Row] = {
    ("", "configmaps"): _config_map,
    ("", "events"): _event,
    ("", "namespaces"): _namespace,
    ("", "pods"): pod,
    ("", "secrets"): _secret,
    ("", "serviceaccounts"): _service_account,
    ("", "services"): _service,
    ("apps", "deployments"): _deployment,
    ("apps", "replicasets"): _replica_set,
    ("coordination.k8s.io", "leases"): _lease,
    ("apiextensions.k8s.io", "customresourcedefinitions"): _created_at,
    ("rbac.authorization.k8s.io", "roles"): _created_at,
    ("rbac.authorization.k8s.io", "clusterroles"): _created_at,
    ("rbac.authorization.k8s.io", "rolebindings"): _binding,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): _binding,
}
"""The row function of each built-in resource, by group and plural."""
