"""The HTTP server: what it speaks, and that nobody can use it up."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeloop.manager import http
from kubeloop.manager.http import (
    MAX_HEAD,
    BadRequest,
    HttpServer,
    Reply,
    Request,
    Routes,
    parse_address,
    parse_head,
)


def hello(request: Request) -> Reply:
    return Reply.text(f"hello {request.query.get('name', ['nobody'])[0]}")


def broken(_request: Request) -> Reply:
    raise RuntimeError("a secret")


ROUTES = Routes({"/hello": hello, "/broken": broken, "/below/": lambda r: Reply.text(r.path)})


@pytest.fixture
def browser(serve: Callable[[Routes], Any]) -> Any:
    return serve(ROUTES)


def test_a_page_and_its_query(browser: Any) -> None:
    got = browser.get("/hello?name=G%C3%BCnter")

    assert (got.status, got.text) == (200, "hello Günter")
    assert got.headers["content-type"] == "text/plain; charset=utf-8"
    assert got.headers["x-content-type-options"] == "nosniff"


def test_a_connection_serves_one_request_after_the_other(browser: Any) -> None:
    assert [browser.get("/hello").status for _ in range(3)] == [200, 200, 200]


def test_head_has_the_length_and_no_body(browser: Any) -> None:
    head = browser.get("/hello", "HEAD")

    assert (head.status, head.headers["content-length"], head.body) == (200, "12", b"")
    assert browser.get("/hello").text == "hello nobody"


def test_unknown_paths_are_404_and_other_methods_405(browser: Any) -> None:
    refused = browser.get("/hello", "DELETE")

    assert browser.get("/nothing").status == 404
    assert browser.get("/hello/").status == 404
    assert browser.get("/below/this").text == "/below/this"
    assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")


def test_a_failing_page_tells_its_client_nothing(browser: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        got = browser.get("/broken")

    assert (got.status, got.text) == (500, "500 internal server error\n")
    assert "a secret" in caplog.text


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        pytest.param("nonsense\r\n\r\n", 400, id="no request"),
        pytest.param("GET /hello HTTP/2.0\r\nHost: x\r\n\r\n", 505, id="another version"),
        pytest.param("GET /hello HTTP/1.1\r\n\r\n", 400, id="no host"),
        pytest.param("GET /hello HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n", 400, id="no header"),
        pytest.param("GET /hello HTTP/1.1\r\nHost : x\r\n\r\n", 400, id="space before the colon"),
        pytest.param("POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n", 413, id="a body"),
        pytest.param("GET hello HTTP/1.1\r\nHost: x\r\n\r\n", 400, id="no path"),
        pytest.param("GET /hello HTTP/1.1\r\nHost: x\r\n\r\nmore", 400, id="pipelined"),
        pytest.param("GET /hello HTTP/1.1\r\nX: " + "x" * MAX_HEAD + "\r\n\r\n", 431, id="too large"),
    ],
)
def test_what_is_no_proper_request_is_refused_and_the_connection_closed(
    browser: Any, request_: str, status: int
) -> None:
    browser.send(request_)

    assert browser.read().status == status
    assert browser.is_closed()


def test_old_clients_are_closed_after_their_answer(browser: Any) -> None:
    browser.send("GET /hello HTTP/1.0\r\n\r\n")

    assert browser.read().status == 200
    assert browser.is_closed()


def test_a_request_that_dribbles_in_is_given_up(
    monkeypatch: pytest.MonkeyPatch, serve: Callable[[Routes], Any]
) -> None:
    """A slow client must not hold a thread for ever (slowloris)."""
    monkeypatch.setattr(http, "HEAD_TIMEOUT", 0.2)
    browser = serve(ROUTES)
    browser.send("GET /hello HTTP/1.1\r\nHo")

    assert browser.read().status == 408
    assert browser.is_closed()


def test_an_idle_connection_is_closed(
    monkeypatch: pytest.MonkeyPatch, serve: Callable[[Routes], Any]
) -> None:
    monkeypatch.setattr(http, "IDLE_TIMEOUT", 0.1)

    assert serve(ROUTES).is_closed()


def test_more_connections_than_there_are_threads_wait_their_turn(
    monkeypatch: pytest.MonkeyPatch, serve: Callable[[Routes], Any], browse: Callable[[int], Any]
) -> None:
    monkeypatch.setattr(http, "MAX_CONNECTIONS", 2)
    first = serve(ROUTES)
    port = first.socket.getpeername()[1]
    second, third = browse(port), browse(port)
    assert (first.get("/hello").status, second.get("/hello").status) == (200, 200)
    third.send("GET /hello HTTP/1.1\r\nHost: x\r\n\r\n")
    third.socket.settimeout(0.2)
    with pytest.raises(TimeoutError):
        third.socket.recv(1)
    first.close()
    third.socket.settimeout(10)

    assert third.read().status == 200


def test_stop_ends_idle_connections_at_once_and_lets_an_answer_go_out(browse: Callable[[int], Any]) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def slow(_request: Request) -> Reply:
        inside.set()
        go_on.wait(10)
        return Reply.text("done")

    server = HttpServer("test", ("127.0.0.1", 0), Routes({"/slow": slow}))
    server.start()
    idle, busy = browse(server.port), browse(server.port)
    busy.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
    assert inside.wait(5)
    server.stop()
    assert idle.is_closed()
    assert not server.join(0.05)
    go_on.set()

    assert busy.read().text == "done"
    assert server.join(5)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), timeout=1)


def test_a_server_that_never_started_gives_its_address_back() -> None:
    server = HttpServer("test", ("127.0.0.1", 0), ROUTES)
    server.stop()
    server.stop()

    assert server.join(1)
    HttpServer("again", ("127.0.0.1", server.port), ROUTES).stop()


def test_a_taken_address_is_an_error_at_once() -> None:
    first = HttpServer("test", ("127.0.0.1", 0), ROUTES)
    with pytest.raises(OSError, match="in use"):
        HttpServer("test", ("127.0.0.1", first.port), ROUTES)
    first.stop()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0", None),
        ("", None),
        (":8080", ("", 8080)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:9", ("::1", 9)),
        ("localhost:65535", ("localhost", 65535)),
    ],
)
def test_addresses(text: str, address: tuple[str, int] | None) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["8080", ":", "host", ":70000", "::1:80", ":-1", ":８０"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"host:port|brackets"):
        parse_address(text)


@given(st.binary(max_size=300))
def test_no_bytes_make_the_parser_fail_in_an_unforeseen_way(noise: bytes) -> None:
    for head in (noise, b"GET /" + noise, b"GET / HTTP/1.1\r\nHost: x\r\n" + noise):
        try:
            request, _ = parse_head(head + b"\r\n\r\n")
        except (BadRequest, ValueError):
            continue
        assert request.path.startswith("/")
