"""Reports 6 to 8, and the others about credentials and configuration. Over sockets, in real time."""

from __future__ import annotations

import base64
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from kubeloop.client import Client, TransportError, connect, load_config
from kubeloop.clock import StopEvent
from kubeloop.controller import Context, Controller, Result
from kubeloop.manager import Manager
from kubeloop.manager.checks import liveness
from kubeloop.model import Deployment, Resource
from kubeloop.sandbox import User
from webapp_operator.flags import parse
from webapp_operator.process import build_manager
from webapp_operator.reconcile import webapp_controller
from webapp_operator.types import WebApp

MAPS = Resource("", "v1", "configmaps", "ConfigMap")
ROBOT = User("system:serviceaccount:default:operator")


def kubeconfig(live: Any, folder: Path, *, user: dict[str, Any], **cluster: Any) -> Path:
    """A kubeconfig in `folder` that leads to the sandbox, with these entries changed."""
    document = yaml.safe_load(live.sandbox.kubeconfig(folder / "config").read_text())
    document["clusters"][0]["cluster"].update(cluster)
    document["users"][0]["user"] = user
    path = folder / "config"
    path.write_text(yaml.safe_dump(document))
    return path


def webapp(name: str = "hello") -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "example.com/v1", "kind": "WebApp", "metadata": meta, "spec": {"image": "nginx:1"}}


@pytest.fixture
def run() -> Iterator[Callable[[Manager], StopEvent]]:
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


@pytest.mark.parametrize("verb", ["patch", "list", "watch"])
def test_a_refused_token_closes_no_watch(make_live: Any, run: Any, tmp_path: Path, verb: str) -> None:
    """nolar/kopf#980: re-authentication closes the session under the watchers, and they die; /healthz is 200.

    The token is renewed and the old one revoked, as it happens to service accounts.
    """
    live = make_live(tokens={"one": ROBOT, "two": ROBOT})
    (tmp_path / "token").write_text("one")
    path = kubeconfig(live, tmp_path, user={"tokenFile": str(tmp_path / "token")})
    client = live.client(load_config(str(path)))
    manager = Manager(client)
    manager.add(webapp_controller())
    run(manager)
    live.until(lambda: manager.wait_synced(StopEvent(), 0))
    watches = sum(informer.watches for informer in manager.informers.values())

    live.sandbox.access.revoke("one")
    (tmp_path / "token").write_text("two")
    if verb != "patch":  # the watches end by themselves, and the first to meet the refusal are they
        for watcher in live.sandbox.backend.store.watchers():
            if watcher.key == ("example.com", "webapps"):
                watcher.close()
        if verb == "list":
            live.sandbox.compact()
    live.sandbox.create(webapp())
    live.until(lambda: live.sandbox.get("deployments.apps", "hello", "default"))
    live.sandbox.expect("webapp", "hello").to_have(status={"ready": True})

    refused = [e for e in live.sandbox.log.entries() if e.status == 401]
    assert refused
    assert len(refused) < 15
    assert {check() for check in liveness(manager).values()} == {""}
    if verb == "patch":
        assert sum(informer.watches for informer in manager.informers.values()) == watches


