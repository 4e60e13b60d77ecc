"""``python -m kubeloop.sandbox``: keep a sandbox running for kubectl and operators until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType

import yaml

from kubeloop.clock import StopEvent
from kubeloop.sandbox.clocks import MovableClock
from kubeloop.sandbox.controllers import DeploymentOptions
from kubeloop.sandbox.sandbox import Sandbox, SandboxError

GREETING = """\
A simulated Kubernetes API server (in memory, gone when it stops) listens on {url}

  export KUBECONFIG={kubeconfig}
  kubectl get namespaces

Faults, its clock and its log are at {url}/sandbox/faults, .../clock and .../log, see docs/testing-kit.md.
Ctrl-C stops it.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run until told to stop; exit code 0, or 2 if it could not start."""
    parser = argparse.ArgumentParser(
        prog="python -m kubeloop.sandbox", description="A simulated Kubernetes API server for development."
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: a free one)")
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        default=Path(".sandbox/kubeconfig"),
        help="kubeconfig to write (default: %(default)s)",
    )
    parser.add_argument("--tls", action="store_true", help="HTTPS with a certificate of its own")
    parser.add_argument(
        "--ready-after",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help="how long simulated pods take to become ready (default: %(default)s)",
    )
    parser.add_argument(
        "--apply",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="apply these manifests before anybody is let in; may be given several times",
    )
    options = parser.parse_args(arguments)

    stop = StopEvent()

    def on_signal(number: int, frame: FrameType | None) -> None:
        del number, frame
        stop.set()

    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)
    sandbox = Sandbox(
        http=True,
        host=options.host,
        port=options.port,
        tls=options.tls,
        clock=MovableClock(),
        admin=True,
        deployments=DeploymentOptions(ready_after=options.ready_after),
    )
    try:
        sandbox.start()
    except OSError as error:
        print(f"cannot listen on {options.host}:{options.port}: {error}", file=sys.stderr)
        return 2
    try:
        for file in options.apply:
            for obj in sandbox.apply_yaml(file.read_text()):
                print(f"{obj['kind'].lower()}/{obj['metadata']['name']} applied", file=sys.stderr)
        path = sandbox.kubeconfig(options.kubeconfig)
        print(GREETING.format(url=sandbox.url, kubeconfig=path.resolve()), flush=True)
        stop.wait()
    except (OSError, SandboxError, yaml.YAMLError) as error:
        print(f"could not start as asked: {error}", file=sys.stderr)
        return 2
    finally:
        sandbox.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
