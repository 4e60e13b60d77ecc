"""What scripts are played on: a real control plane, or the sandbox in this process."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import urllib3
import yaml
from controlplane import ControlPlane

from .play import CRDS, Target
from .script import Json, Shared
from .transports import HttpTransport, Transport
from .variables import MISSING, ScriptError, lookup

_NO_USERS = {"anonymous": None, "stranger": "a-token-nobody-has"}
USERS = ("admin", "operator", "user", "anonymous", "stranger")


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
def real(folder: Path) -> Iterator[RealTarget]:
    """A fresh control plane under `folder`, removed afterwards."""
    with ControlPlane(folder, pods="fake") as plane:
        target = RealTarget(plane)
        try:
            yield target
        finally:
            target.close()


def install(target: Target, shared: Shared) -> None:
    """Create the objects that every script may rely on, and wait until their kinds are served."""
    transport = target.transport("admin")
    for obj in shared.fixtures:
        path = CRDS if obj["kind"] == "CustomResourceDefinition" else None
        if path is None:
            raise ScriptError(f"fixtures are CustomResourceDefinitions, not {obj['kind']}")
        _must(transport, "POST", path, obj)
    for obj in shared.fixtures:
        spec = obj["spec"]
        served = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}?limit=1"
        for path, wanted in (
            (f"{CRDS}/{obj['metadata']['name']}", "status.conditions[type=Established].status"),
            (served, "metadata.resourceVersion"),
        ):
            for _ in range(400):
                answer = _must(transport, "GET", path, None, allowed=(404,))
                if lookup(answer, wanted) not in (MISSING, "False"):
                    break
                target.idle()
            else:
                raise ScriptError(f"{path} is not served")


def _must(transport: Transport, method: str, path: str, obj: Json, *, allowed: tuple[int, ...] = ()) -> Any:
    headers = {"content-type": "application/json"}
    body = json.dumps(obj).encode() if obj is not None else None
    response = transport.request(method, path, headers=headers, body=body, timeout=30.0)
    if response.status >= 400 and response.status not in allowed:
        raise ScriptError(f"{method} {path}: {response.status} {response.body.decode(errors='replace')}")
    return json.loads(response.body)