def test_a_dead_watch_fails_liveness(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """nolar/kopf#980: the same from the other side: a watch thread that is truly dead does not look alive."""
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    operator = stage.operate()
    assert operator.unwell() == ""
    informer = operator.manager.informers[Deployment]
    informer._reflectors[0].core.on_watch_ended = None  # a bug of ours
    stage.cut("deployments")
    stage.settle()

    assert operator.unwell() == "the informer has died: Deployment"


class Proxy:
    """A CONNECT proxy that leads to one port, whatever it is asked for."""

    def __init__(self, port: int) -> None:
        self.asked: list[str] = []
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = [self._listener]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            head = b""
            while b"\r\n\r\n" not in head:
                head += peer.recv(4096)
            self.asked.append(head.split(b"\r\n")[0].decode())
            upstream = socket.create_connection(("127.0.0.1", self._target))
            peer.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            self._open += [peer, upstream]
            for pair in ((peer, upstream), (upstream, peer)):
                self._threads.append(threading.Thread(target=self._pump, args=pair))
                self._threads[-1].start()

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65_536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # the other direction has ended it

    def close(self) -> None:
        for sock in self._open:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # closed already
        for thread in self._threads:
            thread.join(5)
        for sock in self._open:
            sock.close()


@pytest.mark.parametrize("relative", [True, False], ids=["relative paths", "absolute paths"])
def test_every_connection_goes_through_the_proxy_and_is_verified(
    make_live: Any, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relative: bool
) -> None:
    """kubernetes-client/python#2679: `proxy-url` is ignored; kelproject/pykube#130: files are looked for in
    the working directory. No other way leads to the server, and everything is started from elsewhere."""
    live = make_live(tls=True, tokens={"t": ROBOT})
    proxy = Proxy(int(live.sandbox.url.rpartition(":")[2]))
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    try:
        embedded = yaml.safe_load(live.sandbox.kubeconfig(home / "config").read_text())
        authority = embedded["clusters"][0]["cluster"]["certificate-authority-data"]
        people = trustme.CA(key_type=trustme.KeyType.ECDSA)
        pair = people.issue_cert("me@example.com", key_type=trustme.KeyType.ECDSA)
        pair.cert_chain_pems[0].write_to_path(home / "me.crt")
        pair.private_key_pem.write_to_path(home / "me.key")
        (home / "ca.crt").write_bytes(base64.b64decode(authority))
        prefix = "" if relative else f"{home}/"
        path = kubeconfig(
            live,
            home,
            user={"token": "t", "client-certificate": f"{prefix}me.crt", "client-key": f"{prefix}me.key"},
            **{
                "server": "https://api.invalid:6443",
                "tls-server-name": "127.0.0.1",
                "certificate-authority-data": None,
                "certificate-authority": f"{prefix}ca.crt",
                "proxy-url": f"http://127.0.0.1:{proxy.port}",
            },
        )
        document = yaml.safe_load(path.read_text())
        del document["clusters"][0]["cluster"]["certificate-authority-data"]
        path.write_text(yaml.safe_dump(document))
        monkeypatch.chdir(elsewhere)
        monkeypatch.setenv("NO_PROXY", "api.invalid,127.0.0.1,*")
        config = load_config(str(path))
        client = live.client(config)
        manager = Manager(client)
        manager.add(webapp_controller())
        stop = run(manager)
        live.sandbox.create(webapp())
        live.sandbox.expect("deployment", "hello").to_exist()
        verbs = {entry.verb for entry in live.sandbox.log.entries() if entry.user == ROBOT.name}
        assert {"watch", "patch"} <= verbs
        assert len(proxy.asked) >= 4
        assert {line.rpartition(" ")[0] for line in proxy.asked} == {"CONNECT api.invalid:6443"}
        stop.set()

        # And verified it is: another authority is not accepted.
        trustme.CA().cert_pem.write_to_path(home / "ca.crt")
        with pytest.raises(TransportError, match="certificate verify failed"):
            live.client(load_config(str(path))).get(MAPS, "x", "default")
    finally:
        proxy.close()


def service_account(live: Any, folder: Path) -> Path:
    """The folder that the kubelet mounts."""
    account = folder / "account"
    account.mkdir()
    document = yaml.safe_load(live.sandbox.kubeconfig(folder / "config").read_text())
    authority = document["clusters"][0]["cluster"]["certificate-authority-data"]
    (account / "ca.crt").write_bytes(base64.b64decode(authority))
    (account / "token").write_text("robot\n")
    (account / "namespace").write_text("default")
    return account


def in_cluster(live: Any, folder: Path) -> Any:
    host, _, port = live.sandbox.url.removeprefix("https://").rpartition(":")
    environ = {
        "HOME": str(folder),
        "KUBERNETES_SERVICE_HOST": host.strip("[]"),
        "KUBERNETES_SERVICE_PORT": port,
    }
    return load_config(environ=environ, service_account=str(service_account(live, folder)))


@pytest.mark.parametrize("host", ["::1", "127.0.0.1"])
def test_a_pod_reaches_its_server_by_an_address_of_either_kind(
    make_live: Any, tmp_path: Path, host: str
) -> None:
    """kube-rs/kube#874: cannot connect in an IPv6 cluster, for want of brackets around the address."""
    try:
        live = make_live(tls=True, host=host, tokens={"robot": ROBOT})
    except OSError:  # a machine without IPv6: what can be seen is where the client tries to go
        live = make_live(tls=True)
        account = service_account(live, tmp_path)
        environ = {"HOME": "/", "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}
        assert load_config(environ=environ, service_account=str(account)).server == "https://[::1]:443"
        return
    config = in_cluster(live, tmp_path)
    assert config.in_cluster
    assert config.server == live.sandbox.url
    client: Client = live.client(config)
    assert client.list(MAPS, "default").items == []
    (entry,) = [e for e in live.sandbox.log.entries(verb="list") if e.resource == "configmaps"]
    assert (entry.status, entry.user) == (200, ROBOT.name)


def test_the_host_header_of_an_ipv6_address_is_bracketed(tmp_path: Path) -> None:
    """kube-rs/kube#874: the same for the Host header, looked at byte by byte."""
    family, host = (socket.AF_INET6, "::1") if socket.has_ipv6 else (socket.AF_INET, "127.0.0.1")
    try:
        listener = socket.create_server((host, 0), family=family)
    except OSError:
        family, host = socket.AF_INET, "127.0.0.1"
        listener = socket.create_server((host, 0), family=family)
    heads: list[bytes] = []

    def answer() -> None:
        with listener, listener.accept()[0] as peer:
            heads.append(peer.recv(65_536))
            peer.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"kind":""}')

    server = threading.Thread(target=answer)
    server.start()
    authority = f"[{host}]" if ":" in host else host
    where = f"{authority}:{listener.getsockname()[1]}"
    document = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x"}}],
        "clusters": [{"name": "x", "cluster": {"server": f"http://{where}"}}],
    }
    (tmp_path / "config").write_text(yaml.safe_dump(document))
    client = connect(load_config(str(tmp_path / "config")))
    client.get(MAPS, "a", "default")
    client.close()
    server.join(5)

    assert f"\r\nHost: {where}\r\n".lower().encode() in heads[0].lower()


