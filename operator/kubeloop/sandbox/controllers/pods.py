"""ReplicaSets make pods, and a simulated kubelet runs them: nothing is started, only reported.

There is no scheduler either: pods of ReplicaSets are born on the one simulated node.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from kubeloop.sandbox.controllers.base import Controller, controllers_of
from kubeloop.sandbox.controllers.client import SystemClient
from kubeloop.sandbox.controllers.deployments import REPLICA_SETS, _owner, parse_time
from kubeloop.sandbox.controllers.graph import Graph
from kubeloop.sandbox.controllers.rollout import replicas
from kubeloop.sandbox.pipeline.backend import Backend
from kubeloop.sandbox.registry import Object, ResourceInfo
from kubeloop.sandbox.store import Event

PODS = ("", "pods")
NODE = "sandbox"


def missing_image(image: str) -> bool:
    """The default for images that cannot be pulled."""
    return "doesnotexist" in image


@dataclass(frozen=True, slots=True)
class DeploymentOptions:
    """How simulated pods behave.

    `ready_after`: seconds until a pod is ready; `stop_after`: seconds it takes to stop (at most its grace
    period); `never_ready`: whether an image can not be pulled.
    """

    ready_after: float = 0.2
    stop_after: float = 0.0
    never_ready: Callable[[str], bool] = missing_image


def is_ready(pod: Object) -> Object | None:
    """The Ready condition, if it is True."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "Ready":
            return dict(condition) if condition["status"] == "True" else None
    return None


class ReplicaSetController(Controller):
    """Keys are (namespace, name)."""

    name = "replicaset-controller"

    def __init__(self, backend: Backend, client: SystemClient, graph: Graph) -> None:
        self._backend = backend
        self._client = client
        self._graph = graph

    def observe(self, event: Event) -> Iterable[Hashable]:
        record = event.record
        if event.resource == REPLICA_SETS and event.type != "DELETED":
            yield (record.namespace, record.name)
        elif event.resource == PODS:
            yield from controllers_of(record.obj, "ReplicaSet")

    def reconcile(self, key: Hashable) -> float | None:
        assert isinstance(key, tuple)
        record = self._backend.store.get(REPLICA_SETS, *key)
        if record is None:
            return None
        item = record.obj
        pods = [node.obj for node in self._graph.controlled(item["metadata"]["uid"], PODS)]
        active = [
            pod
            for pod in pods
            if not pod["metadata"].get("deletionTimestamp")
            and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        ]
        if not item["metadata"].get("deletionTimestamp"):
            self._manage(item, active)
        return self._report(item, pods, active)

    def _info(self, key: tuple[str, str]) -> ResourceInfo:
        info = self._backend.registry.any_version(*key)
        assert info is not None
        return info

    def _manage(self, item: Object, active: list[Object]) -> None:
        wanted = replicas(item)
        namespace = item["metadata"]["namespace"]
        for _ in range(wanted - len(active)):
            template = item["spec"]["template"]
            pod: Object = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    **(template.get("metadata") or {}),
                    "generateName": f"{item['metadata']['name']}-",
                    "ownerReferences": [_owner(item, "apps/v1", "ReplicaSet")],
                },
                "spec": {"nodeName": NODE, **template["spec"]},
            }
            self._client.create(self._info(PODS), namespace, pod)
        # Those that are not ready go first, then the youngest.
        ranked = sorted(active, key=lambda pod: pod["metadata"]["creationTimestamp"], reverse=True)
        ranked.sort(key=lambda pod: is_ready(pod) is not None)
        for pod in ranked[: max(0, len(active) - wanted)]:
            metadata = pod["metadata"]
            self._client.delete(self._info(PODS), namespace, metadata["name"], uid=metadata["uid"])

    def _report(self, item: Object, pods: list[Object], active: list[Object]) -> float | None:
        labels = (item["spec"]["template"].get("metadata") or {}).get("labels") or {}
        least = item["spec"].get("minReadySeconds") or 0
        again: float | None = None
        ready = available = 0
        for pod in active:
            condition = is_ready(pod)
            if condition is None:
                continue
            ready += 1
            since = parse_time(condition["lastTransitionTime"])
            left = least - (self._backend.clock.now() - since).total_seconds() if least else 0
            if left <= 0:
                available += 1
            else:
                again = left if again is None else min(again, left)
        labelled = [
            pod
            for pod in active
            if all((pod["metadata"].get("labels") or {}).get(k) == v for k, v in labels.items())
        ]
        numbers = {
            "fullyLabeledReplicas": len(labelled),
            "readyReplicas": ready,
            "availableReplicas": available,
        }
        status: Object = {"replicas": len(active)}
        status.update({name: number for name, number in numbers.items() if number})
        status["terminatingReplicas"] = sum(1 for pod in pods if pod["metadata"].get("deletionTimestamp"))
        status["observedGeneration"] = item["metadata"].get("generation", 0)
        if status != (item.get("status") or {}):
            current = self._backend.store.get(
                REPLICA_SETS, item["metadata"]["namespace"], item["metadata"]["name"]
            )
            if current is not None:
                self._client.update(self._info(REPLICA_SETS), {**current.obj, "status": status}, "status")
        return again


