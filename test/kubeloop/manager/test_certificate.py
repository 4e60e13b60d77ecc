"""The certificate of the metrics server, and its reload."""

from __future__ import annotations

import os
import socket
import ssl
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

import pytest
import trustme

from kubeloop.manager.certificate import CertificateError, CertificateFiles, SelfSigned
from kubeloop.manager.http import HttpServer, Reply, Routes


def write(folder: Path, name: str) -> None:
    certificate = trustme.CA().issue_cert(name)
    folder.mkdir(exist_ok=True)
    certificate.private_key_pem.write_to_path(folder / "tls.key.new")
    (folder / "tls.crt.new").write_bytes(b"".join(pem.bytes() for pem in certificate.cert_chain_pems))
    for file in ("tls.key", "tls.crt"):
        os.replace(folder / f"{file}.new", folder / file)


def served(port: int) -> str:
    return ssl.get_server_certificate(("127.0.0.1", port))


def test_a_self_signed_certificate_serves() -> None:
    server = HttpServer(
        "test", ("127.0.0.1", 0), Routes({"/": lambda _: Reply.text("x")}), tls=SelfSigned().context
    )
    server.start()
    try:
        assert "BEGIN CERTIFICATE" in served(server.port)
    finally:
        server.stop()
        assert server.join(5)


def test_a_certificate_is_made_up_where_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The image's file system is read-only, without a temporary folder (config/manager).

    Where there are no files in memory it is an error that says so.
    """

    def refuse(*_: object, **__: object) -> None:
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr(tempfile, "gettempdir", refuse)
    monkeypatch.setattr(tempfile, "mkstemp", refuse)

    in_memory = sys.platform == "linux"
    with nullcontext() if in_memory else pytest.raises(CertificateError, match="temporary directory"):
        SelfSigned()


def test_stop_ends_idle_tls_connections_at_once() -> None:
    server = HttpServer(
        "test", ("127.0.0.1", 0), Routes({"/": lambda _: Reply.text("x")}), tls=SelfSigned().context
    )
    server.start()
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain,
        trusting.wrap_socket(plain) as client,
        socket.create_connection(("127.0.0.1", server.port), timeout=10),  # never says anything
    ):
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(4096).startswith(b"HTTP/1.1 200 OK")
        server.stop()

        assert server.join(2)


def test_files_are_loaded_anew_when_they_change_and_kept_when_the_new_ones_are_bad(tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    write(folder, "one.example.com")
    files = CertificateFiles(str(folder))
    server = HttpServer("test", ("127.0.0.1", 0), Routes({}), tls=files.context)
    server.start()
    try:
        first = served(server.port)
        assert served(server.port) == first
        write(folder, "two.example.com")
        second = served(server.port)
        assert second != first
        (folder / "tls.crt").write_text("half written")
        assert served(server.port) == second
        (folder / "tls.key").unlink()
        assert served(server.port) == second
        write(folder, "three.example.com")
        assert served(server.port) not in (first, second)
    finally:
        server.stop()
        assert server.join(5)


def test_without_a_usable_pair_there_is_no_start(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match="no usable certificate"):
        CertificateFiles(str(tmp_path))
