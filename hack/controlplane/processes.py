"""Child processes that never outlive their owner, and waiting for what they serve."""

import ctypes
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from .errors import ControlPlaneError

START_TIMEOUT = 120.0
"""Seconds that a process gets to become ready; 6 are usual, a cold and busy machine needs more."""
STOP_TIMEOUT = 10.0
"""Seconds between SIGTERM and SIGKILL."""
POLL = 0.1
_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>

# Loaded before any fork: a child may not import or allocate much before exec.
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class PortTaken(ControlPlaneError):
    """Somebody took the chosen port between choosing and listening."""


def _die_with_parent() -> None:
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """One child in a session of its own (a Ctrl-C at the terminal is ours to handle), with its log file."""

    def __init__(self, name: str, command: list[str], *, folder: Path, detached: bool = False) -> None:
        """Start `command`; unless `detached`, Linux kills it when this thread is gone."""
        self.name = name
        self.log = folder / f"{name}.log"
        with open(self.log, "ab") as log:
            self._child = subprocess.Popen(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=None if detached else _die_with_parent,
            )

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._child.poll() is None

    def stop(self) -> None:
        """End it and its children, politely at first; returns when it is gone."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self.running:
                return
            os.killpg(self.pid, number)
            try:
                self._child.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                continue

    def failure(self) -> ControlPlaneError:
        """Why it is not there: the end of its log."""
        text = self.log.read_text(errors="replace")
        kind = PortTaken if "address already in use" in text else ControlPlaneError
        tail = "\n".join(text.splitlines()[-15:])
        state = "not ready" if self.running else f"ended with code {self._child.returncode}"
        return kind(f"{self.name} {state}:\n{tail}")


class HttpClient:
    """A few requests to a server of ours: no proxies, own CA (or none checked), optional bearer token."""

    def __init__(self, server: str, *, ca: Path | None = None, token: str | None = None) -> None:
        context = ssl.create_default_context(cafile=str(ca) if ca else None)
        if ca is None:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        self._server = server
        self._token = token

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        kind: str = "application/json",
        timeout: float = 10.0,
    ) -> bytes:
        """The answer's body; raises urllib.error.HTTPError for an error status, OSError without an answer."""
        headers = {"Content-Type": kind}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(self._server + path, data=body, headers=headers, method=method)
        with self._opener.open(request, timeout=timeout) as answer:
            content: bytes = answer.read()
        return content


def wait_ready(process: Process, client: HttpClient, path: str, good: Callable[[bytes], bool]) -> None:
    """Poll until `good(body)`; raises `PortTaken` or `ControlPlaneError` as soon as the process has ended."""
    deadline = time.monotonic() + START_TIMEOUT
    pause = threading.Event()
    while time.monotonic() < deadline:
        if not process.running:
            raise process.failure()
        try:
            if good(client.request("GET", path)):
                return
        except urllib.error.HTTPError as error:
            error.close()
        except OSError:  # not listening yet
            pause.wait(POLL)
        pause.wait(POLL)
    raise process.failure()
