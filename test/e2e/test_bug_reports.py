"""Public bug reports that are about what a real server does, with the operator as a process.

The same reports in all their forms, on the sandbox and in no time: test/behaviours.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

LIMITED = "limited-operator"
GROUPS = {"example.com": ("webapps",), "apps": ("deployments",), "": ("services",)}


def webapp(name: str, namespace: str | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "WebApp",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "spec": {"image": "nginx:1.27", "replicas": 1, **spec},
    }


def phase(cluster: Any, name: str, namespace: str) -> str:
    app = cluster.get("webapp", name, namespace) or {}
    return str((app.get("status") or {}).get("phase") or "")


def role(namespace: str, *, without: str = "") -> list[dict[str, Any]]:
    """A Role for everything that the operator needs in a namespace, but perhaps one verb."""
    api, meta = "rbac.authorization.k8s.io", {"name": "limited", "namespace": namespace}
    verbs = [verb for verb in ("get", "list", "watch", "create", "patch", "delete") if verb != without]
    rules = [
        {
            "apiGroups": [group],
            "resources": [*kinds, *(f"{kind}/status" for kind in kinds if group)],
            "verbs": verbs,
        }
        for group, kinds in GROUPS.items()
    ]
    finalizers = {"apiGroups": ["example.com"], "resources": ["webapps/finalizers"], "verbs": ["update"]}
    rules.append(finalizers)
    subject = {"apiGroup": api, "kind": "User", "name": LIMITED}
    return [
        {"apiVersion": f"{api}/v1", "kind": "Role", "metadata": meta, "rules": rules},
        {
            "apiVersion": f"{api}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": api, "kind": "Role", "name": "limited"},
            "subjects": [subject],
        },
    ]


def apply(cluster: Any, *manifests: dict[str, Any]) -> None:
    """kubectl apply into the namespaces that the objects name."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})
    cluster.kubectl("apply", "--validate=false", "-f", "-", input=text)


@pytest.fixture
def namespaces(cluster: Any) -> Iterator[list[str]]:
    """Three of them."""
    names = [f"{cluster.namespace}-{suffix}" for suffix in ("one", "dark", "two")]
    for name in names:
        cluster.kubectl("create", "namespace", name)
    yield names
    for name in names:
        cluster.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


def test_list_without_watch_in_one_namespace_is_told_and_the_others_work(
    cluster: Any, start_on: Callable[..., Any], namespaces: list[str], tmp_path: Path
) -> None:
    """kube-rs/kube#1132: RBAC allows to list but not to watch, and nothing says so."""
    one, dark, two = namespaces
    apply(cluster, *role(one), *role(two), *role(dark, without="watch"))
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = LIMITED
    limited = tmp_path / "limited.kubeconfig"
    limited.write_text(yaml.safe_dump(config))
    apply(cluster, *(webapp("app", name) for name in namespaces))
    operator = start_on(
        cluster,
        f"--kubeconfig={limited}",
        *(f"--namespace={name}" for name in namespaces),
        "--health-bind-address=127.0.0.1:0",
    )

    def told() -> list[dict[str, Any]]:
        return [
            line for line in lines(operator) if dark in json.dumps(line) and "permission" in line["message"]
        ]

    cluster.wait(lambda: len(told()) == 3, 30, "a warning for each kind")
    assert {line["severity"] for line in told()} == {"WARNING"}
    assert {line["resource"] for line in told()} == {"webapps.example.com", "deployments.apps", "services"}
    assert all("watch" in line["error"] for line in told())
    cluster.wait(lambda: {phase(cluster, "app", name) for name in (one, two)} == {"Ready"}, 30, "the others")
    apply(cluster, *role(dark))
    cluster.wait(lambda: all(phase(cluster, "app", name) == "Ready" for name in namespaces), 30, "all ready")
    assert len(told()) == 3


def lines(operator: Any) -> list[dict[str, Any]]:
    whole = operator.log.read_text(errors="replace").rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]


def older_deployment(owner: dict[str, Any]) -> dict[str, Any]:
    """The Deployment that an older version made, with another selector, and somebody's finalizer."""
    labels = {"release": "old"}
    reference = {key: owner[key] for key in ("apiVersion", "kind")} | {
        key: owner["metadata"][key] for key in ("name", "uid")
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": owner["metadata"]["name"],
            "finalizers": ["example.com/slow"],
            "ownerReferences": [{**reference, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "nginx:1.0"}]},
            },
        },
    }


def release(cluster: Any, name: str) -> None:
    """Take the finalizers off a Deployment."""
    patch = '[{"op":"remove","path":"/metadata/finalizers"}]'
    cluster.kubectl("-n", cluster.namespace, "patch", f"deployment/{name}", "--type=json", "-p", patch)


