"""From a configuration to a verified connection: TLS, client certificates, proxies, IPv6, rotation."""

from __future__ import annotations

import base64
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from kubeloop.client import Client, TransportError, connect, load_config

Start = Callable[..., Any]

# A `#!` line cannot hold a path with blanks: the shell starts Python on the same file, which reads a string.
SHEBANG = f'#!/bin/sh\n"exec" "{sys.executable}" "$0" "$@"\n'


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA(key_type=trustme.KeyType.ECDSA)


def server_context(authority: trustme.CA, *names: str, client_ca: trustme.CA | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names, key_type=trustme.KeyType.ECDSA).configure_cert(context)
    if client_ca is not None:
        client_ca.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@pytest.fixture
def client_of(tmp_path: Path) -> Iterator[Callable[..., Client]]:
    """A client for a server on this machine, by way of a kubeconfig in a folder of its own."""
    clients: list[Client] = []

    def make(server: Any, host: str = "127.0.0.1", *, user: Any = None, **cluster: Any) -> Client:
        document = {
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "clusters": [{"name": "x", "cluster": {"server": f"https://{host}:{server.port}", **cluster}}],
            "users": [{"name": "x", "user": user or {"token": "t"}}],
        }
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(document))
        clients.append(connect(load_config(str(path), environ={})))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


def trust(authority: trustme.CA, folder: Path, name: str = "ca.crt") -> str:
    authority.cert_pem.write_to_path(folder / name)
    return name


def test_the_server_is_verified_against_the_configured_authority(
    echo: Start, tools: Any, authority: trustme.CA, client_of: Any, tmp_path: Path
) -> None:
    server = echo(tls=server_context(authority, "127.0.0.1"))
    client = client_of(server, **{"certificate-authority": trust(authority, tmp_path)})
    assert client.get(tools.things, "a", "ns") == {"kind": "Thing"}
    _, headers, _ = server.requests[0]
    assert headers["authorization"] == "Bearer t"
    assert headers["user-agent"].startswith("kubeloop/")
    assert headers["host"] == f"127.0.0.1:{server.port}"


def test_an_authority_that_stands_in_the_kubeconfig_needs_no_file(
    echo: Start, tools: Any, authority: trustme.CA, client_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that was folded or padded with blanks, as YAML lets it be."""
    server = echo(tls=server_context(authority, "127.0.0.1"))
    text = base64.encodebytes(authority.cert_pem.bytes()).decode()
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: pytest.fail("nothing needs to be written"))
    client = client_of(server, **{"certificate-authority-data": f" {text}"})
    assert client.get(tools.things, "a", "ns") == {"kind": "Thing"}
    stranger = base64.b64encode(trustme.CA().cert_pem.bytes()).decode()
    with pytest.raises(TransportError, match="certificate verify failed"):
        client_of(server, **{"certificate-authority-data": stranger}).get(tools.things, "a", "ns")


def test_a_server_of_another_authority_is_not_talked_to(
    echo: Start, tools: Any, authority: trustme.CA, client_of: Any, tmp_path: Path
) -> None:
    server = echo(tls=server_context(trustme.CA(), "127.0.0.1"))
    client = client_of(server, **{"certificate-authority": trust(authority, tmp_path)})
    with pytest.raises(TransportError, match="certificate verify failed") as caught:
        client.get(tools.things, "a", "ns")
    assert not caught.value.sent
    assert server.requests == []


def test_another_name_than_the_addresss_is_verified_on_request(
    echo: Start, tools: Any, authority: trustme.CA, client_of: Any, tmp_path: Path
) -> None:
    server = echo(tls=server_context(authority, "api.internal"))
    authority_file = trust(authority, tmp_path)
    client = client_of(server, **{"certificate-authority": authority_file})
    with pytest.raises(TransportError, match="verify failed"):
        client.get(tools.things, "a", "ns")
    client = client_of(server, **{"certificate-authority": authority_file, "tls-server-name": "api.internal"})
    assert client.get(tools.things, "a", "ns")["kind"] == "Thing"


def test_a_client_certificate_is_shown(
    echo: Start, tools: Any, authority: trustme.CA, client_of: Any, tmp_path: Path
) -> None:
    people = trustme.CA(key_type=trustme.KeyType.ECDSA)
    server = echo(tls=server_context(authority, "127.0.0.1", client_ca=people))
    pair = people.issue_cert("me@example.com", key_type=trustme.KeyType.ECDSA)
    pair.cert_chain_pems[0].write_to_path(tmp_path / "me.crt")
    pair.private_key_pem.write_to_path(tmp_path / "me.key")
    user = {"client-certificate": "me.crt", "client-key": "me.key"}
    client = client_of(server, user=user, **{"certificate-authority": trust(authority, tmp_path)})
    assert client.get(tools.things, "a", "ns")["kind"] == "Thing"


def test_a_plugins_certificate_is_shown_and_renewed(
    loopback: Start, tools: Any, authority: trustme.CA, client_of: Any, tmp_path: Path
) -> None:
    people = trustme.CA(key_type=trustme.KeyType.ECDSA)
    seen: list[str] = []

    def serve(peer: Any) -> None:
        while peer.request():
            shown = peer.sock.getpeercert()["serialNumber"]
            seen.append(shown)
            if len(set(seen)) == 1:
                peer.answer({"kind": "Status", "reason": "Unauthorized"}, 401)
            else:
                peer.answer({"kind": "Thing"})

    server = loopback(serve, tls=server_context(authority, "127.0.0.1", client_ca=people))
    for number in range(2):
        pair = people.issue_cert("me@example.com", key_type=trustme.KeyType.ECDSA)
        pair.cert_chain_pems[0].write_to_path(tmp_path / f"{number}.crt")
        pair.private_key_pem.write_to_path(tmp_path / f"{number}.key")
    plugin = tmp_path / "plugin"
    plugin.write_text(
        f"{SHEBANG}import json, pathlib\n"
        f"home = pathlib.Path({str(tmp_path)!r})\nmark = home / 'ran'\n"
        "number = 1 if mark.exists() else 0\nmark.touch()\n"
        "read = lambda kind: (home / f'{number}.{kind}').read_text()\n"
        "status = {'clientCertificateData': read('crt'), 'clientKeyData': read('key')}\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'status': status}))\n"
    )
    plugin.chmod(0o755)
    user = {"exec": {"command": "./plugin", "apiVersion": "client.authentication.k8s.io/v1"}}
    client = client_of(server, user=user, **{"certificate-authority": trust(authority, tmp_path)})
    assert client.get(tools.things, "a", "ns")["kind"] == "Thing"
    assert len(set(seen)) == 2


def test_a_rotated_authority_is_used_for_new_connections(
    echo: Start, tools: Any, authority: trustme.CA, client_of: Any, tmp_path: Path
) -> None:
    """in-cluster CA rotation"""
    old, new = authority, trustme.CA(key_type=trustme.KeyType.ECDSA)
    server = echo(tls=server_context(new, "127.0.0.1"))
    client = client_of(server, **{"certificate-authority": trust(old, tmp_path)})
    with pytest.raises(TransportError, match="verify failed"):
        client.get(tools.things, "a", "ns")
    trust(new, tmp_path)
    assert client.get(tools.things, "a", "ns")["kind"] == "Thing"


class Proxy:
    """What a CONNECT proxy does, and whom it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []

    def serve(self, peer: Any) -> None:
        request = peer.request()
        if request is None:
            return
        first, headers, _ = request
        self.asked.append((first, headers))
        host, _, port = first.split()[1].rpartition(":")
        with socket.create_connection((host, int(port))) as upstream:
            peer.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=self._pump, args=(upstream, peer.sock))
            back.start()
            self._pump(peer.sock, upstream)
            back.join(5)

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65_536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # the other direction has ended it


