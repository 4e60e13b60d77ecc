"""The HTTP server: keep-alive, chunked watches, clean stops, TLS."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubeloop.clock import StopEvent
from kubeloop.sandbox import Sandbox


@pytest.fixture
def served() -> Iterator[Sandbox]:
    with Sandbox(http=True) as running:
        yield running


def connect(sandbox: Sandbox) -> http.client.HTTPConnection:
    host, port = sandbox.url.removeprefix("http://").split(":")
    return http.client.HTTPConnection(host, int(port), timeout=10)


def eventually(check: Callable[[], bool], seconds: float = 5) -> bool:
    pause = StopEvent()
    for _ in range(int(seconds * 100)):
        if check():
            return True
        pause.wait(0.01)
    return False


def call(connection: http.client.HTTPConnection, method: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body)
    connection.request(method, path, data, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def test_a_connection_serves_many_requests(served: Sandbox) -> None:
    connection = connect(served)
    assert call(connection, "POST", CONFIG_MAPS, config_map("a"))[0] == 201
    sock = connection.sock
    status, obj = call(connection, "GET", f"{CONFIG_MAPS}/a")
    assert (status, obj["metadata"]["name"]) == (200, "a")
    assert call(connection, "GET", f"{CONFIG_MAPS}/b")[0] == 404
    assert connection.sock is sock
    connection.close()


def test_bodies_may_come_in_chunks(served: Sandbox) -> None:
    connection = connect(served)
    chunks = [json.dumps(config_map("a")).encode()[i : i + 7] for i in range(0, 100, 7)]
    connection.request(
        "POST", CONFIG_MAPS, iter(chunks), {"Content-Type": "application/json"}, encode_chunked=True
    )
    answer = connection.getresponse()
    assert answer.status == 201
    answer.read()
    connection.close()


def test_a_watch_is_sent_line_by_line(served: Sandbox) -> None:
    watching, writing = connect(served), connect(served)
    watching.request("GET", f"{CONFIG_MAPS}?watch=1&resourceVersion=0&timeoutSeconds=60")
    answer = watching.getresponse()
    assert answer.getheader("Transfer-Encoding") == "chunked"
    for name in ("a", "b"):
        call(writing, "POST", CONFIG_MAPS, config_map(name))
        event = json.loads(answer.readline())
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", name)
    watching.close()
    writing.close()


def test_a_connection_goes_on_after_a_watch(served: Sandbox) -> None:
    connection = connect(served)
    connection.request("GET", f"{CONFIG_MAPS}?watch=1&resourceVersion=1&timeoutSeconds=1")
    assert connection.getresponse().read() is not None
    assert call(connection, "GET", CONFIG_MAPS)[0] == 200
    connection.close()


def test_stopping_ends_open_watches_at_once() -> None:
    with Sandbox(http=True) as running:
        connection = connect(running)
        connection.request("GET", f"{CONFIG_MAPS}?watch=1&timeoutSeconds=3600")
        answer = connection.getresponse()
        ended = threading.Event()

        def read() -> None:
            try:
                answer.read()
            except (OSError, http.client.HTTPException):
                pass  # cut off or ended properly: either way it returned
            ended.set()

        reader = threading.Thread(target=read)
        reader.start()
    assert ended.wait(2)
    reader.join()
    connection.close()


def test_a_watch_ends_when_its_client_goes_away(served: Sandbox) -> None:
    connection = connect(served)
    connection.request("GET", f"{CONFIG_MAPS}?watch=1&resourceVersion=1&timeoutSeconds=3600")
    connection.getresponse()
    before = len(list(served.backend.store.watchers()))
    assert connection.sock is not None
    connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()
    assert eventually(lambda: len(list(served.backend.store.watchers())) < before)


def test_nonsense_closes_the_connection(served: Sandbox) -> None:
    host, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=5) as sock:
        sock.sendall(b"what is this\r\n\r\n")
        assert sock.recv(100) == b""


def test_https_with_a_certificate_of_its_own(tmp_path: Path) -> None:
    with Sandbox(http=True, tls=True) as running:
        config = yaml.safe_load(running.kubeconfig(tmp_path / "kubeconfig", token="t").read_text())
        cluster = config["clusters"][0]["cluster"]
        assert cluster["server"].startswith("https://127.0.0.1:")
        assert config["users"][0]["user"] == {"token": "t"}
        context = ssl.create_default_context(
            cadata=ssl.DER_cert_to_PEM_cert(ssl.PEM_cert_to_DER_cert(_pem(cluster)))
        )
        host, port = cluster["server"].removeprefix("https://").split(":")
        connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=10)
        assert call(connection, "GET", CONFIG_MAPS)[0] == 200
        connection.request("GET", f"{CONFIG_MAPS}?watch=1&timeoutSeconds=60&resourceVersion=0")
        answer = connection.getresponse()
        running.create(config_map("a"))
        assert json.loads(answer.readline())["type"] == "ADDED"
        connection.close()


def _pem(cluster: dict[str, str]) -> str:
    import base64

    return base64.b64decode(cluster["certificate-authority-data"]).decode()


def test_a_kubeconfig_without_a_token_has_credentials_that_are_nobodys(
    served: Sandbox, tmp_path: Path
) -> None:
    """Over TLS kubectl would ask its user for a name and a password if it found none."""
    config = yaml.safe_load(served.kubeconfig(tmp_path / "kubeconfig").read_text())
    assert config["users"][0]["user"] == {"username": "nobody", "password": "none"}


def test_a_kubeconfig_is_private(served: Sandbox, tmp_path: Path) -> None:
    path = served.kubeconfig(tmp_path / "deep" / "kubeconfig")
    assert path.stat().st_mode & 0o777 == 0o600
    assert yaml.safe_load(path.read_text())["clusters"][0]["cluster"] == {"server": served.url}
