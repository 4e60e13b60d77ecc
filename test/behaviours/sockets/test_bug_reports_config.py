"""Reports 7 and 8: configuration."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from kubeloop.client import Client, TransportError, connect, load_config
from kubeloop.manager import Manager
from kubeloop.model import Resource
from kubeloop.sandbox import User
from webapp_operator.reconcile import webapp_controller

MAPS = Resource("", "v1", "configmaps", "ConfigMap")
ROBOT = User("system:serviceaccount:default:operator")


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
        people = trustme.CA(key_type=trustme.KeyType.ECDSA)
        pair = people.issue_cert("me@example.com", key_type=trustme.KeyType.ECDSA)
        pair.cert_chain_pems[0].write_to_path(home / "me.crt")
        pair.private_key_pem.write_to_path(home / "me.key")
        (home / "ca.crt").write_bytes(live.authority())
        prefix = "" if relative else f"{home}/"
        path = live.changed(
            folder=home,
            user={"token": "t", "client-certificate": f"{prefix}me.crt", "client-key": f"{prefix}me.key"},
            **{
                "server": "https://api.invalid:6443",
                "tls-server-name": "127.0.0.1",
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
        live.make()
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


@pytest.mark.parametrize("host", ["::1", "127.0.0.1"])
def test_a_pod_reaches_its_server_by_an_address_of_either_kind(make_live: Any, host: str) -> None:
    """kube-rs/kube#874: cannot connect in an IPv6 cluster, for want of brackets around the address."""
    try:
        live = make_live(tls=True, host=host, tokens={"robot": ROBOT})
    except OSError:  # a machine without IPv6: what can be seen is where the client tries to go
        live = make_live(tls=True)
        account = live.service_account()
        environ = {"HOME": "/", "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}
        assert load_config(environ=environ, service_account=str(account)).server == "https://[::1]:443"
        return
    config = live.in_cluster()
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
