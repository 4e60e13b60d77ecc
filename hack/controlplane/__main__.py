"""Command line: build | run | up --dir D | down --dir D."""

import argparse
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import FrameType

from . import binaries
from .errors import ControlPlaneError
from .plane import ControlPlane, stop_recorded


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="hack/controlplane.sh",
        description="A real Kubernetes control plane on loopback. Programs come from $KUBEBUILDER_ASSETS, "
        "or are built once from Go modules and cached.",
    )
    actions = parser.add_subparsers(dest="action", required=True)
    build = actions.add_parser("build", help="build the programs if they are not there; prints their folder")
    run = actions.add_parser("run", help="build if needed, run until Ctrl-C, then remove everything")
    up = actions.add_parser("up", help="build if needed, start in the background")
    down = actions.add_parser("down", help="stop what `up` started")
    for sub in (up, down):
        sub.add_argument("--dir", type=Path, required=True, help="folder for all it writes")
    for sub in (build, run, up):
        sub.add_argument("--kwok", action="store_true", help="with kube-scheduler, kwok and fake nodes")
    return parser.parse_args()


def announce(plane: ControlPlane, seconds: float) -> None:
    print(f"Kubernetes {binaries.KUBERNETES} at {plane.server}, ready in {seconds:.1f} s", file=sys.stderr)
    print(f"export KUBECONFIG='{plane.kubeconfig()}'", flush=True)


def run(kwok: bool) -> None:
    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    folder = Path(tempfile.mkdtemp(prefix="controlplane-"))
    started = time.monotonic()
    # Until it runs, Ctrl-C raises KeyboardInterrupt and SIGTERM SystemExit: both stop what was started.
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    with ControlPlane(folder, pods="kwok" if kwok else "fake") as plane:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, stop)
        announce(plane, time.monotonic() - started)
        print("Ctrl-C stops it and removes everything.", file=sys.stderr)
        stopping.wait()
        print("Stopping …", file=sys.stderr)


def main() -> int:
    arguments = parse()
    try:
        match arguments.action:
            case "build":
                binaries.build(kwok=arguments.kwok)
                print(binaries.need("kube-apiserver").parent)
            case "run":
                binaries.build(kwok=arguments.kwok)
                run(arguments.kwok)
            case "up":
                binaries.build(kwok=arguments.kwok)
                started = time.monotonic()
                plane = ControlPlane(arguments.dir, pods="kwok" if arguments.kwok else None, detached=True)
                announce(plane.start(), time.monotonic() - started)
            case "down":
                stop_recorded(arguments.dir)
    except ControlPlaneError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
