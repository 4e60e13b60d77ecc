"""The command line: ``webapp-operator`` and ``python -m operator``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import TYPE_CHECKING

from kubeloop.observe import LOG_FORMATS, LOG_LEVELS, configure_logging

if TYPE_CHECKING:
    from kubeloop.client import Client

EXIT_OK = 0
EXIT_FAILED = 1
"""A pass that did not converge, or an operator that did not stop in time."""
EXIT_USAGE = 2
"""Arguments or a configuration that cannot be used (argparse's own code too)."""

DEFAULT_WORKERS = 8
MAX_WORKERS = 256

_EPILOG = """\
exit codes:
  0  stopped cleanly; with --once: every WebApp converged
  1  with --once: some WebApp did not converge; otherwise: did not stop in time
  2  unusable arguments or configuration

examples:
  webapp-operator crd | kubectl apply -f -
  webapp-operator --namespace default --log-level debug
  python -m operator --once --dry-run
"""


def _workers(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_WORKERS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {MAX_WORKERS}")
    return int(text)


def _namespace(text: str) -> str:
    # The server would answer a bad name with an empty list, which looks as if there were no WebApps.
    legal = len(text) <= 63 and text.replace("-", "a").isalnum() and text == text.lower() and text.isascii()
    if not legal or text.startswith("-") or text.endswith("-"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a namespace: lower-case letters, digits and dashes"
        )
    return text


def build_parser() -> argparse.ArgumentParser:
    """The command line's grammar."""
    parser = argparse.ArgumentParser(
        prog="webapp-operator",
        description="Keeps a Deployment (and a Service) for every WebApp, and repairs them when they drift.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {_version()}")
    cluster = parser.add_argument_group("cluster (default: $KUBECONFIG, ~/.kube/config, else in-cluster)")
    cluster.add_argument("--kubeconfig", metavar="FILE", help="the kubeconfig to use")
    cluster.add_argument("--context", metavar="NAME", help="the kubeconfig's context to use")
    cluster.add_argument(
        "--namespace",
        metavar="NAME",
        action="append",
        type=_namespace,
        default=[],
        help="watch only this namespace; may be given several times (default: all)",
    )
    work = parser.add_argument_group("work")
    work.add_argument(
        "--workers",
        metavar="N",
        type=_workers,
        default=DEFAULT_WORKERS,
        help="WebApps to reconcile at a time (default: %(default)s)",
    )
    work.add_argument("--once", action="store_true", help="one full pass, print what happened, then exit")
    work.add_argument(
        "--dry-run",
        action="store_true",
        help="with --once: show what would change, checked by the server; writes nothing",
    )
    logs = parser.add_argument_group("logs (on stderr)")
    logs.add_argument(
        "--log-format",
        choices=LOG_FORMATS,
        help="default: text on a terminal, json elsewhere",
    )
    logs.add_argument("--log-level", choices=LOG_LEVELS, default="info", help="default: %(default)s")
    commands = parser.add_subparsers(dest="command", metavar="", title="other commands")
    commands.add_parser("crd", help="print the CustomResourceDefinition of WebApp as YAML")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the process' exit code."""
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.command == "crd":
        return _print_crd()
    if args.dry_run and not args.once:
        parser.error("--dry-run only goes with --once")
    configure_logging(
        level=args.log_level, fmt=args.log_format or ("text" if sys.stderr.isatty() else "json")
    )

    # Imported late: --help, --version and crd need no Kubernetes client.
    from kubeloop.client import ConfigError, connect, load_config

    try:
        config = load_config(args.kubeconfig, args.context)
        client = connect(config, pool_size=args.workers + 4, user_agent=f"webapp-operator/{_version()}")
    except ConfigError as error:
        print(f"webapp-operator: {error}", file=sys.stderr)
        return EXIT_USAGE
    return _once(client, args) if args.once else _run(client, args)


def _run(client: Client, args: argparse.Namespace) -> int:
    from webapp_operator.reconcile import webapp_controller

    from kubeloop.clock import StopEvent
    from kubeloop.manager import Manager, stop_on_signals

    manager = Manager(client, namespaces=args.namespace, workers=args.workers)
    manager.add(webapp_controller())
    stop = StopEvent()
    with stop_on_signals(stop):
        return EXIT_OK if manager.run(stop) else EXIT_FAILED


def _once(client: Client, args: argparse.Namespace) -> int:
    from webapp_operator.reconcile import webapp_controller

    from kubeloop.clock import StopEvent
    from kubeloop.manager import Manager, stop_on_signals
    from kubeloop.manager.once import Recorder, run_once
    from webapp_operator.report import print_pass

    recorder = Recorder()
    manager = Manager(
        client,
        namespaces=args.namespace,
        workers=args.workers,
        dry_run=args.dry_run,
        report=recorder.record,
    )
    manager.add(webapp_controller())
    stop = StopEvent()
    with stop_on_signals(stop):
        done = run_once(manager, recorder, stop)
    print_pass(done, sys.stdout, dry_run=args.dry_run)
    return EXIT_OK if done.converged else EXIT_FAILED


def _print_crd() -> int:
    from webapp_operator.types import WebApp

    try:
        print(WebApp.crd_yaml(), end="", flush=True)
    except BrokenPipeError:
        # `webapp-operator crd | head` is no error; the interpreter must not complain at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return EXIT_OK


def _version() -> str:
    try:
        return metadata.version("webapp-operator")
    except metadata.PackageNotFoundError:
        return "0+unknown"  # run from the source folder, not installed


if __name__ == "__main__":
    sys.exit(main())
