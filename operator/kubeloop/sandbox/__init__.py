"""A simulated Kubernetes API server, in memory: for tests, demos and trying kubectl on a bare machine.

Contract: what it answers is what a real kube-apiserver (1.36) answers; what it does not simulate it refuses
with a 501 `Status` naming the feature. It imports nothing of the runtime but the clock, so that it can
judge it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubeloop.sandbox.access import User
    from kubeloop.sandbox.controllers import DeploymentOptions
    from kubeloop.sandbox.sandbox import Sandbox, SandboxError, SandboxFault

# Imported when first used: the parts of this package import each other through it.
_HOMES = {
    "DeploymentOptions": "kubeloop.sandbox.controllers",
    "Sandbox": "kubeloop.sandbox.sandbox",
    "SandboxError": "kubeloop.sandbox.sandbox",
    "SandboxFault": "kubeloop.sandbox.sandbox",
    "User": "kubeloop.sandbox.access",
}

__all__ = ["DeploymentOptions", "Sandbox", "SandboxError", "SandboxFault", "User"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
