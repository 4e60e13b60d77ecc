"""A runtime for synchronous, multi-threaded Kubernetes operators.

    from kubeloop import Context, Controller, CustomResource, Deployment, Model, Result, custom_resource

    def reconcile(app: WebApp, ctx: Context[WebApp]) -> Result:
        ctx.apply(build_deployment(app))  # no request unless it drifted
        return Result(requeue_after=RESYNC)

    Controller(WebApp, reconcile, field_manager="webapp-operator").owns(Deployment)

What most operators need is exported here; each name is imported from its package when it is first used, so
that ``import kubeloop.clock`` costs no more than the clock. The packages state their contracts: `client`
(talking to the server), `model` (types and CRDs), `cache` (informers), `queue`, `controller`, `manager`
(the process), `leader` (election), `observe` (logs, metrics, Events), `sandbox` (an API server for tests).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubeloop.cache import Added, Deleted, Informer, Modified, events
    from kubeloop.client import Api, ApiError, Client, ConfigError, connect, load_config
    from kubeloop.clock import StopEvent
    from kubeloop.controller import RESYNC, Blocked, Context, Controller, Result, TerminalError
    from kubeloop.manager import Manager, stop_on_signals
    from kubeloop.model import (
        CustomResource,
        Deployment,
        Field,
        Items,
        Map,
        Model,
        Resource,
        Service,
        custom_resource,
        metadata_only,
    )

_HOMES = {
    "kubeloop.cache": ("Added", "Deleted", "Informer", "Modified", "events"),
    "kubeloop.client": ("Api", "ApiError", "Client", "ConfigError", "connect", "load_config"),
    "kubeloop.clock": ("StopEvent",),
    "kubeloop.controller": ("RESYNC", "Blocked", "Context", "Controller", "Result", "TerminalError"),
    "kubeloop.manager": ("Manager", "stop_on_signals"),
    "kubeloop.model": (
        "CustomResource",
        "Deployment",
        "Field",
        "Items",
        "Map",
        "Model",
        "Resource",
        "Service",
        "custom_resource",
        "metadata_only",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "RESYNC",
    "Added",
    "Api",
    "ApiError",
    "Blocked",
    "Client",
    "ConfigError",
    "Context",
    "Controller",
    "CustomResource",
    "Deleted",
    "Deployment",
    "Field",
    "Informer",
    "Items",
    "Manager",
    "Map",
    "Model",
    "Modified",
    "Resource",
    "Result",
    "Service",
    "StopEvent",
    "TerminalError",
    "connect",
    "custom_resource",
    "events",
    "load_config",
    "metadata_only",
    "stop_on_signals",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
