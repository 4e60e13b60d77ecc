"""A day with kubectl, in each minor version there is: what it prints is what it prints on a real server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.compat

Kubectl = Callable[..., str]

ROOT = Path(__file__).parent.parent.parent
CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: web}}
data: {color: red, size: small}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - {name: web, image: "nginx:1.27", ports: [{containerPort: 80}]}
"""
GREETING = """\
apiVersion: compat.example.com/v1
kind: Greeting
metadata: {name: hello}
spec: {text: "Good morning"}
"""


@pytest.fixture(autouse=True)
def _tidy(server: Any) -> Iterator[None]:
    """A test that failed half-way does not fail the next ones."""
    yield
    for resource in ("greetings.compat.example.com", "deployments.apps", "configmaps"):
        for left in server.sandbox.list(resource, "default"):
            server.sandbox.patch(
                resource, left["metadata"]["name"], {"metadata": {"finalizers": None}}, "default"
            )
            server.sandbox.delete(resource, left["metadata"]["name"], "default")


def words(table: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines()]


def test_client_side_apply_adds_changes_and_prunes_fields(kubectl: Kubectl) -> None:
    apply = ("apply", "-f", "-")
    assert kubectl(*apply, text=CONFIG_MAP) == "configmap/settings created\n"
    assert kubectl(*apply, text=CONFIG_MAP) == "configmap/settings unchanged\n"
    changed = CONFIG_MAP.replace("size: small", "shape: round")
    diff = kubectl("diff", "-f", "-", text=changed, fails=True)
    assert "-  size: small" in diff
    assert "+  shape: round" in diff
    assert kubectl(*apply, "--dry-run=server", text=changed) == (
        "configmap/settings configured (server dry run)\n"
    )
    assert kubectl(*apply, text=changed) == "configmap/settings configured\n"
    assert json.loads(kubectl("get", "cm", "settings", "-o", "jsonpath={.data}")) == {
        "color": "red", "shape": "round",
    }  # fmt: skip
    assert "color: red" in kubectl("apply", "view-last-applied", "cm/settings")
    assert 'configmap "settings" deleted' in kubectl("delete", "-f", "-", text=CONFIG_MAP)


def test_server_side_apply_tells_conflicts_and_forces(kubectl: Kubectl) -> None:
    apply = ("apply", "--server-side", "-f", "-")
    assert kubectl(*apply, text=CONFIG_MAP) == "configmap/settings serverside-applied\n"
    other = CONFIG_MAP.replace("red", "blue")
    refused = kubectl(*apply, "--field-manager=another", text=other, fails=True)
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .data.color' in refused
    kubectl(*apply, "--field-manager=another", "--force-conflicts", text=other)
    managers = kubectl("get", "cm", "settings", "--show-managed-fields", "-o",
                       "jsonpath={.metadata.managedFields[*].manager}")  # fmt: skip
    assert sorted(managers.split()) == ["another", "kubectl"]
    kubectl("delete", "cm", "settings")


