"""Services: defaults, addresses, validation."""

from __future__ import annotations

import ipaddress
import zlib
from datetime import datetime

from kubeloop.sandbox.builtins import checks
from kubeloop.sandbox.builtins.defaulting import Object, each, fill, inside
from kubeloop.sandbox.schema import causes
from kubeloop.sandbox.status import Cause
from kubeloop.sandbox.strategy import BuiltinStrategy

_NETWORK = int(ipaddress.IPv4Address("10.96.0.0"))
_HOSTS = 2**16 - 2
_NODE_PORTS = range(30000, 32768)
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_IP_TEXT = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_AFFINITY_SECONDS = 10800


class ServiceStrategy(BuiltinStrategy):
    """Services get a cluster IP (and node ports) derived from their name: stable over runs and restarts."""

    name_rule = "label"
    allow_create_on_update = True

    def __init__(self) -> None:
        super().__init__(status_subresource=True)

    def empty_status(self) -> Object:
        return {"loadBalancer": {}}

    def defaults(self, obj: Object) -> Object:
        return inside(obj, "spec", _default_spec)

    def prepare_create(self, obj: Object, now: datetime) -> Object:
        obj = super().prepare_create(obj, now)
        spec = obj["spec"]
        if spec.get("type") == "ExternalName":
            return obj
        seed = f"{obj['metadata'].get('namespace', '')}/{obj['metadata'].get('name', '')}"
        return {**obj, "spec": _allocate(spec, seed)}

    def prepare_update(self, obj: Object, old: Object) -> Object:
        obj = super().prepare_update(obj, old)
        spec, before = obj["spec"], old["spec"]
        if spec is before:
            return obj
        spec = _without_stale(spec, before)
        if spec.get("type") == "ExternalName":
            return {**obj, "spec": spec}
        address = spec.get("clusterIP")
        if (
            address
            and address != before.get("clusterIP")
            and spec.get("clusterIPs") == before.get("clusterIPs")
        ):
            spec = {**spec, "clusterIPs": [address]}  # only the older field was changed: the list follows it
        kept = {
            key: before[key]
            for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
            if key not in spec and key in before
        }
        ports = {(p.get("port"), p.get("protocol")): p.get("nodePort") for p in before.get("ports") or ()}
        if spec.get("type") in ("NodePort", "LoadBalancer") and any(ports.values()):
            spec = each(
                spec,
                "ports",
                lambda p: _kept_port(p, ports.get((p.get("port"), p.get("protocol")))),
            )
        seed = f"{obj['metadata'].get('namespace', '')}/{obj['metadata'].get('name', '')}"
        return {**obj, "spec": _allocate({**spec, **kept}, seed)}

    def validate_create(self, obj: Object) -> list[Cause]:
        # Addresses are allocated before anything is validated: a bad one is all that the client hears of.
        return _validate_addresses(obj["spec"]) or _validate_spec(obj["spec"])

    def validate_update(self, obj: Object, old: Object) -> list[Cause]:
        found: list[Cause] = []
        new_ips, old_ips = obj["spec"].get("clusterIPs"), old["spec"].get("clusterIPs")
        same_kind = "ExternalName" not in (obj["spec"].get("type"), old["spec"].get("type"))
        if same_kind and old_ips and new_ips != old_ips:
            text = "may not change once set"
            found.append(causes.invalid("spec.clusterIPs[0]", new_ips, text))
        return found + _validate_spec(obj["spec"])

    def validate_status_update(self, obj: Object, old: Object) -> list[Cause]:
        del old
        balancer = (obj.get("status") or {}).get("loadBalancer") or {}
        if balancer.get("ingress") and obj["spec"].get("type") != "LoadBalancer":
            text = "may only be used when `spec.type` is 'LoadBalancer'"
            return [causes.forbidden("status.loadBalancer.ingress", text)]
        return []

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        if old is not None and old["spec"] == obj["spec"]:
            return []
        if obj["spec"].get("externalIPs"):
            return ["spec.externalIPs is deprecated and may no longer be implemented in some clusters"]
        return []


_CLUSTER = ("ClusterIP", "NodePort", "LoadBalancer")
_NODES = ("NodePort", "LoadBalancer")


def _without_stale(spec: Object, before: Object) -> Object:
    """`spec` without what only its former type needed and nobody touched (dropTypeDependentFields)."""
    was, kind = before.get("type"), spec.get("type")
    stale: list[str] = []
    if was in _CLUSTER and kind not in _CLUSTER:
        stale += ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"]
    if was in _NODES and kind not in _NODES:
        stale += ["externalTrafficPolicy"]
        spec = each(spec, "ports", lambda port: {k: v for k, v in port.items() if k != "nodePort"})
    if was == "LoadBalancer" and kind != "LoadBalancer":
        stale += ["allocateLoadBalancerNodePorts", "loadBalancerClass"]
    gone = {key for key in stale if key in spec and spec[key] == before.get(key)}
    return {key: value for key, value in spec.items() if key not in gone} if gone else spec


def _kept_port(port: Object, node_port: int | None) -> Object:
    return {**port, "nodePort": node_port} if node_port and not port.get("nodePort") else port


