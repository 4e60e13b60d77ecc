"""The command line: ``webapp-operator`` and ``python -m operator``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import argparse

    from kubeloop.client import ClusterConfig
    from kubeloop.observe.tracing import Tracing

EXIT_OK = 0
EXIT_FAILED = 1
"""A pass that did not converge, or an operator that did not stop in time."""
EXIT_USAGE = 2
"""Arguments or a configuration that cannot be used (argparse's own code too)."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the process' exit code."""
    words = sys.argv[1:] if argv is None else argv
    with _leaving_at_once_on_signals(EXIT_FAILED if "--once" in words else EXIT_OK):
        # Imported late: a signal may come while this takes its time, and --help needs no Kubernetes client.
        from kubeloop.observe import configure_logging
        from webapp_operator.flags import parse

        args = parse(argv, os.environ)
        if args.command == "crd":
            return _print_crd()
        configure_logging(
            level=args.log_level, fmt=args.log_format or ("text" if sys.stderr.isatty() else "json")
        )

        from kubeloop.client import ConfigError, load_config
        from kubeloop.observe.otel import TracingError

        try:
            config = load_config(args.kubeconfig, args.context)
            tracing = _tracing(args)
            return _once(config, args, tracing) if args.once else _run(config, args, tracing)
        except (ConfigError, TracingError) as error:
            print(f"webapp-operator: {error}", file=sys.stderr)
            return EXIT_USAGE


@contextmanager
def _leaving_at_once_on_signals(code: int) -> Iterator[None]:
    """SIGTERM and SIGINT before anything was started: there is nothing to stop, and no traceback to show."""

    def leave(_number: int, _frame: object) -> NoReturn:
        raise SystemExit(code)

    previous = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _tracing(args: argparse.Namespace) -> Tracing | None:
    """By --tracing or by OpenTelemetry's own variables. Raises `TracingError` if it cannot be."""
    from kubeloop.observe import otel
    from kubeloop.version import __version__

    why = "--tracing" if args.tracing else otel.asked_for(os.environ)
    if not why or args.tracing is False or otel.disabled(os.environ):
        return None
    if why != "--tracing":
        why += " (unless --no-tracing)"
    tracing = otel.set_up("webapp-operator", __version__, why=why)
    tracing.mark_logs()
    return tracing


def _run(config: ClusterConfig, args: argparse.Namespace, tracing: Tracing | None) -> int:
    from kubeloop.clock import StopEvent
    from kubeloop.manager import stop_on_signals
    from webapp_operator.process import SetupError, build_manager

    stop = StopEvent()
    with stop_on_signals(stop):
        try:
            manager = build_manager(config, args, stop, tracing)
        except SetupError as error:
            print(f"webapp-operator: {error}", file=sys.stderr)
            return EXIT_USAGE
        return EXIT_OK if manager.run(stop, shutdown_timeout=args.shutdown_timeout) else EXIT_FAILED


def _once(config: ClusterConfig, args: argparse.Namespace, tracing: Tracing | None) -> int:
    from functools import partial

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
        connect(
            config,
            pool_size=args.workers + 4,
            stop=stop,
            wrap=partial(tracing.transport, server=config.server) if tracing is not None else None,
            user_agent=agent,
        ),
        namespaces=args.namespace,
        workers=args.workers,
        dry_run=args.dry_run,
        report=recorder.record,
        tracing=tracing,
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
