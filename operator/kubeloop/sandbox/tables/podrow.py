"""The row of a pod: its one-word status takes some deciding."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubeloop.sandbox.tables.duration import since

Object = dict[str, Any]

_NONE = "<none>"


def pod(obj: Object, now: datetime) -> list[Any]:
    """printPod."""
    metadata, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    reason, ready, restarts, last = _containers(spec, status)
    phase = status.get("phase", "")
    if metadata.get("deletionTimestamp") and phase not in ("Succeeded", "Failed"):
        reason = "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    shown = str(restarts)
    if restarts and last:
        shown = f"{restarts} ({since(last, now)} ago)"
    ips = status.get("podIPs") or [{"ip": status.get("podIP")}]
    return [
        metadata.get("name", ""),
        f"{ready}/{len(spec.get('containers') or ())}",
        reason,
        shown,
        since(metadata.get("creationTimestamp"), now),
        ips[0].get("ip") or _NONE,
        spec.get("nodeName") or _NONE,
        status.get("nominatedNodeName") or _NONE,
        _gates(spec, status),
    ]


def _gates(spec: Object, status: Object) -> str:
    gates = spec.get("readinessGates") or ()
    if not gates:
        return _NONE
    true = {c.get("type") for c in status.get("conditions") or () if c.get("status") == "True"}
    return f"{sum(gate.get('conditionType') in true for gate in gates)}/{len(gates)}"


def _condition(status: Object, kind: str) -> bool:
    conditions = status.get("conditions") or ()
    return any(c.get("type") == kind and c.get("status") == "True" for c in conditions)


def _containers(spec: Object, status: Object) -> tuple[str, int, int, str]:
    """The reason to show, how many containers are ready, restarts, and when the last one was."""
    reason = status.get("reason") or status.get("phase", "")
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    initializing, reason, restarts, last = _init(spec, status, reason)
    if initializing and not _condition(status, "Initialized"):
        return reason, 0, restarts, last
    restarts, last, ready, running, error = 0, "", 0, False, ""
    for container in reversed(status.get("containerStatuses") or []):
        restarts += container.get("restartCount", 0)
        last = max(last, _finished(container))
        state = container.get("state") or {}
        waiting, terminated = state.get("waiting"), state.get("terminated")
        if waiting and waiting.get("reason"):
            reason = waiting["reason"]
        elif terminated is not None:
            reason = _ended(terminated, "")
            if terminated.get("exitCode"):
                error = reason
        elif container.get("ready") and state.get("running") is not None:
            running = True
            ready += 1
    if reason == "Completed":
        if running and _condition(status, "Ready"):
            reason = "Running"
        elif error:
            reason = error
        elif running:
            reason = "NotReady"
    return reason, ready, restarts, last


def _finished(container: Object) -> str:
    terminated = (container.get("lastState") or {}).get("terminated") or {}
    return str(terminated.get("finishedAt") or "")


def _ended(terminated: Object, prefix: str) -> str:
    if terminated.get("reason"):
        return prefix + str(terminated["reason"])
    if terminated.get("signal"):
        return f"{prefix}Signal:{terminated['signal']}"
    return f"{prefix}ExitCode:{terminated.get('exitCode', 0)}"


def _init(spec: Object, status: Object, reason: str) -> tuple[bool, str, int, str]:
    restarts, last = 0, ""
    total = len(spec.get("initContainers") or ())
    for index, container in enumerate(status.get("initContainerStatuses") or ()):
        restarts += container.get("restartCount", 0)
        last = max(last, _finished(container))
        state = container.get("state") or {}
        waiting, terminated = state.get("waiting") or {}, state.get("terminated")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if terminated is not None:
            return True, _ended(terminated, "Init:"), restarts, last
        if waiting.get("reason") and waiting["reason"] != "PodInitializing":
            return True, f"Init:{waiting['reason']}", restarts, last
        return True, f"Init:{index}/{total}", restarts, last
    return False, reason, restarts, last