def _default_spec(spec: Object) -> Object:
    spec = fill(spec, {"sessionAffinity": "None", "type": "ClusterIP"})
    kind = spec["type"]
    if spec["sessionAffinity"] == "ClientIP" and "sessionAffinityConfig" not in spec:
        config = {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}
        spec = {**spec, "sessionAffinityConfig": config}
    if spec["sessionAffinity"] == "None" and "sessionAffinityConfig" in spec:
        spec = {key: value for key, value in spec.items() if key != "sessionAffinityConfig"}
    if kind in ("NodePort", "LoadBalancer") or spec.get("externalIPs"):
        spec = fill(spec, {"externalTrafficPolicy": "Cluster"})
    if kind in ("ClusterIP", "NodePort", "LoadBalancer"):
        spec = fill(spec, {"internalTrafficPolicy": "Cluster"})
    if kind == "LoadBalancer":
        spec = fill(spec, {"allocateLoadBalancerNodePorts": True})
    return each(spec, "ports", _default_port)


def _default_port(port: Object) -> Object:
    if not port.get("protocol"):
        port = {**port, "protocol": "TCP"}
    return {**port, "targetPort": port.get("port")} if port.get("targetPort") in (0, "", None) else port


def _allocate(spec: Object, seed: str) -> Object:
    result = dict(spec)
    address = spec.get("clusterIP")
    ips = spec.get("clusterIPs")
    if not address:
        address = (
            ips[0] if ips else str(ipaddress.IPv4Address(_NETWORK + 1 + zlib.crc32(seed.encode()) % _HOSTS))
        )
        result["clusterIP"] = address
    if not ips:
        result["clusterIPs"] = [address]
    if address == "None" and not spec.get("selector"):
        families = {"ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack"}
    else:
        families = {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}
    for key, value in families.items():
        result.setdefault(key, value)
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        wants = spec["type"] == "NodePort" or spec.get("allocateLoadBalancerNodePorts", True)
        if wants:
            result = each(result, "ports", lambda p: _node_port(p, seed))
    return result


def _node_port(port: Object, seed: str) -> Object:
    if port.get("nodePort"):
        return port
    key = f"{seed}:{port.get('port')}/{port.get('protocol')}"
    return {**port, "nodePort": _NODE_PORTS[zlib.crc32(key.encode()) % len(_NODE_PORTS)]}


def _validate_spec(spec: Object) -> list[Cause]:
    found: list[Cause] = []
    kind = spec.get("type", "")
    headless = spec.get("clusterIP") == "None"
    ports = spec.get("ports") or []
    if not ports and not headless and kind != "ExternalName":
        found.append(causes.required("spec.ports"))
    if kind == "ExternalName":
        if not spec.get("externalName"):
            found.append(causes.required("spec.externalName"))
        else:
            found += checks.names(spec["externalName"].rstrip("."), "subdomain", "spec.externalName")
    elif kind == "LoadBalancer" and headless:
        found.append(
            causes.invalid("spec.clusterIPs[0]", "None", "may not be set to 'None' for LoadBalancer services")
        )
    elif kind == "NodePort" and headless:
        found.append(
            causes.invalid("spec.clusterIPs[0]", "None", "may not be set to 'None' for NodePort services")
        )
    names: set[str] = set()
    for index, port in enumerate(ports):
        found += _validate_port(port, len(ports) > 1, names, f"spec.ports[{index}]")
    found += checks.labels(spec.get("selector"), "spec.selector")
    found += checks.supported(spec.get("sessionAffinity", ""), ("ClientIP", "None"), "spec.sessionAffinity")
    found += checks.supported(kind, _TYPES, "spec.type")
    if kind == "ClusterIP":
        text = "may not be used when `type` is 'ClusterIP'"
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                found.append(causes.forbidden(f"spec.ports[{index}].nodePort", text))
    seen: set[tuple[object, object]] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol"), port.get("port"))
        if key in seen:
            # The server shows its internal struct with only these two set.
            shown = (
                f'{{"Name":"","Protocol":{causes.shown(key[0])},"AppProtocol":null,"Port":{causes.shown(key[1])},'
                '"TargetPort":0,"NodePort":0}'
            )
            text = f"Duplicate value: {shown}"
            found.append(Cause("FieldValueDuplicate", text, f"spec.ports[{index}]"))
        seen.add(key)
    return found


def _validate_addresses(spec: Object) -> list[Cause]:
    found: list[Cause] = []
    for index, address in enumerate(spec.get("clusterIPs") or ()):
        if address == "None":
            continue
        try:
            ipaddress.ip_address(address)
        except ValueError:
            found.append(causes.invalid(f"spec.clusterIPs[{index}]", address, _IP_TEXT))
    return found


def _validate_port(port: Object, several: bool, names: set[str], field: str) -> list[Cause]:
    found: list[Cause] = []
    name = port.get("name", "")
    if several and not name:
        found.append(causes.required(f"{field}.name"))
    elif name:
        found += checks.names(name, "label", f"{field}.name")
        if name in names:
            found.append(causes.duplicate(f"{field}.name", name))
        names.add(name)
    found += checks.port_number(port.get("port", 0), f"{field}.port")
    protocol = port.get("protocol", "")
    found += checks.supported(protocol, ("SCTP", "TCP", "UDP"), f"{field}.protocol")
    target = port.get("targetPort")
    if isinstance(target, str):
        found += checks.port_name(target, f"{field}.targetPort")
    else:
        found += checks.port_number(target, f"{field}.targetPort")
    return found
