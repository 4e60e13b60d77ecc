"""Defaults of a pod's spec (kubernetes: pkg/apis/core/v1/defaults.go), shared by pods and pod templates."""

from __future__ import annotations

from kubeloop.sandbox.builtins.defaulting import Object, each, fill, inside, with_field

_CONTAINER = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_POD_SPEC = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "terminationGracePeriodSeconds": 30,
    "schedulerName": "default-scheduler",
    "securityContext": {},
}
_FILE_MODE = 0o644
_TOKEN_SECONDS = 3600
_VOLUME_SOURCES_WITH_MODE = ("secret", "configMap", "downwardAPI", "projected")


def default_pod_spec(spec: Object) -> Object:
    """`spec` with the defaults that templates get too."""
    spec = fill(spec, _POD_SPEC)
    if (spec["terminationGracePeriodSeconds"] or 0) < 0:
        spec = with_field(spec, "terminationGracePeriodSeconds", 1)
    if spec.get("serviceAccountName"):
        # The field's former name is kept up by conversion.
        spec = with_field(spec, "serviceAccount", spec["serviceAccountName"])
    spec = each(spec, "containers", _container)
    spec = each(spec, "initContainers", _container)
    spec = each(spec, "ephemeralContainers", _container)
    return each(spec, "volumes", _volume)


def default_host_ports(spec: Object) -> Object:
    """In pods (not in templates) on the host's network a container port is the host's port as well."""
    if not spec.get("hostNetwork"):
        return spec
    return each(spec, "containers", lambda c: each(c, "ports", _host_port))


def _host_port(port: Object) -> Object:
    return port if "hostPort" in port else {**port, "hostPort": port.get("containerPort")}


def default_template(template: Object) -> Object:
    """A pod template with its spec defaulted."""
    return inside(template, "spec", default_pod_spec)


def pull_policy(image: str) -> str:
    """Always for ``:latest`` (said or meant), IfNotPresent otherwise."""
    if "@" in image:
        return "IfNotPresent"
    _, colon, tag = image.rpartition("/")[2].partition(":")
    return "IfNotPresent" if colon and tag != "latest" else "Always"


def _container(container: Object) -> Object:
    container = fill(container, _CONTAINER)
    if "imagePullPolicy" not in container:
        container = with_field(container, "imagePullPolicy", pull_policy(container.get("image", "")))
    container = each(container, "ports", _port)
    container = each(container, "env", _env)
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe in container:
            container = inside(container, probe, _probe)
    if "lifecycle" in container:
        container = inside(container, "lifecycle", _lifecycle)
    return container


def _port(port: Object) -> Object:
    return port if "protocol" in port else {**port, "protocol": "TCP"}


def _env(variable: Object) -> Object:
    return inside(variable, "valueFrom", _field_ref) if "valueFrom" in variable else variable


def _field_ref(source: Object) -> Object:
    return inside(source, "fieldRef", lambda ref: fill(ref, {"apiVersion": "v1"}))


def _handler(handler: Object) -> Object:
    return inside(handler, "httpGet", lambda get: fill(get, {"path": "/", "scheme": "HTTP"}))


def _probe(probe: Object) -> Object:
    probe = _handler(fill(probe, _PROBE))
    return inside(
        probe, "grpc", lambda grpc: {**grpc, "service": ""} if grpc.get("service") is None else grpc
    )


def _lifecycle(lifecycle: Object) -> Object:
    return inside(inside(lifecycle, "postStart", _handler), "preStop", _handler)


def _volume(volume: Object) -> Object:
    if len(volume) == 1:
        return {**volume, "emptyDir": {}}
    for source in _VOLUME_SOURCES_WITH_MODE:
        if source in volume:
            volume = inside(volume, source, lambda s: fill(s, {"defaultMode": _FILE_MODE}))
    if "hostPath" in volume:
        volume = inside(volume, "hostPath", lambda s: fill(s, {"type": ""}))
    if "downwardAPI" in volume:
        volume = inside(volume, "downwardAPI", lambda s: each(s, "items", _field_ref))
    if "projected" in volume:
        volume = inside(volume, "projected", lambda s: each(s, "sources", _projection))
    return volume


def _projection(source: Object) -> Object:
    source = inside(source, "serviceAccountToken", lambda t: fill(t, {"expirationSeconds": _TOKEN_SECONDS}))
    return inside(source, "downwardAPI", lambda s: each(s, "items", _field_ref))


def default_requests(spec: Object) -> Object:
    """In pods (not in templates) a limit without a request is the request as well."""
    return each(each(spec, "containers", _requests), "initContainers", _requests)


def _requests(container: Object) -> Object:
    resources = container.get("resources") or {}
    limits = resources.get("limits")
    if not limits or set(limits) <= set(resources.get("requests") or ()):
        return container
    requests = {**limits, **(resources.get("requests") or {})}
    return {**container, "resources": {**resources, "requests": requests}}


def quality_of_service(spec: Object) -> str:
    """The pod's QoS class: Guaranteed, Burstable or BestEffort."""
    containers = [*spec.get("containers", ()), *spec.get("initContainers", ())]
    guaranteed, any_set = True, False
    for container in containers:
        resources = container.get("resources") or {}
        limits = {k: v for k, v in (resources.get("limits") or {}).items() if k in ("cpu", "memory")}
        requests = {k: v for k, v in (resources.get("requests") or {}).items() if k in ("cpu", "memory")}
        any_set = any_set or bool(limits or requests)
        if set(limits) != {"cpu", "memory"} or any(requests.get(k, v) != v for k, v in limits.items()):
            guaranteed = False
    if not any_set:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"
