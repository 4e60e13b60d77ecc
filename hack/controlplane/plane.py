"""The control plane itself: which processes, with which flags, in which order."""

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Self

from . import binaries, credentials
from .credentials import Credentials
from .errors import ControlPlaneError
from .kubelet import FakeKubelet
from .processes import POLL, STOP_TIMEOUT, HttpClient, PortTaken, Process, wait_ready

HOST = "127.0.0.1"
ATTEMPTS = 3
"""Starts that may fail because somebody took a port that was free a moment before."""
CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
)
AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {level: None, users: ["controlplane", "system:apiserver"]}
- {level: Metadata}
"""


class ControlPlane:
    """One control plane under one folder.  As a context manager it is stopped and its folder removed.

    `pods="fake"` lets a fake kubelet (a thread here) call every pod ready; `"kwok"` runs kube-scheduler and
    kwok with fake nodes; None leaves pods pending.
    """

    def __init__(self, folder: Path, *, pods: str | None = None, detached: bool = False) -> None:
        """Nothing is started yet.  A `detached` one goes on when this process ends, until `stop_recorded`."""
        if detached and pods == "fake":
            raise ControlPlaneError("the fake kubelet ends with its process: detached takes pods='kwok'")
        self.folder = folder.absolute()
        self.server = ""
        self.etcd = ""
        self._pods = pods
        self._detached = detached
        self._processes: list[Process] = []
        self._ports: list[int] = []
        self._kubelet: FakeKubelet | None = None
        self._credentials: Credentials | None = None

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def has_controllers(self) -> bool:
        """Whether Deployments get pods here ($KUBEBUILDER_ASSETS may lack kube-controller-manager)."""
        return binaries.find("kube-controller-manager") is not None

    @property
    def audit_log(self) -> Path:
        """One JSON event a line for each finished request, of every user but the control plane's parts."""
        return self.folder / "audit.log"

    def kubeconfig(self, user: str = "admin") -> Path:
        """The kubeconfig of one of `credentials.USERS`."""
        return self.folder / f"{user}.kubeconfig"

    def client(self, user: str = "admin") -> HttpClient:
        if self._credentials is None:
            raise ControlPlaneError("not started")
        return HttpClient(self.server, ca=self._credentials.ca, token=self._credentials.tokens[user])

    # -- start

    def start(self) -> Self:
        """Returns when it is ready to serve; raises `ControlPlaneError` and leaves nothing running."""
        if (self.folder / "state.json").exists():
            raise ControlPlaneError(f"{self.folder} already holds a control plane; take it down first")
        self.folder.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._start_once()
                return self
            except PortTaken:
                self.stop()
                if attempt == ATTEMPTS:
                    raise
            except BaseException:
                self.stop()
                raise
        raise AssertionError("unreachable")

    def _start_once(self) -> None:
        for name in ("etcd-data", "pki"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self._credentials = credentials.create(self.folder / "pki")
        self._ports = _free_ports(6)
        ports = iter(self._ports)
        etcd = self._start_etcd(next(ports), next(ports))
        self._start_apiserver(etcd, next(ports))
        waiting = []
        if self.has_controllers:
            waiting.append(self._start_controllers(next(ports)))
        if self._pods == "kwok":
            waiting.append(self._start_scheduler(next(ports)))
            waiting.append(self._start_kwok(next(ports)))
        for process, client, path in waiting:
            wait_ready(process, client, path, lambda _: True)
        if self._pods == "kwok":
            self._create_nodes()
        elif self._pods == "fake":
            self._kubelet = FakeKubelet(self.client("controlplane"))
            self._kubelet.start()

    def back_up(self) -> Path:
        """A copy of what etcd holds, for `restore`; etcd is away for that moment."""
        backup = self.folder / "etcd-backup"
        self._stop("etcd")
        shutil.rmtree(backup, ignore_errors=True)
        shutil.copytree(self.folder / "etcd-data", backup)
        self._start_etcd(*self._ports[:2])
        return backup

    def restore(self, backup: Path) -> None:
        """Go back to what `back_up` gave. All that happened since is forgotten, and resourceVersions with it.

        The API server starts anew, as Kubernetes' documentation asks for: one that goes on does not notice,
        and serves what it remembers.
        """
        self._stop("kube-apiserver")
        self._stop("etcd")
        shutil.rmtree(self.folder / "etcd-data")
        shutil.copytree(backup, self.folder / "etcd-data")
        self._start_apiserver(self._start_etcd(*self._ports[:2]), self._ports[2])

    def _stop(self, program: str) -> None:
        """End one process. Started again it has its old place, and so is stopped in its turn at the end."""
        for process in self._processes:
            if process.name == program:
                process.stop()

    def _spawn(self, program: str, *flags: str) -> Process:
        command = [str(binaries.need(program)), *flags]
        process = Process(program, command, folder=self.folder, detached=self._detached)
        names = [each.name for each in self._processes]
        if program in names:
            self._processes[names.index(program)] = process
        else:
            self._processes.append(process)
        state = {"server": self.server, "pids": {each.name: each.pid for each in self._processes}}
        (self.folder / "state.json").write_text(json.dumps(state, indent=1))
        return process

    def _start_etcd(self, client_port: int, peer_port: int) -> str:
        client, peer = f"http://{HOST}:{client_port}", f"http://{HOST}:{peer_port}"
        process = self._spawn(
            "etcd",
            f"--data-dir={self.folder / 'etcd-data'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--log-level=warn",
            "--unsafe-no-fsync",  # a test's data need not survive a power cut
        )
        wait_ready(process, HttpClient(client), "/health", lambda body: b'"true"' in body)
        self.etcd = client
        return client

    def _start_apiserver(self, etcd: str, port: int) -> None:
        assert self._credentials is not None
        files = self._credentials
        self.server = f"https://{HOST}:{port}"
        for user, token in files.tokens.items():
            path = self.kubeconfig(user)
            credentials.write_kubeconfig(path, server=self.server, ca=files.ca, user=user, token=token)
        policy = self.folder / "audit-policy.yaml"
        policy.write_text(AUDIT_POLICY)
        process = self._spawn(
            "kube-apiserver",
            f"--etcd-servers={etcd}",
            f"--bind-address={HOST}",
            f"--advertise-address={HOST}",
            f"--secure-port={port}",
            f"--tls-cert-file={files.server_certificate}",
            f"--tls-private-key-file={files.server_key}",
            f"--token-auth-file={files.token_file}",
            "--authorization-mode=RBAC",
            # As in real clusters, where it is often on: blockOwnerDeletion needs update on finalizers.
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={files.service_account_key}",
            f"--service-account-signing-key-file={files.service_account_key}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            f"--audit-policy-file={policy}",
            f"--audit-log-path={self.audit_log}",
        )
        wait_ready(process, self.client("controlplane"), "/readyz", lambda body: body == b"ok")

    def _start_controllers(self, port: int) -> tuple[Process, HttpClient, str]:
        assert self._credentials is not None
        process = self._spawn(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig('controlplane')}",
            "--leader-elect=false",
            f"--bind-address={HOST}",
            f"--secure-port={port}",
            f"--service-account-private-key-file={self._credentials.service_account_key}",
            f"--root-ca-file={self._credentials.ca}",
            f"--controllers={','.join(CONTROLLERS)}",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        )
        return process, HttpClient(f"https://{HOST}:{port}"), "/healthz"

    def _start_scheduler(self, port: int) -> tuple[Process, HttpClient, str]:
        process = self._spawn(
            "kube-scheduler",
            f"--kubeconfig={self.kubeconfig('controlplane')}",
            "--leader-elect=false",
            f"--bind-address={HOST}",
            f"--secure-port={port}",
        )
        return process, HttpClient(f"https://{HOST}:{port}"), "/healthz"

    def _start_kwok(self, port: int) -> tuple[Process, HttpClient, str]:
        process = self._spawn(
            "kwok",
            f"--kubeconfig={self.kubeconfig('controlplane')}",
            f"--config={binaries.HERE / 'kwok' / 'stages.yaml'}",
            "--manage-all-nodes=true",
            f"--server-address={HOST}:{port}",
        )
        return process, HttpClient(f"http://{HOST}:{port}"), "/healthz"

    def _create_nodes(self, count: int = 4) -> None:
        room = {"cpu": "1000", "memory": "4Ti", "pods": "10000"}
        client = self.client("controlplane")
        for number in range(count):
            node: dict[str, Any] = {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": f"kwok-{number}"},
                "status": {"allocatable": room, "capacity": room},
            }
            client.request("POST", "/api/v1/nodes", json.dumps(node).encode())
            # Admission taints new nodes as not ready, and no node controller runs that would lift that.
            client.request(
                "PATCH",
                f"/api/v1/nodes/kwok-{number}",
                b'{"spec": {"taints": null}}',
                kind="application/merge-patch+json",
            )

    # -- stop

    def stop(self) -> None:
        """End everything, last started first.  Harmless when nothing runs."""
        if self._kubelet is not None:
            self._kubelet.stop()
            self._kubelet = None
        while self._processes:
            self._processes.pop().stop()
        (self.folder / "state.json").unlink(missing_ok=True)


def stop_recorded(folder: Path) -> None:
    """End the processes of a detached control plane, by what its `state.json` says."""
    folder = folder.absolute()
    try:
        state = json.loads((folder / "state.json").read_text())
    except FileNotFoundError as error:
        raise ControlPlaneError(f"no control plane in {folder}") from error
    for pid in reversed(list(state["pids"].values())):
        for number in (signal.SIGTERM, signal.SIGKILL):
            # A process id may have been given to somebody else: every program of ours names its folder.
            if str(folder) not in _command_line(pid):
                break
            os.kill(pid, number)
            _wait_gone(pid, str(folder))
    (folder / "state.json").unlink()


def _wait_gone(pid: int, folder: str) -> None:
    deadline, pause = time.monotonic() + STOP_TIMEOUT, threading.Event()
    while folder in _command_line(pid) and time.monotonic() < deadline:
        pause.wait(POLL)


def _command_line(pid: int) -> str:
    return subprocess.run(["ps", "-ww", "-o", "args=", "-p", str(pid)], capture_output=True, text=True).stdout


def _free_ports(count: int) -> list[int]:
    """Different free loopback ports: all are held open until the last one is known."""
    held = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports
