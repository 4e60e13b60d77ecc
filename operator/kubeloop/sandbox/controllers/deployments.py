"""The Deployment controller: a ReplicaSet per template, rolled over gradually, and a status that says so."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import datetime

from kubeloop.sandbox.controllers import rollout
from kubeloop.sandbox.controllers.base import Controller, controllers_of
from kubeloop.sandbox.controllers.client import SystemClient
from kubeloop.sandbox.controllers.conditions import find, put
from kubeloop.sandbox.controllers.graph import Graph
from kubeloop.sandbox.pipeline.backend import Backend
from kubeloop.sandbox.registry import Object, ResourceInfo
from kubeloop.sandbox.store import Event, to_json

DEPLOYMENTS = ("apps", "deployments")
REPLICA_SETS = ("apps", "replicasets")
DEFAULT_HISTORY = 10
"""How many old ReplicaSets are kept (spec.revisionHistoryLimit)."""


def parse_time(text: str) -> datetime:
    """A timestamp of an object."""
    return datetime.fromisoformat(text)


class DeploymentController(Controller):
    """Keys are (namespace, name)."""

    name = "deployment-controller"

    def __init__(self, backend: Backend, client: SystemClient, graph: Graph) -> None:
        self._backend = backend
        self._client = client
        self._graph = graph

    def observe(self, event: Event) -> Iterable[Hashable]:
        record = event.record
        if event.resource == DEPLOYMENTS:
            if event.type != "DELETED":
                yield (record.namespace, record.name)
        elif event.resource == REPLICA_SETS:
            yield from controllers_of(record.obj, "Deployment")

    def reconcile(self, key: Hashable) -> float | None:
        assert isinstance(key, tuple)
        namespace, name = key
        record = self._backend.store.get(DEPLOYMENTS, namespace, name)
        if record is None:
            return None
        deployment = record.obj
        uid = deployment["metadata"]["uid"]
        sets = rollout.by_age([node.obj for node in self._graph.controlled(uid, REPLICA_SETS)])
        if deployment["metadata"].get("deletionTimestamp"):
            return self._write_status(
                deployment, rollout.status(deployment, sets, rollout.find_new(deployment, sets))
            )
        new = rollout.find_new(deployment, sets)
        old = [item for item in sets if item is not new]
        paused = bool(deployment["spec"].get("paused"))
        if paused or self._scaling(deployment, sets):
            self._scale(deployment, new, old)
            return self._sync_plain(deployment, sets, new, paused=paused)
        if new is None:
            if not rollout.rolling(deployment) and self._stop_old(old):
                return self._sync(deployment, sets, new)
            self._create(deployment, sets)
            return None
        self._mark_revision(deployment, new, old)
        if not rollout.rolling(deployment) and self._stop_old(old):
            return self._sync(deployment, sets, new)
        wanted = rollout.new_set_replicas(deployment, sets, new)
        if wanted != rollout.replicas(new):
            self._resize(deployment, new, wanted)
        else:
            for item, fewer in rollout.scale_downs(deployment, old, new):
                self._resize(deployment, item, fewer)
            if rollout.complete(deployment, deployment.get("status") or {}):
                self._forget_history(deployment, old)
        return self._sync(deployment, sets, new)

    # -- ReplicaSets -----------------------------------------------------------------------------

    def _info(self, key: tuple[str, str]) -> ResourceInfo:
        info = self._backend.registry.any_version(*key)
        assert info is not None
        return info

    def _create(self, deployment: Object, sets: list[Object]) -> None:
        """A ReplicaSet for the present template."""
        metadata, spec = deployment["metadata"], deployment["spec"]
        template = spec["template"]
        collisions = (deployment.get("status") or {}).get("collisionCount") or 0
        name_hash = rollout.template_hash(to_json([template, collisions]))
        labels = {**(template.get("metadata") or {}).get("labels", {}), rollout.HASH_LABEL: name_hash}
        selector = dict(spec["selector"])
        selector["matchLabels"] = {**(selector.get("matchLabels") or {}), rollout.HASH_LABEL: name_hash}
        revision = max((rollout.revision(item) for item in sets), default=0) + 1
        copied = {
            key: value
            for key, value in (metadata.get("annotations") or {}).items()
            if not key.startswith(("deployment.kubernetes.io/", "kubectl.kubernetes.io/last-applied"))
        }
        replica_set: Object = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": f"{metadata['name']}-{name_hash}"[:253],
                "labels": labels,
                "annotations": {
                    **copied,
                    **self._counts(deployment),
                    rollout.REVISION: str(revision),
                },
                "ownerReferences": [_owner(deployment, "apps/v1", "Deployment")],
            },
            "spec": {
                "replicas": rollout.new_set_replicas(deployment, sets, None),
                "selector": selector,
                "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
            },
        }
        if spec.get("minReadySeconds"):
            replica_set["spec"]["minReadySeconds"] = spec["minReadySeconds"]
        created = self._client.create(self._info(REPLICA_SETS), metadata["namespace"], replica_set)
        text = f'Created new replica set "{created["metadata"]["name"]}"'
        self._announce(deployment, revision, "NewReplicaSetCreated", text)

    def _counts(self, deployment: Object) -> dict[str, str]:
        wanted = rollout.replicas(deployment)
        return {rollout.DESIRED: str(wanted), rollout.MAX: str(wanted + rollout.bounds(deployment)[0])}

    def _announce(self, deployment: Object, revision: int, reason: str, text: str) -> None:
        """Write the revision and the Progressing condition, through the status as the real one does."""
        metadata = deployment["metadata"]
        annotations = {**(metadata.get("annotations") or {}), rollout.REVISION: str(revision)}
        status = dict(deployment.get("status") or {})
        if deployment["spec"].get("progressDeadlineSeconds") is not None:
            now = self._backend.now()
            conditions = status.get("conditions") or ()
            status["conditions"] = put(conditions, "Progressing", "True", reason, text, now, update_time=True)
        changed = {**deployment, "metadata": {**metadata, "annotations": annotations}, "status": status}
        if changed != deployment:
            self._client.update(self._info(DEPLOYMENTS), changed, "status")

    def _mark_revision(self, deployment: Object, new: Object, old: list[Object]) -> None:
        """An old ReplicaSet that is the new one again gets the next revision."""
        wanted = max((rollout.revision(item) for item in old), default=0) + 1
        revision = max(rollout.revision(new), wanted)
        annotations = new["metadata"].get("annotations") or {}
        marks = {**self._counts(deployment), rollout.REVISION: str(revision)}
        if any(annotations.get(key) != value for key, value in marks.items()):
            metadata = new["metadata"]
            patch: Object = {"metadata": {"annotations": marks}}
            self._client.merge(self._info(REPLICA_SETS), metadata["namespace"], metadata["name"], patch)
        if rollout.revision(deployment) != revision:
            text = f'Found new replica set "{new["metadata"]["name"]}"'
            self._announce(self._fresh(deployment), revision, "FoundNewReplicaSet", text)

    def _fresh(self, deployment: Object) -> Object:
        metadata = deployment["metadata"]
        record = self._backend.store.get(DEPLOYMENTS, metadata["namespace"], metadata["name"])
        return record.obj if record is not None else deployment

    def _scaling(self, deployment: Object, sets: list[Object]) -> bool:
        """Whether only the number of replicas changed since the ReplicaSets were last looked at."""
        wanted = str(rollout.replicas(deployment))
        for item in sets:
            mark = (item["metadata"].get("annotations") or {}).get(rollout.DESIRED)
            if rollout.replicas(item) and mark is not None and mark != wanted:
                return True
        return False

    def _scale(self, deployment: Object, new: Object | None, old: list[Object]) -> None:
        """Spread a changed number of replicas over the ReplicaSets (sync.go: scale)."""
        active = [item for item in old if rollout.replicas(item)]
        if new is not None and (rollout.replicas(new) or not active):
            active.append(new)
        wanted = rollout.replicas(deployment)
        if len(active) <= 1:
            latest = active or ([new] if new is not None else [])
            for item in latest:
                self._resize(deployment, item, wanted)
            return
        surge, _ = rollout.bounds(deployment)
        missing = (wanted + surge if wanted else 0) - rollout.total(active)
        # Growth goes to the newest first, shrinking takes from the oldest.
        ordered = sorted(active, key=rollout.revision, reverse=missing > 0)
        for item in ordered:
            have = rollout.replicas(item)
            share = missing if missing > 0 else max(missing, -have)
            self._resize(deployment, item, have + share)
            missing -= share

    def _stop_old(self, old: list[Object]) -> bool:
        """Recreate: end all old pods first; whether some are left."""
        left = False
        for item in old:
            if rollout.replicas(item):
                self._resize(None, item, 0)
            running = rollout.count(item, "replicas") + rollout.count(item, "terminatingReplicas")
            left = left or bool(running or rollout.replicas(item))
        return left

    def _resize(self, deployment: Object | None, item: Object, wanted: int) -> None:
        metadata = item["metadata"]
        patch: Object = {"spec": {"replicas": wanted}}
        if deployment is not None:
            patch["metadata"] = {"annotations": self._counts(deployment)}
        self._client.merge(self._info(REPLICA_SETS), metadata["namespace"], metadata["name"], patch)

    def _forget_history(self, deployment: Object, old: list[Object]) -> None:
        limit = deployment["spec"].get("revisionHistoryLimit")
        keep = DEFAULT_HISTORY if limit is None else int(limit)
        idle = [item for item in old if not rollout.replicas(item) and not rollout.count(item, "replicas")]
        for item in sorted(idle, key=rollout.revision)[: max(0, len(idle) - keep)]:
            metadata = item["metadata"]
            info = self._info(REPLICA_SETS)
            self._client.delete(info, metadata["namespace"], metadata["name"], uid=metadata["uid"])

    # -- status ----------------------------------------------------------------------------------

    def _sync_plain(
        self, deployment: Object, sets: list[Object], new: Object | None, *, paused: bool
    ) -> float | None:
        """The status while nothing is rolled out: being scaled, or paused."""
        state = self._available(deployment, rollout.status(deployment, sets, new))
        if paused and find(state.get("conditions") or (), "Progressing") is not None:
            now, text = self._backend.now(), "Deployment is paused"
            state["conditions"] = put(
                state["conditions"], "Progressing", "Unknown", "DeploymentPaused", text, now, update_time=True
            )
        return self._write_status(deployment, state)

    def _sync(self, deployment: Object, sets: list[Object], new: Object | None) -> float | None:
        """The status of a rollout, Progressing condition and deadline included (syncRolloutStatus)."""
        deployment = self._fresh(deployment)
        state = self._available(deployment, rollout.status(deployment, sets, new))
        deadline = deployment["spec"].get("progressDeadlineSeconds")
        current = find(state.get("conditions") or (), "Progressing")
        done = current is not None and current["reason"] == "NewReplicaSetAvailable"
        settled = state.get("replicas", 0) == state.get("updatedReplicas", 0) and done
        again: float | None = None
        if deadline is not None and not settled:
            again = self._progress(deployment, state, new, current, float(deadline))
        self._write_status(deployment, state)
        return again

    def _available(self, deployment: Object, state: Object) -> Object:
        _, unavailable = rollout.bounds(deployment)
        enough = state.get("availableReplicas", 0) >= rollout.replicas(deployment) - unavailable
        word, text = ("Available", "has") if enough else ("Unavailable", "does not have")
        state["conditions"] = put(
            state.get("conditions") or (),
            "Available",
            "True" if enough else "False",
            f"MinimumReplicas{word}",
            f"Deployment {text} minimum availability.",
            self._backend.now(),
            update_time=True,
        )
        return state

    def _progress(
        self, deployment: Object, state: Object, new: Object | None, current: Object | None, deadline: float
    ) -> float | None:
        subject = f'Deployment "{deployment["metadata"]["name"]}"'
        if new is not None:
            subject = f'ReplicaSet "{new["metadata"]["name"]}"'
        now = self._backend.now()
        again: float | None = None
        if rollout.complete(deployment, state):
            found = ("True", "NewReplicaSetAvailable", f"{subject} has successfully progressed.")
        elif rollout.progressing(deployment, state):
            found = ("True", "ReplicaSetUpdated", f"{subject} is progressing.")
            if current is not None:
                # Each step forward renews the time from which the deadline is counted.
                kept = [c for c in state["conditions"] if c is not current]
                state["conditions"] = put(kept, "Progressing", *found, now, update_time=True)
                if current["status"] == "True":
                    state["conditions"][-1]["lastTransitionTime"] = current["lastTransitionTime"]
                return deadline
        elif current is not None and current["status"] == "True":
            since = (self._backend.clock.now() - parse_time(current["lastUpdateTime"])).total_seconds()
            if since < deadline:
                return deadline - since + 1
            found = ("False", "ProgressDeadlineExceeded", f"{subject} has timed out progressing.")
        else:
            return None
        state["conditions"] = put(state["conditions"], "Progressing", *found, now, update_time=True)
        return again

    def _write_status(self, deployment: Object, state: Object) -> float | None:
        deployment = self._fresh(deployment)
        if state != (deployment.get("status") or {}):
            self._client.update(self._info(DEPLOYMENTS), {**deployment, "status": state}, "status")
        return None


def _owner(obj: Object, api_version: str, kind: str) -> Object:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
