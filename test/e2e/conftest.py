"""The `cluster` of the end-to-end tests: first the sandbox over HTTPS, then (`-m e2e`) a real control plane.

Both flavours give the operator a user with exactly the rights that `config/rbac` gives it, tell which
requests it made, and have controllers that make Deployments available and collect garbage.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubeloop.client import Client, NotFound, connect, load_config
from kubeloop.model import Resource

ROOT = Path(__file__).resolve().parents[2]
POLL = 0.05
WRITE_VERBS = frozenset({"create", "update", "patch", "delete", "deletecollection"})
RBAC = ROOT / "config" / "rbac"
OPERATOR_ROLES = (RBAC / "operator_role.yaml", RBAC / "metrics_auth_role.yaml")
CRDS = ROOT / "config" / "crd"

KINDS = {
    "webapp": Resource("example.com", "v1", "webapps", "WebApp"),
    "deployment": Resource("apps", "v1", "deployments", "Deployment"),
    "service": Resource("", "v1", "services", "Service"),
    "lease": Resource("coordination.k8s.io", "v1", "leases", "Lease"),
    "namespace": Resource("", "v1", "namespaces", "Namespace", namespaced=False),
}

ACCOUNTS = ("scraper", "stranger")

Write = tuple[str, str, str, str, str, int]
"""verb, resource, namespace, name, subresource, status code (as an audit log calls them)."""


def kubectl_program() -> str:
    """kubectl from PATH, else the one that came with the development packages."""
    found = shutil.which("kubectl") or shutil.which("kubectl", path=str(Path(sys.executable).parent))
    assert found, "no kubectl on PATH nor beside the Python that runs the tests"
    return found


class Cluster(ABC):
    """An API server with the CRDs installed.  `namespace` is new for each test."""

    namespace = "default"
    kubeconfig: Path
    """The administrator's."""
    _client: Client | None = None
    operator_kubeconfig: Path
    """The user `operator`: the rights of config/rbac, and nothing else."""
    has_controllers: bool
    operator_subject: dict[str, str]
    """Who the operator is, as a role binding names it."""

    def kubectl(
        self, *args: str, check: bool = True, input: str | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator; with `check`, a failure fails the test with what it said."""
        done = subprocess.run(
            [
                kubectl_program(),
                f"--kubeconfig={self.kubeconfig}",
                f"--cache-dir={self.kubeconfig.parent / 'kubectl-cache'}",
                *args,
            ],
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        if check and done.returncode:
            pytest.fail(f"kubectl {' '.join(args)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def apply(self, manifest: dict[str, Any] | list[dict[str, Any]] | str) -> None:
        """kubectl apply of one object, several, or YAML; into the test's namespace unless it names one."""
        if not isinstance(manifest, str):
            items = manifest if isinstance(manifest, list) else [manifest]
            manifest = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        # No validation: that would fetch the OpenAPI document each time, and the server validates anyway.
        self.kubectl("apply", "-n", self.namespace, "--validate=false", "-f", "-", input=manifest)

    def get(self, kind: str, name: str, ns: str | None) -> dict[str, Any] | None:
        """One object, None when it is not there.  `ns` None: a cluster-wide kind.

        Not by kubectl: tests look many times a second, and would mostly wait for the processes.
        """
        if self._client is None:
            self._client = connect(load_config(str(self.kubeconfig)), pool_size=2)
        try:
            return self._client.get(KINDS[kind], name, ns)
        except NotFound:
            return None

    def close(self) -> None:
        """Close the connections that `get` uses."""
        if self._client is not None:
            self._client.close()

    def wait(self, predicate: Callable[[], object], timeout: float, what: str) -> None:
        """Look until `predicate` holds; fails the test after `timeout` seconds."""
        deadline, pause = time.monotonic() + timeout, threading.Event()
        while not predicate():
            if time.monotonic() > deadline:
                pytest.fail(f"waited {timeout:.0f} s in vain for: {what}")
            pause.wait(POLL)

    def create_namespace(self) -> None:
        self.namespace = f"test-{uuid.uuid4().hex[:8]}"
        self.kubectl("create", "namespace", self.namespace)

    def remove_namespace(self) -> None:
        self.kubectl("delete", "namespace", self.namespace, "--ignore-not-found", "--wait=false")
        self.namespace = "default"

    def install(self) -> None:
        """Install the CRDs."""
        for crd in sorted(CRDS.glob("*s.yaml")):
            self.apply(crd.read_text())
        self.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=20s")

    def allow_election(self) -> None:
        """Give the operator the rights on the Lease that it is shipped with, in the test's namespace."""
        objects = list(yaml.safe_load_all((RBAC / "leader_election_role.yaml").read_text()))
        for each in objects:
            each["metadata"]["namespace"] = self.namespace
            if "subjects" in each:
                each["subjects"] = [self.operator_subject]
        self.apply(objects)

    @abstractmethod
    def account(self, name: str) -> tuple[dict[str, str], str]:
        """One of `ACCOUNTS`, a ServiceAccount without rights: as a role binding names it, and its token."""

    def stop(self) -> None:
        """Stop the server and remove what it left behind."""
        if self._client is not None:
            self._client.close()

    @abstractmethod
    def mark(self) -> int:
        """A point in the server's log: everything that was answered before now lies before it."""

    def writes(self, since: int = 0, user: str = "operator") -> list[Write]:
        """The write requests that `user` made after `since`, in order; refused ones included.

        Without Events and Leases: those are no part of what a WebApp costs.
        """
        return [each for each in self.all_writes(since, user) if each[1] not in ("events", "leases")]

    @abstractmethod
    def all_writes(self, since: int, user: str) -> list[Write]:
        """The same with Events and Leases."""


class SandboxCluster(Cluster):
    """The embedded API server, in this process, reached over HTTPS like any other."""

    has_controllers = True
    _users = {"operator": "system:serviceaccount:webapp-system:webapp-operator"}
    operator_subject = {"kind": "ServiceAccount", "name": "webapp-operator", "namespace": "webapp-system"}

    def __init__(self, folder: Path) -> None:
        from kubeloop.sandbox import Sandbox, User

        tokens = {
            "token-admin": User("admin", ("system:masters",)),
            "token-operator": User(self._users["operator"]),
            # Tokens of ServiceAccounts are not made here.
            **{f"token-{name}": User(f"system:serviceaccount:default:{name}") for name in ACCOUNTS},
        }
        self.sandbox = Sandbox(http=True, tls=True, tokens=tokens, rbac=True)
        self.sandbox.start()
        self.sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "webapp-system"}})
        for file in sorted(RBAC.glob("*.yaml")):
            if file.name != "kustomization.yaml":
                self.sandbox.apply_yaml(file.read_text())
        self.kubeconfig = self.sandbox.kubeconfig(folder / "admin.kubeconfig", token="token-admin")
        self.operator_kubeconfig = self.sandbox.kubeconfig(
            folder / "operator.kubeconfig", token="token-operator"
        )

    def account(self, name: str) -> tuple[dict[str, str], str]:
        assert name in ACCOUNTS
        return {"kind": "ServiceAccount", "name": name, "namespace": "default"}, f"token-{name}"

    def stop(self) -> None:
        super().stop()
        self.sandbox.stop()
        self.sandbox.check()

    def mark(self) -> int:
        return self.sandbox.log.mark()

    def all_writes(self, since: int, user: str) -> list[Write]:
        return [
            (entry.verb, entry.resource, entry.namespace, entry.name, entry.subresource, entry.status)
            for entry in self.sandbox.log.writes(since=since)
            if entry.user == self._users.get(user, user)
        ]


