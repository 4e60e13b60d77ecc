"""The client against a server on this machine: prints one line with the CPU time of a small request.

The server answers from a prepared text in a process of its own, so that only the client is measured.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection

import urllib3
from harness import report
from sample_objects import pair

from kubeloop.client import Client, HttpTransport, MergePatch
from kubeloop.client.connections import SocketDialer
from kubeloop.model import Resource

TIMES, ROUNDS, THREADS = 1500, 5, 8
WEBAPPS = Resource("example.com", "v1", "webapps", "WebApp")
HEADERS = (
    "HTTP/1.1 200 OK\r\nAudit-Id: 11111111-2222-3333-4444-555555555555\r\n"
    "Cache-Control: no-cache, private\r\nContent-Type: application/json\r\n"
    "X-Kubernetes-Pf-Flowschema-Uid: 11111111-2222-3333-4444-555555555555\r\n"
    "X-Kubernetes-Pf-Prioritylevel-Uid: 11111111-2222-3333-4444-555555555555\r\n"
    "Date: Mon, 30 Nov 2026 14:00:00 GMT\r\nContent-Length: {}\r\n\r\n"
)


def serve(ready: Connection) -> None:
    body = json.dumps(pair(1, random.Random(1))[0]).encode()
    answer = HEADERS.format(len(body)).encode() + body
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    ready.send(listener.getsockname()[1])

    def talk(sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        received = b""
        with suppress(ConnectionError):
            while data := sock.recv(65_536):
                received += data
                if received.endswith(b"}"):  # the end of each body; urllib3 sends it apart from the head
                    received = b""
                    sock.sendall(answer)

    while True:
        threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()


def best(action: Callable[[], object]) -> tuple[float, float]:
    """CPU us a request, requests a second; of one thread."""
    results = []
    for _ in range(ROUNDS):
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(TIMES):
            action()
        results.append(((time.process_time() - cpu) / TIMES * 1e6, TIMES / (time.perf_counter() - wall)))
    return min(cpu for cpu, _ in results), max(rate for _, rate in results)


def together(action: Callable[[], object]) -> tuple[float, float]:
    """The same of many threads."""
    cpu, wall = time.process_time(), time.perf_counter()
    workers = [threading.Thread(target=lambda: [action() for _ in range(TIMES // 2)]) for _ in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    total = TIMES // 2 * THREADS
    return (time.process_time() - cpu) / total * 1e6, total / (time.perf_counter() - wall)


def main() -> None:
    mine, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    port = mine.recv()
    client = Client(HttpTransport(SocketDialer("127.0.0.1", port)))
    patch = MergePatch({"status": {"ready": True, "replicas": 3}})

    def small_patch() -> object:
        return client.patch(WEBAPPS, "hello", "default", patch, subresource="status").object

    pool = urllib3.PoolManager()
    url = f"http://127.0.0.1:{port}/apis/example.com/v1/namespaces/default/webapps/hello/status"

    def plain_urllib3() -> object:
        return json.loads(pool.request("PATCH", url, body=patch.encode(), retries=False).data)

    cpu, rate = best(small_patch)
    many_cpu, many_rate = together(small_patch)
    other_cpu, _ = best(plain_urllib3)
    note = (
        f"{rate:,.0f}/s; {THREADS} threads {many_cpu:.0f} us and {many_rate:,.0f}/s;"
        f" a plain urllib3 pool {other_cpu:.0f} us"
    )
    report("client: a small patch", cpu, "us CPU", note=note, form=",.0f")
    client.close()
    server.terminate()
    server.join()


if __name__ == "__main__":
    main()
