"""Validation of pods and pod templates: the mistakes people make (kubernetes: pkg/apis/core/validation).

Fields that only kubelets and schedulers care for pass unchecked.
"""

from __future__ import annotations

from typing import Any

from kubeloop.sandbox.builtins import checks
from kubeloop.sandbox.builtins.resources import validate_resources
from kubeloop.sandbox.builtins.volumes import validate_volumes
from kubeloop.sandbox.schema import causes
from kubeloop.sandbox.status import Cause

Object = dict[str, Any]

_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_FIELD_PATHS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_ENV_TEXT = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")


def validate_pod_template(template: Object, field: str) -> list[Cause]:
    """ValidatePodTemplateSpec."""
    metadata = template.get("metadata") or {}
    found = checks.labels(metadata.get("labels"), f"{field}.labels")
    found += checks.annotation_keys(metadata.get("annotations"), f"{field}.annotations")
    return found + validate_pod_spec(template.get("spec") or {}, f"{field}.spec")


def validate_pod_spec(spec: Object, field: str) -> list[Cause]:
    """ValidatePodSpec."""
    found, volumes = validate_volumes(spec.get("volumes") or [], f"{field}.volumes")
    containers = spec.get("containers") or []
    if not containers:
        found.append(causes.required(f"{field}.containers"))
    seen: set[str] = set()
    for index, container in enumerate(containers):
        found += _container(container, volumes, seen, f"{field}.containers[{index}]")
    for index, container in enumerate(spec.get("initContainers") or []):
        found += _container(container, volumes, seen, f"{field}.initContainers[{index}]")
    if spec.get("restartPolicy"):
        found += checks.supported(spec["restartPolicy"], _RESTART_POLICIES, f"{field}.restartPolicy")
    if spec.get("dnsPolicy"):
        found += checks.supported(spec["dnsPolicy"], _DNS_POLICIES, f"{field}.dnsPolicy")
    found += checks.labels(spec.get("nodeSelector"), f"{field}.nodeSelector")
    if spec.get("serviceAccountName"):
        found += checks.names(spec["serviceAccountName"], "subdomain", f"{field}.serviceAccountName")
    if spec.get("hostname"):
        found += checks.names(spec["hostname"], "label", f"{field}.hostname")
    if spec.get("subdomain"):
        found += checks.names(spec["subdomain"], "label", f"{field}.subdomain")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2**31 - 1:
        text = "must be between 1 and 2147483647, inclusive"
        found.append(causes.invalid(f"{field}.activeDeadlineSeconds", deadline, text))
    return found


def validate_image_names(spec: Object, field: str) -> list[Cause]:
    """Only pods, not templates, refuse white space around an image's name."""
    found: list[Cause] = []
    for index, container in enumerate(spec.get("containers") or []):
        image = container.get("image", "")
        if image != image.strip():
            text = "must not have leading or trailing whitespace"
            found.append(causes.invalid(f"{field}.containers[{index}].image", image, text))
    return found


def _container(container: Object, volumes: set[str], seen: set[str], field: str) -> list[Cause]:
    name = container.get("name", "")
    found: list[Cause] = []
    if not name:
        found.append(causes.required(f"{field}.name"))
    else:
        found += checks.names(name, "label", f"{field}.name")
    if not container.get("image"):
        found.append(causes.required(f"{field}.image"))
    if container.get("terminationMessagePolicy"):
        found += checks.supported(
            container["terminationMessagePolicy"], _MESSAGE_POLICIES, f"{field}.terminationMessagePolicy"
        )
    found += _ports(container.get("ports") or [], f"{field}.ports")
    found += _env(container.get("env") or [], f"{field}.env")
    found += _env_from(container.get("envFrom") or [], f"{field}.envFrom")
    found += _mounts(container.get("volumeMounts") or [], volumes, f"{field}.volumeMounts")
    if container.get("imagePullPolicy"):
        found += checks.supported(container["imagePullPolicy"], _PULL_POLICIES, f"{field}.imagePullPolicy")
    found += validate_resources(container.get("resources") or {}, f"{field}.resources")
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(probe) is not None:
            found += _probe(container[probe], f"{field}.{probe}", once=probe != "readinessProbe")
    if name and name in seen:
        found.append(causes.duplicate(f"{field}.name", name))
    seen.add(name)
    return found


def _ports(ports: list[Object], field: str) -> list[Cause]:
    found: list[Cause] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        where = f"{field}[{index}]"
        name = port.get("name", "")
        if name:
            bad = checks.port_name(name, f"{where}.name")
            found += bad
            if not bad and name in names:
                found.append(causes.duplicate(f"{where}.name", name))
            names.add(name)
        if not port.get("containerPort"):
            found.append(causes.required(f"{where}.containerPort"))
        else:
            found += checks.port_number(port["containerPort"], f"{where}.containerPort")
        if port.get("hostPort"):
            found += checks.port_number(port["hostPort"], f"{where}.hostPort")
        found += checks.supported(port.get("protocol", ""), _PROTOCOLS, f"{where}.protocol")
    return found


