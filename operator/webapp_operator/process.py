"""Puts the operator's process together: connections, election, endpoints, metrics, Events."""

from __future__ import annotations

import argparse
import logging
import os
import ssl
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

from kubeloop.backoff import Backoff
from kubeloop.client import ClusterConfig, RetryPolicy, connect, user_agent
from kubeloop.client.private_files import remove_all
from kubeloop.clock import StopEvent
from kubeloop.leader import new_identity
from kubeloop.manager import LOST_LEASE_EXIT, Manager, WriteGate
from kubeloop.manager.checks import liveness, readiness
from kubeloop.manager.health import Health
from kubeloop.manager.http import Handler, HttpServer, Reply, Request, Routes, parse_address
from kubeloop.manager.state import ManagerState
from kubeloop.manager.statusz import statusz
from kubeloop.manager.telemetry import Telemetry
from kubeloop.observe import fields
from kubeloop.observe.events import EventRecorder
from kubeloop.version import __version__
from webapp_operator.flags import one_address
from webapp_operator.reconcile import webapp_controller

if TYPE_CHECKING:
    from kubeloop.observe.tracing import Tracing

HEALTH_PORT, METRICS_PORT = 8081, 8080
"""controller-runtime's."""

EVENT_RETRIES = RetryPolicy(attempts=3, backoff=Backoff(base=1.0, cap=10.0))
"""Events are decoration: a server that is busy should not be asked too often for them."""
EVENT_TIMEOUT = 5.0
"""Seconds for one try."""

_logger = logging.getLogger("webapp_operator")


class SetupError(Exception):
    """The process cannot run as it is asked to."""


def build_manager(
    config: ClusterConfig, args: argparse.Namespace, stop: StopEvent, tracing: Tracing | None = None
) -> Manager:
    """Everything, ready to `run`. Raises `SetupError`."""
    elect = config.in_cluster if args.leader_elect is None else args.leader_elect
    namespace = _lease_namespace(config, args) if elect else ""
    telemetry = Telemetry(host=urlsplit(config.server).netloc, lease=args.lease_name if elect else "")
    gate = WriteGate(elected_only=elect, refusals=telemetry.refusals)
    identity, agent = new_identity(), user_agent("webapp-operator")
    client = connect(
        config,
        pool_size=args.workers + 4,
        stop=stop,
        wrap=partial(tracing.transport, server=config.server) if tracing is not None else None,
        user_agent=agent,
        fence=gate.check,
        observer=telemetry.requested,
    )
    # Of their own, so that neither a slow server nor a full pool lets Events stand in the way of work.
    event_client = connect(
        config,
        pool_size=1,
        stop=stop,
        user_agent=agent,
        fence=gate.check,
        observer=telemetry.requested,
        retry=EVENT_RETRIES,
        timeout=EVENT_TIMEOUT,
    )
    manager = Manager(
        client,
        namespaces=args.namespace,
        workers=args.workers,
        telemetry=telemetry,
        events=EventRecorder(event_client, "example.com/webapp-operator", identity),
        tracing=tracing,
    )
    manager.closes(event_client)
    manager.add(webapp_controller(resync=timedelta(seconds=args.resync)))
    if elect:
        from kubeloop.leader import ElectionSettings, LeaseLock

        transport = connect(config, pool_size=2).transport
        lock = LeaseLock(transport, namespace, args.lease_name, credentials=config.credentials, agent=agent)
        settings = ElectionSettings(identity, args.lease_duration, args.renew_deadline, args.retry_period)
        manager.elect(lock, settings, gate, _leave)
    about = {
        "name": "webapp-operator",
        "version": __version__,
        "identity": identity,
        "server": config.server,
        "namespaces": ", ".join(args.namespace) or "all namespaces",
    }
    _add_servers(manager, telemetry, about, config, args, stop)
    _logger.info(
        "starting",
        extra=fields(version=__version__, server=config.server, source=config.source, leader_election=elect),
    )
    return manager


def _lease_namespace(config: ClusterConfig, args: argparse.Namespace) -> str:
    namespace = args.lease_namespace or config.namespace or os.environ.get("POD_NAMESPACE")
    if not namespace:
        raise SetupError("--leader-elect needs --lease-namespace: nothing else says where the Lease is")
    return str(namespace)


def _leave(_why: str) -> NoReturn:
    """The lease is lost: another process may be working. Nothing is waited for, as threads may hang."""
    remove_all()
    logging.shutdown()
    sys.stdout.flush()
    os._exit(LOST_LEASE_EXIT)


def _add_servers(
    manager: Manager,
    telemetry: Telemetry,
    about: dict[str, str],
    config: ClusterConfig,
    args: argparse.Namespace,
    stop: StopEvent,
) -> None:
    health = Health("/healthz", liveness(manager)).routes()
    health.add(Health("/readyz", readiness(manager)).routes())
    pages: dict[str, Handler] = {
        "/metrics": _metrics(telemetry),
        "/statusz": statusz(ManagerState(manager, about).read),
    }
    if one_address(args):
        health.add(Routes(pages))
        _add_server(manager, "health", args.health_bind_address, 0, health, config)
        return
    tls = None
    if args.metrics_secure:
        # Imported late, like the election: certificates and reviews take their time to load.
        from kubeloop.manager.certificate import CertificateError, CertificateFiles, SelfSigned
        from kubeloop.manager.protection import REVIEW_RETRIES, REVIEW_TIMEOUT, Guard

        # Without the gate: standbys are asked for their metrics too, and a review writes nothing.
        reviewer = connect(config, pool_size=2, stop=stop, retry=REVIEW_RETRIES, timeout=REVIEW_TIMEOUT)
        manager.closes(reviewer)
        guard = Guard(reviewer)
        pages = {path: guard.protect(page) for path, page in pages.items()}
        try:
            folder = args.metrics_cert_dir
            tls = CertificateFiles(folder).context if folder else SelfSigned().context
        except CertificateError as error:
            raise SetupError(f"--metrics-secure: {error}") from error
    _add_server(manager, "health", args.health_bind_address, HEALTH_PORT, health, config)
    _add_server(manager, "metrics", args.metrics_bind_address, METRICS_PORT, Routes(pages), config, tls)


def _add_server(
    manager: Manager,
    name: str,
    given: str | None,
    default_port: int,
    routes: Routes,
    config: ClusterConfig,
    tls: Callable[[], ssl.SSLContext] | None = None,
) -> None:
    address = given
    if address is None:
        address = f":{default_port}" if config.in_cluster else f"127.0.0.1:{default_port}"
    where = parse_address(address)
    if where is None:
        return
    try:
        server = HttpServer(name, where, routes, tls=tls)
    except OSError as error:
        if given is None and not config.in_cluster:
            # On a workstation several may run; nobody asked for these endpoints.
            _logger.warning("address is taken, going on without", extra=fields(server=name, address=address))
            return
        raise SetupError(f"--{name}-bind-address: cannot listen on {address}: {error}") from error
    _logger.info(
        "listening", extra=fields(server=name, address=address, port=server.port, tls=tls is not None)
    )
    manager.serve(server)


def _metrics(telemetry: Telemetry) -> Handler:
    def answer(request: Request) -> Reply:
        body, content_type = telemetry.set.render(request.headers.get("accept", ""))
        return Reply(body, content_type)

    return answer