class Kubelet(Controller):
    """Makes pods ready after a while, and lets deleted ones go. Keys are (namespace, name)."""

    name = "kubelet"

    def __init__(self, backend: Backend, client: SystemClient, options: DeploymentOptions) -> None:
        self._backend = backend
        self._client = client
        self._options = options
        self._since: dict[tuple[str, str], float] = {}  # (uid, phase of life) -> monotonic seconds

    def observe(self, event: Event) -> Iterable[Hashable]:
        if event.resource != PODS:
            return
        if event.type == "DELETED":
            uid = event.record.obj["metadata"]["uid"]
            self._since.pop((uid, "start"), None)
            self._since.pop((uid, "stop"), None)
        else:
            yield (event.record.namespace, event.record.name)

    def _left(self, uid: str, phase: str, duration: float) -> float:
        """Seconds left of `duration` since the pod was first seen in this phase of life."""
        now = self._backend.clock.monotonic()
        return self._since.setdefault((uid, phase), now) + duration - now

    def reconcile(self, key: Hashable) -> float | None:
        assert isinstance(key, tuple)
        record = self._backend.store.get(PODS, *key)
        if record is None:
            return None
        pod = record.obj
        metadata = pod["metadata"]
        info = self._backend.registry.any_version(*PODS)
        assert info is not None
        if metadata.get("deletionTimestamp"):
            grace = float(metadata.get("deletionGracePeriodSeconds") or 0)
            left = self._left(metadata["uid"], "stop", min(grace, self._options.stop_after))
            if left > 0:
                return left
            if grace:
                uid = metadata["uid"]
                self._client.delete(info, record.namespace, record.name, uid=uid, grace_seconds=0)
            return None
        status = pod.get("status") or {}
        if status.get("phase") not in (None, "Pending"):
            return None
        containers = pod["spec"].get("containers") or ()
        if any(self._options.never_ready(container.get("image", "")) for container in containers):
            self._write(info, pod, self._waiting(pod, "ImagePullBackOff"))
            return None
        left = self._left(metadata["uid"], "start", self._options.ready_after)
        if left > 0:
            self._write(info, pod, self._waiting(pod, "ContainerCreating"))
            return left
        self._write(info, pod, self._running(pod))
        return None

    def _write(self, info: ResourceInfo, pod: Object, status: Object) -> None:
        present = pod.get("status") or {}
        if all(present.get(key) == value for key, value in status.items()):
            return
        metadata = pod["metadata"]
        self._client.merge(info, metadata["namespace"], metadata["name"], {"status": status}, "status")

    def _conditions(self, pod: Object, ready: bool, reason: str = "", message: str = "") -> list[Object]:
        now = self._backend.now()
        old = {c["type"]: c for c in (pod.get("status") or {}).get("conditions") or ()}
        result = []
        for kind, value in (
            ("PodReadyToStartContainers", True),
            ("Initialized", True),
            ("Ready", ready),
            ("ContainersReady", ready),
            ("PodScheduled", True),
        ):
            status = "True" if value else "False"
            same = kind in old and old[kind]["status"] == status
            condition: Object = {
                "type": kind,
                "status": status,
                "lastTransitionTime": old[kind]["lastTransitionTime"] if same else now,
            }
            if not value:
                condition |= {"reason": reason, "message": message}
            result.append(condition)
        return result

    def _containers(self, pod: Object, state: Object, *, ready: bool) -> list[Object]:
        return [
            {
                "name": container["name"],
                "image": container.get("image", ""),
                "imageID": f"sandbox://{container.get('image', '')}" if ready else "",
                "ready": ready,
                "started": ready,
                "restartCount": 0,
                "state": state,
            }
            | ({"containerID": f"sandbox://{pod['metadata']['uid']}/{container['name']}"} if ready else {})
            for container in pod["spec"].get("containers") or ()
        ]

    def _waiting(self, pod: Object, reason: str) -> Object:
        names = [container["name"] for container in pod["spec"].get("containers") or ()]
        text = f"containers with unready status: [{' '.join(names)}]"
        state: Object = {"waiting": {"reason": reason}}
        if reason == "ImagePullBackOff":
            image = pod["spec"]["containers"][0].get("image", "")
            state["waiting"]["message"] = f'Back-off pulling image "{image}": ErrImagePull: not found'
        return {
            "phase": "Pending",
            "conditions": self._conditions(pod, False, "ContainersNotReady", text),
            "containerStatuses": self._containers(pod, state, ready=False),
            "startTime": (pod.get("status") or {}).get("startTime") or self._backend.now(),
        }

    def _running(self, pod: Object) -> Object:
        now = self._backend.now()
        return {
            "phase": "Running",
            "conditions": self._conditions(pod, True),
            "containerStatuses": self._containers(pod, {"running": {"startedAt": now}}, ready=True),
            "startTime": (pod.get("status") or {}).get("startTime") or now,
            "hostIP": "127.0.0.1",
            "podIP": "127.0.0.1",
        }
