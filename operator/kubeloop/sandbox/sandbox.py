"""`Sandbox`: the simulated API server as one object to start, use and stop."""

from __future__ import annotations

import random
import ssl
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Literal

from kubeloop.clock import Clock, SystemClock
from kubeloop.sandbox.access import Access, Authorizer, User
from kubeloop.sandbox.admin import Admin
from kubeloop.sandbox.builtins import INFOS
from kubeloop.sandbox.controllers import Controllers, DeploymentOptions
from kubeloop.sandbox.crd import established
from kubeloop.sandbox.expect import Expectation, resolve
from kubeloop.sandbox.faults import Faults
from kubeloop.sandbox.faults.injector import Injector
from kubeloop.sandbox.helpers import Helpers, SandboxError
from kubeloop.sandbox.http import HttpServer
from kubeloop.sandbox.inprocess import InProcessTransport
from kubeloop.sandbox.kubeconfig import kubeconfig
from kubeloop.sandbox.pipeline.backend import CRDS, Backend
from kubeloop.sandbox.pipeline.server import ApiServer
from kubeloop.sandbox.rbac import DEFAULT_OBJECTS, Rbac
from kubeloop.sandbox.registry import Registry
from kubeloop.sandbox.requestlog import RequestLog
from kubeloop.sandbox.store import DEFAULT_HISTORY, Backup, Store

__all__ = ["DeploymentOptions", "Sandbox", "SandboxError", "SandboxFault"]

DEFAULT_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


class SandboxFault(AssertionError):
    """The sandbox itself failed while it answered (the client saw a 500); raised when it is closed."""


class Sandbox(Helpers):
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
    - `admin`: serve ``/sandbox/`` over HTTP, to this machine only (see `admin`).
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
        admin: bool = False,
    ) -> None:
        self.clock: Clock = clock or SystemClock()
        self._step = step
        self._has_controllers = controllers
        self._http_wanted = http
        self._host, self._port, self._tls = host, port, tls
        self._http: HttpServer | None = None
        self._ca = b""
        self._context: ssl.SSLContext | None = None
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
        self._deployments = deployments or DeploymentOptions()
        self._controllers = Controllers(self.backend, self.api, self._deployments) if controllers else None
        self._admin = Admin(self) if admin else None
        self._running = False
        self._restarting: threading.Thread | None = None

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> Sandbox:
        """Create the default namespaces, start the controllers' threads and the listener."""
        if self._running:
            return self
        self._running = True
        self._furnish()
        if self._controllers is not None and not self._step:
            self._controllers.start()
        self._listen()
        return self

    def _furnish(self) -> None:
        """Create what every cluster has from the beginning."""
        for name in DEFAULT_NAMESPACES:
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for obj in DEFAULT_OBJECTS if self._rbac else ():
            self.create(obj)

    def _listen(self) -> None:
        if not self._http_wanted:
            return
        if self._tls and self._context is None:
            from kubeloop.sandbox.tls import server_context

            self._context, self._ca = server_context(self._host)
        server = HttpServer(
            self._injector, host=self._host, port=self._port, tls=self._context, admin=self._admin
        )
        server.start()
        self._port = server.port  # after a restart clients find it in the same place
        self._http = server

    def stop(self, timeout: float = 10.0) -> None:
        """Close every watch and connection, stop the threads; waits up to `timeout` seconds for each."""
        self.finish_restart(timeout)
        self._halt(timeout)

    def _halt(self, timeout: float) -> None:
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

    def advance(self, seconds: float) -> None:
        """Move the clock (one that can be moved) and, in steps, let the controllers act on it.

        Raises TypeError for the machine's own clock.
        """
        move = getattr(self.clock, "advance", None)
        if move is None:
            raise TypeError("the machine's clock cannot be moved: give the sandbox a FakeClock")
        move(seconds)
        self.settle_if_stepped()

    def settle_if_stepped(self) -> None:
        """`settle`, where that is how the controllers work."""
        if self._step:
            self.settle()

    @property
    def stepped(self) -> bool:
        """Whether the controllers only work when `settle` is called."""
        return self._step

    def expect(
        self,
        resource: str,
        name: str,
        namespace: str = "default",
        *,
        drive: Callable[[], object] | None = None,
    ) -> Expectation:
        """What a test expects of an object: ``sandbox.expect("deployment", "hello").to_exist()``.

        `resource` by any of its names. `drive` is called again and again while it waits: what is tested, if
        it has no thread of its own. Raises ValueError for an unknown resource.
        """
        return Expectation(self, resolve(self, resource), name, namespace, drive)

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

    def backup(self) -> Backup:
        """The present state, for `restart` to go back to."""
        return self.backend.store.backup()

    def restart(self, data: Literal["keep", "lose"] | Backup = "keep", *, timeout: float = 10.0) -> None:
        """Go down and come up again in the same place.

        Every connection and watch ends, and no watch reaches back to before. `data`: kept; lost, so that
        resourceVersions begin anew; or replaced by an older backup, so that they go back. Rules of `faults`,
        tokens and the log stay.
        """
        self.halt(timeout=timeout)
        self.resume(data)

    def halt(self, *, timeout: float = 10.0) -> None:
        """Go down: connections are refused until `resume`."""
        self._halt(timeout)

    def resume(self, data: Literal["keep", "lose"] | Backup = "keep") -> None:
        """Come up again after `halt`; `data` as in `restart`."""
        store = self.backend.store
        if data == "keep":
            store.compact()
        else:
            store.restore(Backup(1, {}) if data == "lose" else data)
            self.backend.registry.replace(remove=[i.key for i in self.backend.registry.infos() if i.custom])
        if data == "lose":
            self._furnish()
        if self._controllers is not None:
            self._controllers = Controllers(self.backend, self.api, self._deployments)
            if not self._step:
                self._controllers.start()
            for record in store.current(CRDS)[0]:
                if established(record.obj):
                    self._await_served(record.obj)
        self.api.stopped = False
        self._listen()

    def restart_soon(self, data: Literal["keep", "lose"]) -> None:
        """Restart on a thread of its own: for whoever is served by what has to end."""
        self._restarting = threading.Thread(target=self.restart, args=(data,), name="sandbox-restart")
        self._restarting.start()

    def finish_restart(self, timeout: float) -> None:
        """Wait up to `timeout` seconds for what `restart_soon` began."""
        if self._restarting is not None:
            self._restarting.join(timeout)

    def compact(self) -> None:
        """Forget the history: reads and watches from an older resourceVersion now answer 410."""
        self.backend.store.compact()

    def now(self) -> datetime:
        """The sandbox's wall-clock time."""
        return self.clock.now().astimezone(UTC)
