"""WebApps and their Deployments as a server sends them, settled and fully defaulted, for the benchmarks."""

from __future__ import annotations

import random
import sys
import uuid
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "operator"))

Object = dict[str, Any]


def _uid(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def _time(rng: random.Random) -> str:
    day, hour, minute, second = (rng.randint(1, last) for last in (28, 23, 59, 59))
    return f"2026-11-{day:02}T{hour:02}:{minute:02}:{second:02}Z"


def pair(number: int, rng: random.Random) -> tuple[Object, Object]:
    """The `number`-th WebApp and its Deployment."""
    name = f"{rng.choice(['shop', 'blog', 'api', 'frontend'])}-{number}"
    meta = {"namespace": f"team-{number % 50}", "name": name}
    made, version, owner = _time(rng), rng.randint(10_000, 9_999_999), _uid(rng)
    image, replicas = f"registry.example.com/{name}:v{rng.randint(1, 99)}", rng.randint(1, 9)
    conditions = [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": f"{replicas} of {replicas} replicas are available",
            "observedGeneration": 2,
            "lastTransitionTime": _time(rng),
        }
        for kind, status, reason in (
            ("Ready", "True", "DeploymentAvailable"),
            ("Progressing", "False", "DeploymentComplete"),
            ("Degraded", "False", "AsExpected"),
        )
    ]
    app = {
        "apiVersion": "example.com/v1",
        "kind": "WebApp",
        "metadata": {
            "creationTimestamp": made,
            "finalizers": ["webapp.example.com/cleanup"],
            "generation": 2,
            "managedFields": [_managed("kubectl", "Update", made, ["image", "replicas"])],
            **meta,
            "resourceVersion": str(version),
            "uid": owner,
        },
        "spec": {"image": image, "replicas": replicas},
        "status": {
            "availableReplicas": replicas,
            "conditions": conditions,
            "observedGeneration": 2,
            "phase": "Ready",
            "ready": True,
            "replicas": replicas,
            "selector": f"app.kubernetes.io/instance={name}",
        },
    }
    return app, _deployment(meta, owner, image, replicas, version + 1, rng)


def _managed(manager: str, operation: str, time: str, names: list[str], **more: str) -> Object:
    fields: Object = {f"f:{name}": {} for name in names}
    entry = {"apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {".": {}, **fields}}}
    return {**entry, "manager": manager, "operation": operation, "time": time, **more}


def _deployment(
    meta: Object, owner: str, image: str, replicas: int, version: int, rng: random.Random
) -> Object:
    name, made = meta["name"], _time(rng)
    selector = {"app.kubernetes.io/instance": name, "app.kubernetes.io/name": "webapp"}
    labels = {**selector, "app.kubernetes.io/managed-by": "webapp-operator"}
    container = {
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "name": "app",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    template = {
        "containers": [container],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }
    conditions = [
        {"type": kind, "status": "True", "lastUpdateTime": _time(rng), "lastTransitionTime": _time(rng)}
        | {"reason": reason, "message": message}
        for kind, reason, message in (
            ("Available", "MinimumReplicasAvailable", "Deployment has minimum availability."),
            (
                "Progressing",
                "NewReplicaSetAvailable",
                f'ReplicaSet "{name}-{rng.getrandbits(40):x}" has successfully progressed.',
            ),
        )
    ]
    return {
        "kind": "Deployment",
        "apiVersion": "apps/v1",
        "metadata": {
            **meta,
            "uid": _uid(rng),
            "resourceVersion": str(version),
            "generation": 1,
            "creationTimestamp": made,
            "labels": labels,
            "annotations": {
                "deployment.kubernetes.io/revision": "1",
                "webapp.example.com/applied": f"{rng.getrandbits(128):032x}.1",
            },
            "ownerReferences": [
                {
                    "apiVersion": "example.com/v1",
                    "kind": "WebApp",
                    "name": name,
                    "uid": owner,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [
                _managed("webapp-operator", "Apply", made, ["replicas", "selector", "template"]),
                _managed(
                    "kube-controller-manager", "Update", made, ["a", "b", "c", "d"], subresource="status"
                ),
            ],
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": selector},
            "template": {"metadata": {"labels": labels}, "spec": template},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
            },
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
        },
        "status": {
            "observedGeneration": 1,
            "replicas": replicas,
            "updatedReplicas": replicas,
            "readyReplicas": replicas,
            "availableReplicas": replicas,
            "conditions": conditions,
        },
    }
