"""SIGTERM asks for a stop, the second one does not wait for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kubeloop.clock import StopEvent
from kubeloop.manager import FORCED_EXIT, stop_on_signals

OPERATOR = Path(__file__).resolve().parents[3] / "operator"

HANGS = """
import threading
from kubeloop.clock import StopEvent
from kubeloop.manager import stop_on_signals
stop = StopEvent()
with stop_on_signals(stop):
    print("ready", flush=True)
    stop.wait()
    print("stopping", flush=True)
    threading.Event().wait(30)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_asks_for_a_stop_and_handlers_come_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    stop = StopEvent()
    with stop_on_signals(stop):
        assert not stop.is_set()
        os.kill(os.getpid(), number)
        assert stop.wait(5)

    assert signal.getsignal(number) == before


def test_the_second_signal_ends_a_process_that_hangs() -> None:
    """Behaviour 13, zalando-incubator/kopf#142: the second signal ends a process whose first one hangs."""
    child = subprocess.Popen(
        [sys.executable, "-c", HANGS],
        cwd=OPERATOR,
        stdout=subprocess.PIPE,
        text=True,
        stderr=subprocess.DEVNULL,
    )
    with child:
        assert child.stdout is not None
        for said in ("ready\n", "stopping\n"):
            assert child.stdout.readline() == said
            assert child.poll() is None
            threading.Event().wait(0.05)
            child.terminate()

        assert child.wait(5) == FORCED_EXIT
