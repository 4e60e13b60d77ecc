"""The command line's grammar, the same as environment variables, and the rules between flags."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from typing import NoReturn

from kubeloop.observe import LOG_FORMATS, LOG_LEVELS
from kubeloop.version import __version__

PREFIX = "WEBAPP_OPERATOR_"
"""Of the environment variables that stand for flags."""

DEFAULT_WORKERS = 8
MAX_WORKERS = 256
LEASE_NAME = "webapp-operator"

_EPILOG = f"""\
Each flag can also be set as {PREFIX}<FLAG>, in capitals and with _ for -: true or false for those without a
value, commas between several namespaces. The command line wins.

exit codes:
  0  stopped cleanly; with --once: every WebApp converged
  1  with --once: some WebApp did not converge; otherwise: did not stop in time, or was told to stop twice
  2  unusable arguments or configuration, or an address that is taken
  3  lost the lease: another process may be working; start anew

examples:
  webapp-operator crd | kubectl apply -f -
  webapp-operator --namespace default --log-level debug
  python -m operator --once --dry-run
"""


class _Parser(argparse.ArgumentParser):
    """Says where a bad value came from: the environment or the command line."""

    source = ""

    def error(self, message: str) -> NoReturn:
        super().error(f"{self.source}{message}")


def parse(argv: Sequence[str] | None, environ: Mapping[str, str]) -> argparse.Namespace:
    """What the user wants. Ends the process with exit code 2, naming the rule, if that cannot be."""
    parser = build_parser()
    given: argparse.Namespace | None = None
    for action in list(parser._actions):
        variable = PREFIX + action.dest.upper()
        value = environ.get(variable, "").strip()
        if not value or not action.option_strings or isinstance(action, argparse._VersionAction):
            continue
        if isinstance(action, argparse._HelpAction):
            continue
        parser.source = f"environment variable {variable}: "
        given = parser.parse_args(_as_arguments(parser, action, value), given)
        parser.source = ""
    from_environment = list(given.namespace) if given is not None else []
    if given is not None:
        given.namespace = []
    args = parser.parse_args(argv, given)
    args.namespace = args.namespace or from_environment
    _check(parser, args)
    return args


def _as_arguments(parser: argparse.ArgumentParser, action: argparse.Action, value: str) -> list[str]:
    flag = action.option_strings[0]
    if action.nargs == 0:
        if value.lower() not in ("true", "false"):
            parser.error(f"{value!r} is neither true nor false")
        if value.lower() == "true":
            return [flag]
        return [action.option_strings[1]] if len(action.option_strings) > 1 else []
    if action.dest == "namespace":
        return [f"{flag}={name.strip()}" for name in value.split(",")]
    return [f"{flag}={value}"]


def _check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """The rules between flags."""
    if args.command == "crd":
        return
    if args.dry_run and not args.once:
        parser.error("--dry-run only goes with --once")
    if args.once and args.leader_elect:
        parser.error("--once takes part in no election: it makes its pass whoever leads")
    if args.metrics_secure and args.metrics_bind_address in ("", "0"):
        parser.error("--metrics-secure needs --metrics-bind-address, which is switched off")
    if args.metrics_cert_dir and not args.metrics_secure:
        parser.error("--metrics-cert-dir only goes with --metrics-secure")
    if args.metrics_secure and one_address(args):
        parser.error("--metrics-secure needs another --metrics-bind-address than --health-bind-address has")
    if not args.once:
        from kubeloop.leader.settings import ElectionSettings

        try:
            ElectionSettings("x", args.lease_duration, args.renew_deadline, args.retry_period)
        except ValueError as error:
            parser.error(str(error))


def one_address(args: argparse.Namespace) -> bool:
    """Whether all endpoints are to be served at one address. Port 0 is any free one: two of them."""
    health, metrics = args.health_bind_address, args.metrics_bind_address
    return health is not None and health == metrics and not health.endswith(":0") and health not in ("", "0")


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


def _lease_name(text: str) -> str:
    parts = text.split(".")
    if len(text) > 253 or not all(
        part
        and part.replace("-", "a").isalnum()
        and part.isascii()
        and part == part.lower()
        and not part.startswith("-")
        and not part.endswith("-")
        for part in parts
    ):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not the name of an object: lower-case letters, digits, dashes and dots"
        )
    return text


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds greater than 0")
    return seconds


def _resync(text: str) -> float:
    seconds = _seconds(text)
    if not 1 <= seconds <= 7 * 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 1 second and a week")
    return seconds


def _address(text: str) -> str:
    from kubeloop.manager.http import parse_address

    try:
        parse_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def build_parser() -> _Parser:
    """The command line's grammar."""
    parser = _Parser(
        prog="webapp-operator",
        description="Keeps a Deployment (and a Service) for every WebApp, and repairs them when they drift.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
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
    _add_work(parser.add_argument_group("work"))
    _add_election(parser.add_argument_group("leader election (times in seconds, the same for all replicas)"))
    _add_endpoints(parser.add_argument_group("endpoints (host:port, :port, or 0 to switch it off)"))
    logs = parser.add_argument_group("logs (on stderr) and traces")
    logs.add_argument(
        "--log-format",
        choices=LOG_FORMATS,
        help="default: text on a terminal, json elsewhere",
    )
    logs.add_argument("--log-level", choices=LOG_LEVELS, default="info", help="default: %(default)s")
    logs.add_argument(
        "--tracing",
        action=argparse.BooleanOptionalAction,
        help="spans by OpenTelemetry, with its ids in the logs, see docs/tracing.md (default: if "
        "OTEL_TRACES_EXPORTER or OTEL_EXPORTER_OTLP_ENDPOINT is set)",
    )
    commands = parser.add_subparsers(dest="command", metavar="", title="other commands")
    commands.add_parser("crd", help="print the CustomResourceDefinition of WebApp as YAML")
    return parser


def _add_work(work: argparse._ArgumentGroup) -> None:
    work.add_argument(
        "--workers",
        metavar="N",
        type=_workers,
        default=DEFAULT_WORKERS,
        help="WebApps to reconcile at a time (default: %(default)s)",
    )
    work.add_argument(
        "--resync",
        metavar="SECONDS",
        type=_resync,
        default=300.0,
        help="how often a WebApp is looked at when nothing happens (default: 300)",
    )
    work.add_argument(
        "--shutdown-timeout",
        metavar="SECONDS",
        type=_seconds,
        default=30.0,
        help="how long a stop may take in all (default: 30)",
    )
    work.add_argument("--once", action="store_true", help="one full pass, print what happened, then exit")
    work.add_argument(
        "--dry-run",
        action="store_true",
        help="with --once: show what would change, checked by the server; writes nothing",
    )


def _add_election(election: argparse._ArgumentGroup) -> None:
    election.add_argument(
        "--leader-elect",
        action=argparse.BooleanOptionalAction,
        help="work only while holding the lease (default: in a cluster yes, with a kubeconfig no)",
    )
    election.add_argument(
        "--lease-name",
        metavar="NAME",
        type=_lease_name,
        default=LEASE_NAME,
        help="name of the Lease (default: %(default)s)",
    )
    election.add_argument(
        "--lease-namespace",
        metavar="NAME",
        type=_namespace,
        help="where the Lease is (default: the pod's own namespace, or that of the kubeconfig's context)",
    )
    for flag, default, text in (
        ("--lease-duration", 15.0, "how long others wait for a leader that is silent; whole seconds"),
        ("--renew-deadline", 10.0, "how long a leader that cannot renew goes on; less than the duration"),
        ("--retry-period", 2.0, "how often the lease is renewed; 1.2 times this is less than the deadline"),
    ):
        help_ = f"{text} (default: {default:g})"
        election.add_argument(flag, metavar="SECONDS", type=_seconds, default=default, help=help_)


def _add_endpoints(endpoints: argparse._ArgumentGroup) -> None:
    endpoints.add_argument(
        "--health-bind-address",
        metavar="ADDRESS",
        type=_address,
        help="/healthz and /readyz (default: in a cluster :8081, else 127.0.0.1:8081 if that is free)",
    )
    endpoints.add_argument(
        "--metrics-bind-address",
        metavar="ADDRESS",
        type=_address,
        help="/metrics and /statusz (default: in a cluster :8080, else 127.0.0.1:8080 if that is free)",
    )
    endpoints.add_argument(
        "--metrics-secure",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="HTTPS, and only for those whom RBAC allows to get the path (default: no)",
    )
    endpoints.add_argument(
        "--metrics-cert-dir",
        metavar="DIR",
        help="where tls.crt and tls.key are, and may change (default: a certificate made up at start)",
    )
