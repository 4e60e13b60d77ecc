"""`Sandbox`: the simulated API server as one object to start, use and stop."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

import yaml

from kubeloop.clock import Clock, SystemClock
from kubeloop.sandbox.access import Access, Authorizer, User
from kubeloop.sandbox.builtins import INFOS
from kubeloop.sandbox.controllers import Controllers, DeploymentOptions
from kubeloop.sandbox.faults import Faults
from kubeloop.sandbox.faults.injector import Injector
from kubeloop.sandbox.http import HttpServer
from kubeloop.sandbox.inprocess import InProcessTransport
from kubeloop.sandbox.kubeconfig import kubeconfig
from kubeloop.sandbox.pipeline.backend import CRDS, Backend
from kubeloop.sandbox.pipeline.server import ApiServer
from kubeloop.sandbox.rbac import DEFAULT_OBJECTS, Rbac
from kubeloop.sandbox.registry import Object, Registry, ResourceInfo
from kubeloop.sandbox.requestlog import RequestLog
from kubeloop.sandbox.store import DEFAULT_HISTORY, Store

DEFAULT_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
USER_AGENT = "sandbox-test/1"
SERVED_TIMEOUT = 10.0
"""Seconds that a CRD gets to be served after it was applied with the direct helpers."""


class SandboxFault(AssertionError):
    """The sandbox itself failed while it answered (the client saw a 500); raised when it is closed."""


class SandboxError(Exception):
    """A direct helper's request was refused; `status` is the server's Status object."""

    def __init__(self, status: Object) -> None:
        super().__init__(f"{status.get('code')} {status.get('reason')}: {status.get('message')}")
        self.status = status
        self.code = int(status.get("code", 0))
        self.reason = str(status.get("reason", ""))


class Sandbox:
    """An API server in memory, with the controllers that give Deployments, namespaces and owners their life.

    - `clock`: where its time comes from; a `FakeClock` makes it stand still until a test moves it.
    - `step`: no threads; the controllers run when `settle` is called, until nothing more is due. With a fake
      clock and a `seed` a whole run is deterministic.
    - `http`: also listen on loopback, at `url` (`port` 0: a free port); `tls` with a certificate of its own
      (needs the package trustme).
    - `tokens`: bearer tokens and their users; none means that everybody is the administrator.
    - `authorizer`: who may do what; `rbac` takes the rights from Role and ClusterRole objects instead (with a
      few of the real server's default roles in place).
    - `deployments`: how the simulated Deployments behave (readiness delay, images that never start).
    - `history`: how many changes can be watched from; older ones answer 410.

    Use it as a context manager, or call `start` and `stop`.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        http: bool = False,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: bool = False,
        step: bool = False,
        controllers: bool = True,
        seed: int | None = None,
        tokens: Mapping[str, User] | None = None,
        authorizer: Authorizer | None = None,
        rbac: bool = False,
        deployments: DeploymentOptions | None = None,
        history: int = DEFAULT_HISTORY,
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        self._step = step
        self._http_wanted = http
        self._host, self._port, self._tls = host, port, tls
        self._http: HttpServer | None = None
        self._ca = b""
        self.backend = Backend(
            store=Store(history=history),
            registry=Registry(INFOS),
            clock=self.clock,
            rng=random.Random(seed),
            access=Access(dict(tokens or {}), authorizer),
        )
        self._rbac = rbac
        if rbac:
            if authorizer is not None:
                raise ValueError("rights come from an authorizer or from RBAC objects, not from both")
            self.backend.access.authorizer = Rbac(self.backend.store)
        self.api = ApiServer(self.backend)
        self.faults = Faults(seed)
        """What goes wrong on purpose, see `kubeloop.sandbox.faults`."""
        self._injector = Injector(self.api, self.faults)
        self._client = InProcessTransport(Injector(self.api, Faults()), internal=True)
        self._controllers = (
            Controllers(self.backend, self.api, deployments or DeploymentOptions()) if controllers else None
        )
        self._running = False

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> Sandbox:
        """Create the default namespaces, start the controllers' threads and the listener."""
        if self._running:
            return self
        self._running = True
        for name in DEFAULT_NAMESPACES:
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for obj in DEFAULT_OBJECTS if self._rbac else ():
            self.create(obj)
        if self._controllers is not None and not self._step:
            self._controllers.start()
        if self._http_wanted:
            context = None
            if self._tls:
                from kubeloop.sandbox.tls import server_context

                context, self._ca = server_context(self._host)
            self._http = HttpServer(self._injector, host=self._host, port=self._port, tls=context)
            self._http.start()
        return self

    def stop(self, timeout: float = 10.0) -> None:
        """Close every watch and connection, stop the threads; waits up to `timeout` seconds for each."""
        self.api.stopped = True
        self.faults.wake()
        if self._http is not None:
            self._http.stop(timeout)
            self._http = None
        if self._controllers is not None:
            self._controllers.stop(timeout)
        for watcher in self.backend.store.watchers():
            watcher.close()

    def __enter__(self) -> Sandbox:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if error is None:
            self.check()

    def check(self) -> None:
        """Raise `SandboxFault` if the sandbox had an internal error since it started."""
        faults = [*self.backend.faults]
        if faults:
            raise SandboxFault(f"{len(faults)} internal error(s) in the sandbox: {faults[0]!r}") from faults[
                0
            ]

    def settle(self) -> None:
        """With `step`: run the controllers until nothing more is due at the present time."""
        if self._controllers is not None:
            self._controllers.settle()

    # -- access ----------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Where it listens; only with `http`."""
        if self._http is None:
            raise RuntimeError("the sandbox does not listen: use Sandbox(http=True) and start it")
        return self._http.url

    @property
    def log(self) -> RequestLog:
        """Every request so far."""
        return self.backend.log

    @property
    def access(self) -> Access:
        """Tokens and the authorizer, changeable at any time."""
        return self.backend.access

    def transport(self, token: str | None = None) -> InProcessTransport:
        """A new in-process transport."""
        return InProcessTransport(self._injector, token=token)

    def kubeconfig(self, path: str | Path, *, token: str = "", namespace: str = "default") -> Path:
        """Write a kubeconfig (mode 0600) that leads here, and return its path."""
        return kubeconfig(Path(path), self.url, ca=self._ca, token=token, namespace=namespace)

    def compact(self) -> None:
        """Forget the history: reads and watches from an older resourceVersion now answer 410."""
        self.backend.store.compact()

    # -- direct helpers --------------------------------------------------------------------------

    def apply_yaml(self, text: str, *, manager: str = "sandbox-test") -> list[Object]:
        """Server-side apply (forced) of every document in `text`; the objects as they are then."""
        return [self.apply(document, manager=manager) for document in yaml.safe_load_all(text) if document]

    def apply(self, obj: Object, *, manager: str = "sandbox-test") -> Object:
        """Server-side apply (forced) of one object; a CRD is served when this returns.

        Raises `SandboxError`.
        """
        path = self._object_path(obj, name=True)
        result = self._send(
            "PATCH",
            f"{path}?fieldManager={quote(manager)}&force=true",
            obj,
            content_type="application/apply-patch+yaml",
        )
        if obj["kind"] == "CustomResourceDefinition" and self._controllers is not None:
            self._await_served(result)
        return result

    def _await_served(self, definition: Object) -> None:
        """Wait until every served version of a CRD is there. Raises TimeoutError (names taken, say)."""
        if self._step:
            self.settle()
            return
        name, spec = definition["metadata"]["name"], definition["spec"]
        group, plural = spec["group"], spec["names"]["plural"]
        wanted = [version["name"] for version in spec["versions"] if version.get("served")]
        watcher = self.backend.store.watch(CRDS, int(definition["metadata"]["resourceVersion"]), name=name)
        deadline = time.monotonic() + SERVED_TIMEOUT
        try:
            with watcher.wake:
                while not all(self.backend.registry.find(group, v, plural) for v in wanted):
                    left = deadline - time.monotonic()
                    if left <= 0:
                        raise TimeoutError(f"{name} was not served within {SERVED_TIMEOUT:g} s")
                    # Served shortly after the event that tells so: hence the short wait.
                    watcher.wake.wait(min(left, 0.02))
        finally:
            watcher.close()

    def create(self, obj: Object) -> Object:
        """Create one object. Raises `SandboxError`."""
        return self._send("POST", self._object_path(obj, name=False), obj)

    def get(self, resource: str, name: str, namespace: str | None = None) -> Object | None:
        """One object (``sandbox.get("deployments.apps", "hello", "default")``), None when it is not there."""
        try:
            return self._send("GET", f"{self._path(resource, namespace)}/{quote(name)}")
        except SandboxError as error:
            if error.code == 404:
                return None
            raise

    def list(self, resource: str, namespace: str | None = None) -> list[Object]:
        """All objects of a resource (of one namespace)."""
        found = self._send("GET", self._path(resource, namespace))
        head = {"apiVersion": found["apiVersion"], "kind": found["kind"].removesuffix("List")}
        return [{**head, **item} for item in found["items"]]

    def patch(
        self, resource: str, name: str, patch: Object, namespace: str | None = None, *, subresource: str = ""
    ) -> Object:
        """Merge patch. Raises `SandboxError`."""
        path = f"{self._path(resource, namespace)}/{quote(name)}" + (f"/{subresource}" if subresource else "")
        return self._send("PATCH", path, patch, content_type="application/merge-patch+json")

    def delete(
        self, resource: str, name: str, namespace: str | None = None, *, propagation: str = ""
    ) -> Object:
        """Delete one object. Raises `SandboxError`."""
        query = f"?propagationPolicy={propagation}" if propagation else ""
        return self._send("DELETE", f"{self._path(resource, namespace)}/{quote(name)}{query}")

    def now(self) -> datetime:
        """The sandbox's wall-clock time."""
        return self.clock.now().astimezone(UTC)

    def _send(
        self, method: str, target: str, body: Object | None = None, content_type: str = "application/json"
    ) -> Object:
        headers = {"content-type": content_type, "user-agent": USER_AGENT}
        data = json.dumps(body, ensure_ascii=False).encode() if body is not None else None
        response = self._client.request(method, target, headers=headers, body=data)
        answer: Object = json.loads(response.body) if response.body[:1] == b"{" else {}
        if response.status >= 400:
            raise SandboxError(answer or {"code": response.status, "message": response.body.decode()})
        return answer

    def _path(self, resource: str, namespace: str | None) -> str:
        plural, _, group = resource.partition(".")
        info = self.backend.registry.any_version(group, plural)
        if info is None:
            raise SandboxError({"code": 404, "reason": "NotFound", "message": f"no resource {resource}"})
        return _collection(info, namespace)

    def _object_path(self, obj: Object, *, name: bool) -> str:
        group, _, version = obj["apiVersion"].rpartition("/")
        info = self.backend.registry.by_kind(group, version, obj["kind"])
        if info is None:
            message = f"no kind {obj['kind']} in {obj['apiVersion']}"
            raise SandboxError({"code": 404, "reason": "NotFound", "message": message})
        namespace = obj["metadata"].get("namespace") or "default" if info.namespaced else None
        path = _collection(info, namespace)
        return f"{path}/{quote(obj['metadata']['name'])}" if name else path


def _collection(info: ResourceInfo, namespace: str | None) -> str:
    base = f"/apis/{info.group}/{info.version}" if info.group else f"/api/{info.version}"
    where = f"/namespaces/{quote(namespace)}" if namespace and info.namespaced else ""
    return f"{base}{where}/{info.plural}"
