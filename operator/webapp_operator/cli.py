"""The command line: ``webapp-operator`` and ``python -m operator``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kubeloop.observe import configure_logging
from webapp_operator.flags import build_parser, parse

if TYPE_CHECKING:
    from kubeloop.client import ClusterConfig

__all__ = ["build_parser", "main"]

EXIT_OK = 0
EXIT_FAILED = 1
"""A pass that did not converge, or an operator that did not stop in time."""
EXIT_USAGE = 2
"""Arguments or a configuration that cannot be used (argparse's own code too)."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the process' exit code."""
    args = parse(argv, os.environ)
    if args.command == "crd":
        return _print_crd()
    configure_logging(
        level=args.log_level, fmt=args.log_format or ("text" if sys.stderr.isatty() else "json")
    )

    # Imported late: --help, --version and crd need no Kubernetes client.
    from kubeloop.client import ConfigError, load_config

    try:
        config = load_config(args.kubeconfig, args.context)
        return _once(config, args) if args.once else _run(config, args)
    except ConfigError as error:
        print(f"webapp-operator: {error}", file=sys.stderr)
        return EXIT_USAGE


def _run(config: ClusterConfig, args: argparse.Namespace) -> int:
    from kubeloop.clock import StopEvent
    from kubeloop.manager import stop_on_signals
    from webapp_operator.process import SetupError, build_manager

    stop = StopEvent()
    with stop_on_signals(stop):
        try:
            manager = build_manager(config, args, stop)
        except SetupError as error:
            print(f"webapp-operator: {error}", file=sys.stderr)
            return EXIT_USAGE
        return EXIT_OK if manager.run(stop, shutdown_timeout=args.shutdown_timeout) else EXIT_FAILED


def _once(config: ClusterConfig, args: argparse.Namespace) -> int:
    from kubeloop.client import connect, user_agent
    from kubeloop.clock import StopEvent
    from kubeloop.manager import Manager, stop_on_signals
    from kubeloop.manager.once import Recorder, run_once
    from webapp_operator.reconcile import webapp_controller
    from webapp_operator.report import print_pass

    recorder = Recorder()
    stop = StopEvent()
    agent = user_agent("webapp-operator")
    manager = Manager(
        connect(config, pool_size=args.workers + 4, stop=stop, user_agent=agent),
        namespaces=args.namespace,
        workers=args.workers,
        dry_run=args.dry_run,
        report=recorder.record,
    )
    manager.add(webapp_controller())
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


if __name__ == "__main__":
    sys.exit(main())
