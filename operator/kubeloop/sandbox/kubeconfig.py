"""A kubeconfig that leads to a sandbox."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import yaml

NOBODY = {"username": "nobody", "password": "none"}
"""Credentials that a sandbox with tokens takes for anonymous, and one without does not look at: over TLS
kubectl asks its user for a name and a password when it finds none."""


def kubeconfig(path: Path, url: str, *, ca: bytes = b"", token: str = "", namespace: str = "default") -> Path:
    """Write it (mode 0600, whole or not at all) and return its path. `ca` is PEM, empty for plain HTTP."""
    cluster: dict[str, str] = {"server": url}
    if ca:
        cluster["certificate-authority-data"] = base64.b64encode(ca).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "sandbox",
        "clusters": [{"name": "sandbox", "cluster": cluster}],
        "users": [{"name": "sandbox", "user": {"token": token} if token else NOBODY}],
        "contexts": [
            {
                "name": "sandbox",
                "context": {"cluster": "sandbox", "user": "sandbox", "namespace": namespace},
            }
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        yaml.safe_dump(document, file)
    draft.replace(path)
    return path