def test_a_client_side_applied_object_moves_to_server_side_apply(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", text=CONFIG_MAP)
    fewer = CONFIG_MAP.replace(", size: small", "")
    assert "serverside-applied" in kubectl("apply", "--server-side", "-f", "-", text=fewer)
    assert kubectl("get", "cm", "settings", "-o", "jsonpath={.data}") == '{"color":"red"}'
    kubectl("delete", "cm", "settings")


def test_create_in_its_many_forms(kubectl: Kubectl) -> None:
    assert kubectl("create", "namespace", "team") == "namespace/team created\n"
    assert "AlreadyExists" in kubectl("create", "namespace", "team", fails=True)
    kubectl("create", "configmap", "made", "-n", "team", "--from-literal=a=1")
    kubectl("create", "secret", "generic", "made", "-n", "team", "--from-literal=a=1")
    kubectl("create", "deployment", "made", "-n", "team", "--image=nginx", "--replicas=1", "--port=80")
    kubectl("expose", "deployment", "made", "-n", "team", "--port=80")
    kubectl("create", "role", "reader", "-n", "team", "--verb=get,list", "--resource=configmaps")
    kubectl("create", "rolebinding", "readers", "-n", "team", "--role=reader", "--user=ann")
    kubectl("create", "serviceaccount", "robot", "-n", "team")
    assert kubectl("get", "secret", "made", "-n", "team", "-o", "jsonpath={.data.a}") == "MQ=="
    assert "service/made" in kubectl("get", "deployment,service,cm", "-n", "team", "-o", "name")
    assert 'namespace "team" deleted' in kubectl("delete", "namespace", "team")
    assert "NotFound" in kubectl("get", "namespace", "team", fails=True)


def test_get_in_its_many_forms(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", text=GREETING)
    header, row = words(kubectl("get", "gr"))
    assert header == ["NAME", "TEXT", "SEEN", "AGE"]
    assert row[:3] == ["hello", "Good", "morning"]
    assert kubectl("get", "gr", "hello", "-o", "name") == "greeting.compat.example.com/hello\n"
    assert "text: Good morning" in kubectl("get", "greeting/hello", "-o", "yaml")
    assert "Labels:" not in kubectl("get", "gr", "-o", "wide")
    assert words(kubectl("get", "gr", "--show-labels"))[0][-1] == "LABELS"
    assert words(kubectl("get", "gr", "-A"))[1][:2] == ["default", "hello"]
    custom = kubectl("get", "gr", "-o", "custom-columns=NAME:.metadata.name,N:.spec.replicas")
    assert words(custom)[1] == ["hello", "1"]
    assert kubectl("get", "gr", "-o", "go-template={{len .items}}") == "1"
    assert kubectl("get", "gr", "--sort-by=.spec.text", "--no-headers").startswith("hello")
    assert (
        json.loads(kubectl("get", "--raw", "/apis/compat.example.com/v1/greetings"))["kind"] == "GreetingList"
    )
    assert "No resources found" in kubectl("get", "gr", "-l", "app=none")
    assert "No resources found" in kubectl("get", "gr", "--field-selector=metadata.name=none")
    assert "hello" in kubectl("get", "gr", "--chunk-size=1")
    assert "the server doesn't have a resource type" in kubectl("get", "nonsense", fails=True)
    kubectl("delete", "gr", "--all")


def test_built_in_kinds_have_their_columns(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", text=DEPLOYMENT)
    kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    assert words(kubectl("get", "deployments"))[0] == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    wide = words(kubectl("get", "deployments", "-o", "wide"))
    assert wide[0][-3:] == ["CONTAINERS", "IMAGES", "SELECTOR"]
    assert wide[1][-3:] == ["web", "nginx:1.27", "app=web"]
    assert words(kubectl("get", "rs"))[0] == ["NAME", "DESIRED", "CURRENT", "READY", "AGE"]
    assert words(kubectl("get", "pods"))[0] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    kubectl("create", "cm", "some", "--from-literal=a=1")
    assert words(kubectl("get", "cm"))[0] == ["NAME", "DATA", "AGE"]
    assert words(kubectl("get", "ns"))[0] == ["NAME", "STATUS", "AGE"]
    assert words(kubectl("get", "crd"))[0] == ["NAME", "CREATED", "AT"]
    assert "deployment.apps/web" in kubectl("get", "deployments,rs")
    kubectl("delete", "deployment", "web", "--cascade=foreground")


@pytest.mark.parametrize("kind", ["json", "merge", "strategic"])
def test_patches_of_each_type(kubectl: Kubectl, kind: str) -> None:
    kubectl("apply", "-f", "-", text=DEPLOYMENT)
    patch = {
        "json": '[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "caddy"}]',
        "merge": '{"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "caddy"}]}}}}',
        "strategic": '{"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "caddy"}]}}}}',
    }[kind]
    patched = ("patch", "deployment", "web", f"--type={kind}", "-p", patch)
    assert kubectl(*patched) == "deployment.apps/web patched\n"
    kubectl("rollout", "status", "deployment/web", "--timeout=20s")  # then nothing else changes it
    assert kubectl(*patched) == "deployment.apps/web patched (no change)\n"
    ports = kubectl("get", "deployment", "web", "-o", "jsonpath={..containers[0].ports[0].containerPort}")
    assert ports == ("" if kind == "merge" else "80")
    kubectl("delete", "deployment", "web")


def test_a_status_is_patched_through_its_subresource(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", text=GREETING)
    kubectl(
        "patch", "gr", "hello", "--subresource=status", "--type=merge", "-p", '{"status": {"said": "hi"}}'
    )
    assert "condition met" in kubectl("wait", "--for=jsonpath={.status.said}=hi", "gr/hello", "--timeout=5s")
    assert "timed out" in kubectl("wait", "--for=condition=Ready", "gr/hello", "--timeout=1s", fails=True)
    kubectl("delete", "gr", "hello")


def test_labels_annotations_and_the_editor(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", text=GREETING)
    assert kubectl("label", "gr", "hello", "tone=kind") == "greeting.compat.example.com/hello labeled\n"
    assert "already has a value" in kubectl("label", "gr", "hello", "tone=rude", fails=True)
    kubectl("label", "gr", "hello", "tone=rude", "--overwrite")
    assert kubectl("get", "gr", "-l", "tone=rude", "-o", "name")
    assert kubectl("label", "gr", "hello", "tone-") == "greeting.compat.example.com/hello unlabeled\n"
    assert "annotated" in kubectl("annotate", "gr", "hello", "note=x")
    assert "edited" in kubectl("edit", "gr", "hello", editor="sed -i s/morning/evening/")
    assert kubectl("get", "gr", "hello", "-o", "jsonpath={.spec.text}") == "Good evening"
    assert "Edit cancelled" in kubectl("edit", "gr", "hello")
    described = kubectl("describe", "gr", "hello")
    assert "Annotations:  note: x" in described
    assert described.splitlines()[-1].split() == ["Events:", "<none>"]
    kubectl("delete", "gr", "hello")


def test_replace_and_invalid_objects(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", text=GREETING)
    assert "replaced" in kubectl("replace", "-f", "-", text=GREETING.replace("morning", "night"))
    wrong = kubectl("apply", "-f", "-", text=GREETING.replace("text", "txt"), fails=True)
    assert 'unknown field "spec.txt"' in wrong
    empty = kubectl("replace", "-f", "-", text=GREETING.replace("Good morning", ""), fails=True)
    assert 'The Greeting "hello" is invalid: spec.text: Invalid value: ""' in empty
    assert "spec.text in body should be at least 1 chars long" in empty
    kubectl("delete", "gr", "hello")


def test_a_deployment_is_scaled_rolled_on_and_back(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", text=DEPLOYMENT)
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    assert kubectl("scale", "deployment/web", "--replicas=3") == "deployment.apps/web scaled\n"
    refused = kubectl("scale", "deployment/web", "--current-replicas=7", "--replicas=1", fails=True)
    assert "Expected replicas to be 7, was 3" in refused
    assert "image updated" in kubectl("set", "image", "deployment/web", "web=nginx:1.28")
    assert "env updated" in kubectl("set", "env", "deployment/web", "A=b")
    assert "restarted" in kubectl("rollout", "restart", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    assert "REVISION" in kubectl("rollout", "history", "deployment/web")
    assert "paused" in kubectl("rollout", "pause", "deployment/web")
    assert "resumed" in kubectl("rollout", "resume", "deployment/web")
    assert "rolled back" in kubectl("rollout", "undo", "deployment/web", "--to-revision=1")
    kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    assert kubectl("get", "deployment", "web", "-o", "jsonpath={..image}") == "nginx:1.27"
    assert "condition met" in kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=20s")
    described = kubectl("describe", "deployment", "web")
    assert "3 desired | 3 updated | 3 total | 3 available | 0 unavailable" in described
    kubectl("delete", "deployment", "web")


def test_dependents_are_orphaned_or_go_first(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", text=DEPLOYMENT)
    kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    kubectl("delete", "deployment", "web", "--cascade=orphan")
    kubectl("wait", "--for=delete", "deployment/web", "--timeout=20s")
    name = kubectl("get", "rs", "-l", "app=web", "-o", "name").strip()
    assert name.startswith("replicaset.apps/web-")
    assert not kubectl("get", name, "-o", "jsonpath={.metadata.ownerReferences}")
    kubectl("delete", name, "--cascade=foreground")
    assert "No resources found" in kubectl("get", "rs,pods", "-l", "app=web")


def test_deletion_waits_for_finalizers(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", text=GREETING)
    kubectl("patch", "gr", "hello", "--type=merge", "-p", '{"metadata": {"finalizers": ["a.example.com/b"]}}')
    kubectl("delete", "gr", "hello", "--wait=false")
    assert "timed out" in kubectl("wait", "--for=delete", "gr/hello", "--timeout=1s", fails=True)
    kubectl("patch", "gr", "hello", "--type=json", "-p", '[{"op": "remove", "path": "/metadata/finalizers"}]')
    kubectl("wait", "--for=delete", "gr/hello", "--timeout=10s")
    assert 'greetings.compat.example.com "hello" not found' in kubectl("delete", "gr", "hello", fails=True)


def test_discovery_and_explanations(kubectl: Kubectl) -> None:
    resources = words(kubectl("api-resources", "--api-group=compat.example.com"))
    assert resources[1] == ["greetings", "gr", "compat.example.com/v1", "true", "Greeting"]
    assert "deployments.apps" in kubectl("api-resources", "-o", "name", "--namespaced", "--verbs=list,patch")
    assert "compat.example.com/v1" in kubectl("api-versions").splitlines()
    explained = kubectl("explain", "greeting.spec")
    assert "text\t<string> -required-\n    What is said." in explained
    tree = kubectl("explain", "deployment.spec.template.spec.containers", "--recursive")
    assert "  livenessProbe\t<Probe>" in tree
    assert "containerPort\t<integer>" in tree
    assert "GROUP:      compat.example.com" in kubectl("explain", "gr")
    assert 'field "nonsense" does not exist' in kubectl("explain", "gr.nonsense", fails=True)
    assert "Server Version: v1.36" in kubectl("version")


def test_access_reviews(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "deployments") == "yes\n"


def test_the_projects_own_manifests_are_applied(kubectl: Kubectl) -> None:
    """All but the PodDisruptionBudget: of that kind kubectl says what it says of any unknown one."""
    folders = [str(ROOT / "config" / part) for part in ("crd", "rbac", "default")]
    kubectl("create", "namespace", "webapp-system")
    for folder in folders[:2]:
        made = kubectl("apply", "--server-side", "-k", folder)
        assert made.count("serverside-applied") == len(made.splitlines())
        again = kubectl("apply", "-k", folder, "--dry-run=server")
        assert again.count("(server dry run)") == len(
            [line for line in again.splitlines() if not line.startswith("Warning")]
        )
    rest = kubectl("apply", "--server-side", "-k", folders[2], fails=True)
    assert "deployment.apps/webapp-operator serverside-applied" in rest
    assert 'no matches for kind "PodDisruptionBudget" in version "policy/v1"' in rest
    kubectl("delete", "-k", folders[1])
    kubectl("delete", "-k", folders[0])
    kubectl("delete", "namespace", "webapp-system")


def test_an_unknown_kind_is_told_as_such(kubectl: Kubectl) -> None:
    unknown = GREETING.replace("Greeting", "Farewell")
    for mode in ([], ["--server-side"]):
        said = kubectl("apply", *mode, "-f", "-", text=unknown, fails=True)
        assert 'no matches for kind "Farewell" in version "compat.example.com/v1"' in said
        assert "ensure CRDs are installed first" in said


def test_a_watch_shows_what_happens(kubectl: Kubectl, kubectl_path: str, server: Any) -> None:
    command = [kubectl_path, "get", "gr", "--watch", "--output-watch-events", "--no-headers"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=server.environment) as watching:
        try:
            assert watching.stdout is not None
            kubectl("create", "-f", "-", text=GREETING)
            assert watching.stdout.readline().split()[:2] == ["ADDED", "hello"]
            kubectl("label", "gr", "hello", "a=b")
            assert watching.stdout.readline().split()[:2] == ["MODIFIED", "hello"]
            kubectl("delete", "gr", "hello")
            assert watching.stdout.readline().split()[:2] == ["DELETED", "hello"]
        finally:
            watching.terminate()
            watching.wait()


def test_no_request_was_one_the_sandbox_does_not_know(kubectl: Kubectl, server: Any) -> None:
    kubectl("get", "events")
    unknown = [
        f"{entry} {entry.path}" for entry in server.sandbox.log.entries() if entry.status in (415, 500, 501)
    ]
    assert not unknown, "\n".join(unknown)