def test_every_request_in_a_cluster_says_who_asks(make_live: Any, run: Any, tmp_path: Path) -> None:
    """kubernetes-client/python#2584: a release sends no Authorization header in-cluster.

    The whole operator as its command line builds it, election and Events included; the server knows one
    token, and calls everybody else nobody.
    """
    live = make_live(tls=True, tokens={"robot": ROBOT})
    released = {"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 1}
    meta = {"name": "webapp-operator", "namespace": "default"}
    live.sandbox.create(
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": released}
    )
    config = in_cluster(live, tmp_path)
    args = parse(["--health-bind-address=0", "--metrics-bind-address=0"], {})
    stop = StopEvent()
    manager = build_manager(config, args, stop)
    run(manager, stop)
    live.clients.append(manager._events._client)  # its process would end before it would be closed
    live.sandbox.create(webapp())
    live.until(lambda: live.sandbox.get("deployments.apps", "hello", "default"))
    live.sandbox.patch("deployments.apps", "hello", {"spec": {"replicas": 9}}, "default")
    live.until(lambda: live.sandbox.log.entries(resource="events"), what="an Event about the repair")
    stop.set()
    live.sandbox.expect("lease", "webapp-operator").to_have(spec={"holderIdentity": ""})

    entries = [e for e in live.sandbox.log.entries() if not e.user_agent.startswith("sandbox-test")]
    assert {e.user for e in entries} == {ROBOT.name}
    assert {(e.verb, e.resource) for e in entries} >= {
        ("watch", "webapps"),
        ("patch", "webapps"),
        ("patch", "deployments"),
        ("update", "leases"),
        ("create", "events"),
    }


def test_a_plugins_credential_is_fetched_anew_when_it_is_refused(
    make_live: Any, run: Any, tmp_path: Path
) -> None:
    """tomplus/kubernetes_asyncio#257: an exec plugin's credential is never refreshed (python#741).

    An hour of a cloud's tokens: each is revoked, and only the plugin knows the next.
    """
    live = make_live(tokens={f"token{n}": ROBOT for n in range(4)})
    answer, runs = tmp_path / "answer", tmp_path / "runs"
    plugin = tmp_path / "plugin"
    plugin.write_text(
        f'#!/bin/sh\n"exec" "{sys.executable}" "-S" "$0" "$@"\n'
        f"open({str(runs)!r}, 'a').write('x')\nprint(open({str(answer)!r}).read())\n"
    )
    plugin.chmod(0o755)

    def give(number: int) -> None:
        status = {"token": f"token{number}"}
        answer.write_text(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "status": status}))

    give(0)
    user = {"exec": {"command": "./plugin", "apiVersion": "client.authentication.k8s.io/v1"}}
    client = live.client(load_config(str(kubeconfig(live, tmp_path, user=user))))
    seen: list[str] = []

    def reconcile(app: WebApp, _ctx: Context[WebApp]) -> Result:
        client.get(WebApp.resource, app.name, app.namespace)
        seen.append(app.name)
        return Result()

    manager = Manager(client)
    manager.add(Controller(WebApp, reconcile, field_manager="test"))
    run(manager)
    for number in range(1, 4):
        live.sandbox.create(webapp(f"app{number}"))
        live.until(lambda number=number: f"app{number}" in seen)
        give(number)
        live.sandbox.access.revoke(f"token{number - 1}")
    live.sandbox.create(webapp("last"))
    live.until(lambda: "last" in seen)

    assert runs.read_text() == "xxxx", "once at the start, and once for each token that was refused"