class RealCluster(Cluster):
    """etcd, kube-apiserver and kube-controller-manager; a fake kubelet calls the pods ready."""

    operator_subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "operator"}

    def __init__(self, folder: Path) -> None:
        sys.path.insert(0, str(ROOT / "hack"))
        from controlplane import ControlPlane

        self._plane = ControlPlane(folder / "controlplane", pods="fake")
        self._plane.start()
        self._admin = self._plane.client()
        self.has_controllers = self._plane.has_controllers
        self.kubeconfig = self._plane.kubeconfig("admin")
        self.operator_kubeconfig = self._plane.kubeconfig("operator")
        for file in OPERATOR_ROLES:
            objects = list(yaml.safe_load_all(file.read_text()))
            for binding in objects:
                if "subjects" in binding:
                    binding["subjects"] = [self.operator_subject]
            self.apply(objects)

    def account(self, name: str) -> tuple[dict[str, str], str]:
        manifest = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
        self.apply(manifest)
        token = self.kubectl("create", "token", name, f"--namespace={self.namespace}").stdout.strip()
        return {"kind": "ServiceAccount", "name": name, "namespace": self.namespace}, token

    def stop(self) -> None:
        super().stop()
        self._plane.stop()

    def mark(self) -> int:
        """The audit log's size, once it holds all that was answered so far."""
        self._flush_audit_log()
        return self._plane.audit_log.stat().st_size

    def all_writes(self, since: int, user: str) -> list[Write]:
        self._flush_audit_log()
        with open(self._plane.audit_log, "rb") as log:
            log.seek(since)
            events = [json.loads(line) for line in log if line.endswith(b"\n")]
        return [
            _write(event)
            for event in events
            if event["user"]["username"] == user and event["verb"] in WRITE_VERBS
        ]

    def _flush_audit_log(self) -> None:
        """Wait until a request made now has got into the log: then all that were answered before have."""
        token = uuid.uuid4().hex
        with suppress(urllib.error.HTTPError):
            self._admin.request("GET", f"/version?flush={token}")
        start = max(0, self._plane.audit_log.stat().st_size - 65536)

        def arrived() -> bool:
            with open(self._plane.audit_log, "rb") as log:
                log.seek(start)
                return token.encode() in log.read()

        self.wait(arrived, 10, "the audit log to be written")


