"""The sandbox over sockets, in real time: for what is about bytes, TLS, proxies and credentials."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubeloop.client import Client, ClusterConfig, connect, load_config
from kubeloop.clock import StopEvent
from kubeloop.manager import Manager
from kubeloop.sandbox import Sandbox
from webapp_operator.types import WebApp


class Live:
    """A sandbox that is reached over sockets, in real time."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.sandbox = Sandbox(http=True, **options)
        self.sandbox.start()
        self.sandbox.apply(WebApp.crd())
        self.clients: list[Client] = []

    def client(self, config: ClusterConfig | None = None, *, token: str = "", **options: Any) -> Client:
        """A client on sockets; by default with a kubeconfig that leads here."""
        if config is None:
            config = load_config(str(self.sandbox.kubeconfig(self.folder / "kubeconfig", token=token)))
        self.clients.append(connect(config, **options))
        return self.clients[-1]

    def changed(
        self, *, folder: Path | None = None, user: dict[str, Any] | None = None, **cluster: Any
    ) -> Path:
        """A kubeconfig that leads here, with another user and with these of the cluster's entries changed."""
        path = self.sandbox.kubeconfig((folder or self.folder) / "config")
        document = yaml.safe_load(path.read_text())
        document["clusters"][0]["cluster"].update(cluster)
        if user is not None:
            document["users"][0]["user"] = user
        path.write_text(yaml.safe_dump(document))
        return path

    def authority(self) -> bytes:
        """The certificate that verifies the server, as PEM."""
        document = yaml.safe_load(self.sandbox.kubeconfig(self.folder / "ca").read_text())
        return base64.b64decode(document["clusters"][0]["cluster"]["certificate-authority-data"])

    def service_account(self) -> Path:
        """The folder that a kubelet would mount, for the token `robot`."""
        folder = self.folder / "account"
        folder.mkdir()
        (folder / "ca.crt").write_bytes(self.authority())
        (folder / "token").write_text("robot\n")
        (folder / "namespace").write_text("default")
        return folder

    def in_cluster(self) -> ClusterConfig:
        """What a pod finds."""
        host, _, port = self.sandbox.url.removeprefix("https://").rpartition(":")
        environ = {
            "HOME": str(self.folder),
            "KUBERNETES_SERVICE_HOST": host.strip("[]"),
            "KUBERNETES_SERVICE_PORT": port,
        }
        return load_config(environ=environ, service_account=str(self.service_account()))

    def make(self, name: str = "hello") -> None:
        """A WebApp, made by its user."""
        meta, spec = {"name": name, "namespace": "default"}, {"image": "nginx:1.27"}
        self.sandbox.create(
            {"apiVersion": "example.com/v1", "kind": "WebApp", "metadata": meta, "spec": spec}
        )

    @staticmethod
    def until(holds: Callable[[], object], within: float = 20.0, what: str = "") -> None:
        """Look until something holds."""
        pause = threading.Event()
        give_up = time.monotonic() + within
        while not holds():
            assert time.monotonic() < give_up, f"waited {within:g} s in vain: {what or holds}"
            pause.wait(0.005)

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.sandbox.stop()
        self.sandbox.check()


@pytest.fixture
def make_live(tmp_path: Path) -> Iterator[Callable[..., Live]]:
    """Makes a sandbox that listens; arguments are the Sandbox's."""
    made: list[Live] = []

    def make(**options: Any) -> Live:
        made.append(Live(tmp_path, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def run() -> Iterator[Callable[..., StopEvent]]:
    """Runs managers until the end of the test."""
    running: list[tuple[StopEvent, threading.Thread]] = []

    def start(manager: Manager, stop: StopEvent | None = None) -> StopEvent:
        stop = stop or StopEvent()
        thread = threading.Thread(target=manager.run, args=(stop,))
        running.append((stop, thread))
        thread.start()
        return stop

    yield start
    for stop, thread in running:
        stop.set()
        thread.join(10)
        assert not thread.is_alive()
