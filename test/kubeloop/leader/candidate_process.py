"""A process that takes part in an election and writes as often as its fence allows. Not a test.

Arguments: port of the server, identity, then lease duration, renew deadline and retry period in seconds.
Exits with 3 when it loses the lease, and with 0 after SIGTERM.
"""

from __future__ import annotations

import os
import signal
import sys

from kubeloop.client import HttpTransport
from kubeloop.client.connections import SocketDialer
from kubeloop.clock import StopEvent
from kubeloop.leader import ElectionSettings, LeaderElector, LeaseLock


def main() -> int:
    port, identity, *seconds = sys.argv[1:]
    dialer = SocketDialer("127.0.0.1", int(port))
    elector = LeaderElector(
        LeaseLock(HttpTransport(dialer, 2), "ns", "leader", agent=identity),
        ElectionSettings(identity, *map(float, seconds)),
        on_lost=lambda _why: os._exit(3),
    )
    stop = StopEvent()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    work = HttpTransport(dialer, 1)
    elector.start()
    while not stop.wait(0.01):
        if elector.may_write():
            work.request("POST", "/work", headers={"User-Agent": identity}, body=b"{}", timeout=30)
    elector.stop()
    return 0 if elector.join(10) else 1


if __name__ == "__main__":
    sys.exit(main())