def test_everything_goes_through_the_configured_proxy(
    echo: Start,
    loopback: Start,
    tools: Any,
    authority: trustme.CA,
    client_of: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """bug report 7; what the file says beats NO_PROXY"""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    proxy = Proxy()
    relay = loopback(proxy.serve)
    server = echo(tls=server_context(authority, "127.0.0.1"))
    cluster = {
        "certificate-authority": trust(authority, tmp_path),
        "proxy-url": f"http://me:pw@127.0.0.1:{relay.port}",
    }
    client = client_of(server, **cluster)
    assert client.get(tools.things, "a", "ns")["kind"] == "Thing"
    first, headers = proxy.asked[0]
    assert first.startswith(f"CONNECT 127.0.0.1:{server.port} ")
    assert {name.lower(): value for name, value in headers.items()}["proxy-authorization"] == "Basic bWU6cHc="
    client.close()


def test_ipv6_addresses_are_bracketed(
    echo: Start, tools: Any, authority: trustme.CA, client_of: Any, tmp_path: Path
) -> None:
    """bug report 8"""
    authority_file = trust(authority, tmp_path)
    try:
        server = echo(tls=server_context(authority, "::1"), family=socket.AF_INET6)
    except OSError:  # this machine has no IPv6: what can be seen is where the client tries to go
        server = echo()
        with pytest.raises(TransportError, match=rf"cannot connect to \[::1\]:{server.port}"):
            client_of(server, "[::1]", **{"certificate-authority": authority_file}).get(
                tools.things, "a", "ns"
            )
        return
    client = client_of(server, "[::1]", **{"certificate-authority": authority_file})
    assert client.get(tools.things, "a", "ns")["kind"] == "Thing"
    assert server.requests[0][1]["host"] == f"[::1]:{server.port}"


def test_a_server_behind_a_path_is_asked_there(
    echo: Start, tools: Any, authority: trustme.CA, client_of: Any, tmp_path: Path
) -> None:
    server = echo(tls=server_context(authority, "127.0.0.1"))
    client = client_of(server, **{"certificate-authority": trust(authority, tmp_path)})
    document = yaml.safe_load((tmp_path / "kubeconfig").read_text())
    document["clusters"][0]["cluster"]["server"] += "/k8s/clusters/c-1/"
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(document))
    client = connect(load_config(str(tmp_path / "kubeconfig"), environ={}))
    client.get(tools.things, "a", "ns")
    assert server.requests[0][0].startswith("GET /k8s/clusters/c-1/apis/example.com/v1/")
    client.close()


def test_a_watch_over_tls_is_closed_at_once(
    loopback: Start, tools: Any, authority: trustme.CA, client_of: Any, tmp_path: Path
) -> None:
    """bug report 10"""

    def serve(peer: Any) -> None:
        peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n")
        peer.wait_for_end()

    server = loopback(serve, tls=server_context(authority, "127.0.0.1"))
    client = client_of(server, **{"certificate-authority": trust(authority, tmp_path)})
    watch = client.watch(tools.things)
    lines = iter(watch)
    assert next(lines) == b"one"
    timer = threading.Timer(0.05, watch.close)
    timer.start()
    assert tools.within(0.5, lambda: list(lines)) == []
    timer.join()


def test_importing_the_client_does_not_import_the_kubernetes_package() -> None:
    code = "import sys, kubeloop.cache; print('kubernetes' in sys.modules, 'urllib3' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(__file__).parents[3] / "operator")},
    )
    assert done.stdout.split() == ["False", "False"]
