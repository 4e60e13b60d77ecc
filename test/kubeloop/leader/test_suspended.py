"""Real processes on real clocks: one is suspended while it leads."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import kubeloop.leader

LEASE, RENEW, RETRY = 3, 2.0, 0.5
SOURCES = Path(kubeloop.leader.__file__).parents[2]


class Wire:
    """The server of Leases behind HTTP, with a log of the work that candidates did."""

    def __init__(self, leases: Any) -> None:
        self.work: list[tuple[str, float]] = []
        self.on_work: Callable[[str], None] = lambda _identity: None
        wire = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
                status, content = 200, b"{}"
                if self.path == "/work":
                    identity = self.headers["User-Agent"]
                    wire.work.append((identity, time.monotonic()))
                    wire.on_work(identity)
                elif "watch=" in self.path:
                    status = 403
                else:
                    answer = leases.request(
                        self.command, self.path, headers=self.headers, body=body, timeout=30.0
                    )
                    status, content = answer.status, answer.body
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Nothing on stderr."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.thread = threading.Thread(target=self.http.serve_forever, name="leases", args=(0.05,))
        self.thread.start()

    def candidate(self, identity: str) -> subprocess.Popen[bytes]:
        script = Path(__file__).with_name("candidate_process.py")
        port = self.http.server_address[1]
        command = [sys.executable, str(script), str(port), identity, str(LEASE), str(RENEW), str(RETRY)]
        return subprocess.Popen(command, env={"PYTHONPATH": str(SOURCES)})

    def wait(self, condition: Callable[[], object], seconds: float = 30.0) -> None:
        patience, deadline = threading.Event(), time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "it never came to that"
            patience.wait(0.01)

    def worked(self, identity: str) -> list[float]:
        return [when for who, when in self.work if who == identity]


@pytest.fixture
def wire(server: Any) -> Iterator[Wire]:
    wire = Wire(server)
    yield wire
    wire.http.shutdown()
    wire.thread.join(5)
    wire.http.server_close()


def test_a_leader_that_was_suspended_writes_nothing_when_it_wakes_up(wire: Wire, server: Any) -> None:
    server.write({"spec": {}})
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        processes["a"] = wire.candidate("a")
        wire.wait(lambda: wire.worked("a"))
        processes["b"] = wire.candidate("b")
        wire.wait(lambda: any(agent.startswith("b ") for agent in server.agents))

        # Suspend it while the server answers a write: it has just been told that it may, and will be back
        # with the next question when it wakes up.
        suspended = threading.Event()

        def suspend(identity: str) -> None:
            if identity == "a" and not suspended.is_set():
                processes["a"].send_signal(signal.SIGSTOP)
                suspended.set()

        wire.on_work = suspend
        assert suspended.wait(10)
        stopped_at = time.monotonic()

        wire.wait(lambda: wire.worked("b"))
        assert server.spec["leaseTransitions"] == 1
        assert wire.worked("b")[0] - stopped_at < LEASE + RETRY + 10  # a loaded machine's share included
        processes["a"].send_signal(signal.SIGCONT)
        assert processes["a"].wait(20) == 3

        before = len(wire.worked("b"))
        wire.wait(lambda: len(wire.worked("b")) > before)
        assert max(wire.worked("a")) <= stopped_at < min(wire.worked("b"))

        processes["b"].send_signal(signal.SIGTERM)
        assert processes["b"].wait(20) == 0
        assert server.holder() == ""
        assert server.spec["leaseDurationSeconds"] == 1
    finally:
        for process in processes.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait(10)