def _env_name(name: str, field: str) -> list[Cause]:
    if not name:
        return [causes.required(field)]
    if not all(" " <= char <= "~" and char != "=" for char in name):
        return [causes.invalid(field, name, _ENV_TEXT)]
    return []


def _env(variables: list[Object], field: str) -> list[Cause]:
    found: list[Cause] = []
    for index, variable in enumerate(variables):
        where = f"{field}[{index}]"
        found += _env_name(variable.get("name", ""), f"{where}.name")
        source = variable.get("valueFrom")
        if source is not None:
            found += _env_source(source, bool(variable.get("value")), f"{where}.valueFrom")
    return found


def _env_source(source: Object, has_value: bool, field: str) -> list[Cause]:
    found: list[Cause] = []
    given = [name for name in _ENV_SOURCES if source.get(name) is not None]
    if "fieldRef" in given:
        found += _field_ref(source["fieldRef"], f"{field}.fieldRef")
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in given:
            found += _key_ref(source[name], f"{field}.{name}")
    if not given:
        text = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
            "`fileKeyRef`"
        )
        found.append(causes.invalid(field, "", text))
    elif has_value:
        found.append(causes.invalid(field, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        found.append(causes.invalid(field, "", "may not have more than one field specified at a time"))
    return found


def _field_ref(ref: Object, field: str) -> list[Cause]:
    path = ref.get("fieldPath", "")
    if not ref.get("apiVersion"):
        return [causes.required(f"{field}.apiVersion")]
    if not path:
        return [causes.required(f"{field}.fieldPath")]
    if path in _FIELD_PATHS or path.startswith(("metadata.annotations['", "metadata.labels['")):
        return []
    text = f"error converting fieldPath: field label not supported: {path}"
    return [causes.invalid(f"{field}.fieldPath", path, text)]


def _key_ref(ref: Object, field: str) -> list[Cause]:
    found: list[Cause] = []
    if not ref.get("name"):
        found.append(causes.required(f"{field}.name"))
    if not ref.get("key"):
        found.append(causes.required(f"{field}.key"))
    else:
        found += checks.config_key(ref["key"], f"{field}.key")
    return found


def _env_from(sources: list[Object], field: str) -> list[Cause]:
    found: list[Cause] = []
    for index, source in enumerate(sources):
        where = f"{field}[{index}]"
        if source.get("prefix"):
            found += _env_name(source["prefix"], f"{where}.prefix")
        given = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
        for name in given:
            if not source[name].get("name"):
                found.append(causes.required(f"{where}.{name}.name"))
        if not given:
            text = "must specify one of: `configMapRef` or `secretRef`"
            found.append(causes.invalid(field, "", text))
        elif len(given) > 1:
            found.append(causes.invalid(field, "", "may not have more than one field specified at a time"))
    return found


def _mounts(mounts: list[Object], volumes: set[str], field: str) -> list[Cause]:
    found: list[Cause] = []
    paths: set[str] = set()
    for index, mount in enumerate(mounts):
        where = f"{field}[{index}]"
        name, path = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            found.append(causes.required(f"{where}.name"))
        if name not in volumes:
            found.append(causes.not_found(f"{where}.name", name))
        if not path:
            found.append(causes.required(f"{where}.mountPath"))
        elif path in paths:
            found.append(causes.invalid(f"{where}.mountPath", path, "must be unique"))
        paths.add(path)
    return found


def _probe(probe: Object, field: str, *, once: bool) -> list[Cause]:
    found: list[Cause] = []
    given = [name for name in _HANDLERS if probe.get(name) is not None]
    if not given:
        found.append(causes.required(field, "must specify a handler type"))
    for extra in given[1:]:
        found.append(causes.forbidden(f"{field}.{extra}", "may not specify more than 1 handler type"))
    if given:
        found += _handler(given[0], probe[given[0]], f"{field}.{given[0]}")
    for name in (
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ):
        found += checks.non_negative(probe.get(name), f"{field}.{name}")
    if once and probe.get("successThreshold", 1) != 1:
        found.append(causes.invalid(f"{field}.successThreshold", probe["successThreshold"], "must be 1"))
    return found


def _handler(name: str, handler: Object, field: str) -> list[Cause]:
    found: list[Cause] = []
    if name == "exec":
        if not handler.get("command"):
            found.append(causes.required(f"{field}.command"))
        return found
    if name == "httpGet" and not handler.get("path"):
        found.append(causes.required(f"{field}.path"))
    port = handler.get("port")
    if isinstance(port, str):
        found += checks.port_name(port, f"{field}.port")
    else:
        found += checks.port_number(port, f"{field}.port")
    if name == "httpGet":
        found += checks.supported(handler.get("scheme", "HTTP"), ("HTTP", "HTTPS"), f"{field}.scheme")
    return found