def test_a_child_with_an_older_selector_is_replaced_by_one_delete(
    cluster: Any, start_operator: Callable[..., Any]
) -> None:
    """prometheus-operator/prometheus-operator#4519: deleted on each sync, while a finalizer keeps it."""
    ns = cluster.namespace
    cluster.apply(webapp("hello"))
    cluster.apply(older_deployment(cluster.get("webapp", "hello", ns)))
    old = cluster.get("deployment", "hello", ns)["metadata"]["uid"]
    mark = cluster.mark()
    start_operator("--resync=1")
    cluster.wait(lambda: phase(cluster, "hello", ns) == "Pending", 30, "the wait to be explained")
    # Resyncs, and events on top of them.
    for number in range(5):
        cluster.kubectl("-n", ns, "annotate", "--overwrite", "webapp/hello", f"touched={number}")
        cluster.kubectl("-n", ns, "label", "--overwrite", "deployment/hello", f"touched=v{number}")
    cluster.apply(webapp("witness"))
    cluster.wait(lambda: phase(cluster, "witness", ns) == "Ready", 30, "the witness")

    def deletes() -> list[Any]:
        return [write for write in cluster.writes(mark) if write[0] == "delete" and write[2] == ns]

    assert [write[1:4] for write in deletes()] == [("deployments", ns, "hello")]
    message = cluster.get("webapp", "hello", ns)["status"]["conditions"][0]["message"]
    assert f"Deployment {ns}/hello is being" in message
    release(cluster, "hello")
    cluster.wait(lambda: phase(cluster, "hello", ns) == "Ready", 60, "the new Deployment")
    uid = cluster.get("deployment", "hello", ns)["metadata"]["uid"]
    assert uid != old

    def owners() -> set[str]:
        found = json.loads(cluster.kubectl("-n", ns, "get", "replicasets", "-o", "json").stdout)["items"]
        return {item["metadata"]["ownerReferences"][0]["uid"] for item in found}

    cluster.wait(lambda: old not in owners(), 30, "the old ReplicaSet collected")
    assert uid in owners()
    assert len(deletes()) == 1


def test_the_old_child_of_a_new_object_of_the_name_is_waited_for(
    cluster: Any, start_operator: Callable[..., Any]
) -> None:
    """knative/serving#7556: created anew while the old child still has the old UID."""
    ns = cluster.namespace
    start_operator()
    cluster.apply(webapp("hello"))
    cluster.wait(lambda: phase(cluster, "hello", ns) == "Ready", 30, "the first one")
    old = cluster.get("deployment", "hello", ns)["metadata"]["uid"]
    patch = json.dumps({"metadata": {"finalizers": ["example.com/slow"]}})
    cluster.kubectl("-n", ns, "patch", "deployment/hello", "--type=merge", "-p", patch)
    cluster.kubectl("-n", ns, "delete", "webapp/hello", "--timeout=20s")
    cluster.apply(webapp("hello", image="nginx:1.28"))
    cluster.wait(lambda: phase(cluster, "hello", ns) == "Pending", 30, "the wait to be explained")
    live = cluster.get("deployment", "hello", ns)
    assert live["metadata"]["uid"] == old
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1.27"
    release(cluster, "hello")

    cluster.wait(lambda: phase(cluster, "hello", ns) == "Ready", 60, "the new Deployment")
    assert cluster.get("deployment", "hello", ns)["metadata"]["uid"] != old


def test_the_crd_goes_with_its_objects_and_work_goes_on_when_it_is_back(
    bare_cluster: Any, start_on: Callable[..., Any]
) -> None:
    """strimzi/strimzi-kafka-operator#11901: a CRD hangs on the finalizers of its objects, and the informer
    does not survive its 404."""
    cluster = bare_cluster
    cluster.install()
    operator = start_on(cluster, "--namespace=default")
    cluster.apply([webapp("one"), webapp("two")])
    cluster.wait(
        lambda: all(phase(cluster, n, "default") == "Ready" for n in ("one", "two")), 10, operator.tail()
    )
    cluster.kubectl("delete", "crd", "webapps.example.com", "--timeout=30s")
    # The real garbage collector hears of a new kind twice a minute, so the children may still be there.
    cluster.wait(lambda: [x for x in lines(operator) if "does not exist" in x["message"]], 30, "the 404 told")
    assert operator.child.poll() is None
    cluster.install()
    cluster.apply(webapp("three"))

    cluster.wait(lambda: phase(cluster, "three", "default") == "Ready", 60, "work to go on")
    assert cluster.get("webapp", "one", "default") is None