def _write(event: dict[str, Any]) -> Write:
    what = event.get("objectRef", {})
    names = (what.get(key, "") for key in ("resource", "namespace", "name", "subresource"))
    resource, namespace, name, subresource = names
    code = event["responseStatus"]["code"]
    return (event["verb"], resource, namespace, name, subresource, code)


FLAVOURS: dict[str, type[SandboxCluster] | type[RealCluster]] = {
    "sandbox": SandboxCluster,
    "controlplane": RealCluster,
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test that uses `cluster` runs on each flavour."""
    if {"cluster", "bare_cluster"} & set(metafunc.fixturenames):
        flavours = [pytest.param("sandbox"), pytest.param("controlplane", marks=pytest.mark.e2e)]
        metafunc.parametrize("flavour", flavours, indirect=True, scope="session")


@pytest.fixture(autouse=True)
def no_leaked_threads() -> None:
    """The sandbox of the whole session has a thread for each connection, which come and go as they like."""


@pytest.fixture(scope="session")
def flavour(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The server itself, one for all tests of its flavour."""
    made = FLAVOURS[request.param](tmp_path_factory.mktemp(request.param))
    try:
        made.install()
        yield made
    finally:
        made.close()
        made.stop()


@pytest.fixture
def cluster(flavour: Cluster) -> Iterator[Cluster]:
    """The server with a fresh namespace, which goes away afterwards (without waiting for it)."""
    flavour.create_namespace()
    yield flavour
    flavour.remove_namespace()


@pytest.fixture
def bare_cluster(flavour: Cluster, tmp_path: Path) -> Iterator[Cluster]:
    """A server of the test's own, of the same flavour, without the CRDs."""
    made = type(flavour)(tmp_path)  # type: ignore[call-arg]
    try:
        yield made
    finally:
        made.close()
        made.stop()


class OperatorProcess:
    """The operator as a user starts it: a process of its own, talking to the cluster over HTTP."""

    def __init__(self, cluster: Cluster, folder: Path, *flags: str) -> None:
        self.log = folder / "operator.log"
        command = [
            sys.executable,
            "-m",
            "webapp_operator.cli",
            f"--kubeconfig={cluster.operator_kubeconfig}",
            "--log-format=json",
            # Several of these run at once; a later flag wins.
            "--health-bind-address=0",
            "--metrics-bind-address=0",
            *flags,
        ]
        with open(self.log, "wb") as log:
            self.child = subprocess.Popen(
                command, cwd=ROOT / "operator", stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def stop(self) -> None:
        """SIGTERM must be enough, within seconds, and the exit code 0."""
        self.child.terminate()
        try:
            code = self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            pytest.fail(f"the operator did not stop on SIGTERM:\n{self.tail()}")
        if code:
            pytest.fail(f"the operator ended with code {code}:\n{self.tail()}")

    def port(self, server: str) -> int:
        """Where its `server` (health, metrics) listens."""
        return next(int(line["port"]) for line in self.lines("listening") if line["server"] == server)

    def lines(self, message: str) -> list[dict[str, Any]]:
        """What it has logged with this message."""
        whole = self.log.read_text(errors="replace").rpartition("\n")[0]
        found = [json.loads(line) for line in whole.splitlines() if line.startswith("{")]
        return [line for line in found if line["message"] == message]

    def tail(self, lines: int = 30) -> str:
        """The last lines of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


@pytest.fixture(scope="module")
def shared_operator(flavour: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    """One operator for all of a module's tests that only need one to run.

    It watches all namespaces, so it must not run on while another module's tests expect to be alone.
    """
    process = OperatorProcess(flavour, tmp_path_factory.mktemp("operator"))
    yield process
    process.stop()


@pytest.fixture
def operator(shared_operator: OperatorProcess, request: pytest.FixtureRequest) -> Iterator[OperatorProcess]:
    """The operator, running on all namespaces; its log is part of a failing test's report."""
    yield shared_operator
    request.node.add_report_section("teardown", "operator log", shared_operator.tail())


@pytest.fixture
def start_on(tmp_path: Path) -> Iterator[Callable[..., OperatorProcess]]:
    """Start an operator on a cluster; what still runs at the end of the test is stopped."""
    started: list[OperatorProcess] = []

    def start(cluster: Cluster, *flags: str) -> OperatorProcess:
        folder = tmp_path / f"operator-{len(started)}"
        folder.mkdir()
        started.append(OperatorProcess(cluster, folder, *flags))
        return started[-1]

    yield start
    for process in started:
        if process.child.poll() is None:
            process.stop()


@pytest.fixture
def start_operator(
    cluster: Cluster, start_on: Callable[..., OperatorProcess]
) -> Callable[..., OperatorProcess]:
    """Start an operator of the test's own, on its namespace only."""
    return partial(start_on, cluster, f"--namespace={cluster.namespace}")
