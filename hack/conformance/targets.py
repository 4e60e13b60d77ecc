"""A real control plane as what scripts are played on."""

import base64
import json
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import urllib3
import yaml
from controlplane import ControlPlane

from .fixtures import install
from .script import Json, Shared
from .transports import HttpTransport, Transport
from .variables import ScriptError

_NO_USERS = {"anonymous": None, "stranger": "a-token-nobody-has"}


class RealTarget:
    """A control plane of our own (hack/controlplane), with pods that become ready."""

    patience = 60.0

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._transports: dict[str, HttpTransport] = {}
        self._pause = threading.Event()

    def transport(self, user: str) -> Transport:
        if user not in self._transports:
            kubeconfig = self._plane.kubeconfig("admin" if user in _NO_USERS else user)
            config = yaml.safe_load(kubeconfig.read_text())
            token = _NO_USERS.get(user, config["users"][0]["user"]["token"])
            ca = Path(config["clusters"][0]["cluster"]["certificate-authority"])
            self._transports[user] = HttpTransport(self._plane.server, ca=ca, token=token)
        return self._transports[user]

    def idle(self) -> None:
        self._pause.wait(0.05)

    def wait(self, seconds: float) -> None:
        self._pause.wait(seconds)

    def compact(self) -> None:
        # As kube-apiserver's own compactor goes about it, every five minutes: every server watches this key,
        # and forgets what its watch cache still has of the time before.
        read = json.loads(self._etcd("/v3/kv/range", {"key": "AA==", "count_only": True}))
        revision: str = read["header"]["revision"]
        self._etcd("/v3/kv/put", {"key": _base64("compact_rev_key"), "value": _base64(revision)})
        self._etcd("/v3/kv/compaction", {"revision": revision, "physical": True})

    def _etcd(self, path: str, body: Json) -> bytes:
        """Ask etcd itself, through its JSON gateway."""
        response = urllib3.request("POST", self._plane.etcd + path, json=body, timeout=10.0)
        if response.status != 200:
            raise ScriptError(f"etcd {path}: {response.status} {response.data!r}")
        return response.data

    def close(self) -> None:
        """Give the connections back."""
        for transport in self._transports.values():
            transport.close()


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@contextmanager
def real(shared: Shared) -> Iterator[RealTarget]:
    """A fresh control plane with the shared fixtures in it; nothing is left of it afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="conformance-") as folder,
        ControlPlane(Path(folder) / "plane", pods="fake") as plane,
    ):
        target = RealTarget(plane)
        try:
            install(target, shared)
            yield target
        finally:
            target.close()
