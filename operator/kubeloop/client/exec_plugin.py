"""Credentials from an exec plugin (client.authentication.k8s.io), as cloud providers use them."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from kubeloop.client.credentials import CachedCredentials, Fresh, bearer
from kubeloop.client.errors import ConfigError
from kubeloop.client.private_files import PrivateFiles
from kubeloop.clock import Clock, SystemClock

PLUGIN_TIMEOUT = 60.0
"""Seconds that a plugin may take; long enough for one that asks a person, and not for ever."""

SKEW = 60.0
"""Seconds before its expiry from which a credential is not used any more, at most half of its life."""

_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class ExecPlugin:
    """Runs the plugin that a kubeconfig user names. `read` gives a fresh credential or raises ConfigError."""

    def __init__(
        self, spec: Mapping[str, Any], cluster: Mapping[str, Any], *, base: str, clock: Clock | None = None
    ) -> None:
        """`spec` is the user's `exec` section, `cluster` its cluster, `base` the kubeconfig's folder."""
        self._clock = clock or SystemClock()
        command = spec.get("command")
        version = spec.get("apiVersion")
        if not isinstance(command, str) or not command:
            raise ConfigError("exec plugin without command")
        if version not in _VERSIONS:
            raise ConfigError(
                f"exec plugin {command}: apiVersion {version!r} is none of {', '.join(_VERSIONS)}"
            )
        if spec.get("interactiveMode") == "Always":
            raise ConfigError(f"exec plugin {command} wants a terminal (interactiveMode: Always)")
        # A bare name is looked up on PATH, a relative path is relative to the kubeconfig.
        self._command = os.path.join(base, command) if os.sep in command else command
        self._arguments = [str(argument) for argument in spec.get("args") or ()]
        self._version = str(version)
        self._hint = str(spec.get("installHint") or "")
        self._environment = {str(entry["name"]): str(entry["value"]) for entry in spec.get("env") or ()}
        self._cluster = _cluster_info(cluster) if spec.get("provideClusterInfo") else None
        self._files = PrivateFiles()
        self._certificates = 0

    def read(self) -> Fresh:
        """Run the plugin and take its answer apart."""
        status = self._run()
        certificate, key, token = (
            status.get("clientCertificateData"),
            status.get("clientKeyData"),
            status.get("token"),
        )
        if bool(certificate) != bool(key):
            raise ConfigError(f"exec plugin {self._command} gave a certificate without key, or the reverse")
        if not token and not certificate:
            raise ConfigError(f"exec plugin {self._command} gave neither token nor certificate")
        return Fresh(
            bearer(str(token)) if token else {},
            self._lifetime(status.get("expirationTimestamp")),
            self._store(str(certificate), str(key)) if certificate else None,
        )

    def _run(self) -> Mapping[str, Any]:
        if shutil.which(self._command) is None:
            raise ConfigError(f"exec plugin {self._command} not found. {self._hint}".strip())
        info: dict[str, Any] = {
            "apiVersion": self._version,
            "kind": "ExecCredential",
            "spec": {"interactive": False},
        }
        if self._cluster is not None:
            info["spec"]["cluster"] = self._cluster
        try:
            done = subprocess.run(
                [self._command, *self._arguments],
                env={**os.environ, **self._environment, "KUBERNETES_EXEC_INFO": json.dumps(info)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=PLUGIN_TIMEOUT,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = (
                f"no answer in {PLUGIN_TIMEOUT:g} s"
                if isinstance(error, subprocess.TimeoutExpired)
                else error
            )
            raise ConfigError(f"exec plugin {self._command}: {reason}") from None
        if done.returncode:
            complaint = done.stderr.decode("utf-8", "replace").strip()[-500:]
            raise ConfigError(f"exec plugin {self._command} failed with code {done.returncode}: {complaint}")
        try:
            answer = json.loads(done.stdout)
            status = answer["status"]
            version = answer["apiVersion"]
        except (ValueError, KeyError, TypeError):
            # Never its output: that may be a token.
            raise ConfigError(f"exec plugin {self._command} did not print an ExecCredential") from None
        if version != self._version or not isinstance(status, dict):
            raise ConfigError(f"exec plugin {self._command} answered as {version!r}, not {self._version}")
        return status

    def _lifetime(self, expiry: object) -> float:
        if not expiry:
            return float("inf")  # until the server refuses it
        try:
            until = datetime.fromisoformat(str(expiry))
            seconds = (until - self._clock.now()).total_seconds()
        except (ValueError, TypeError):
            raise ConfigError(f"exec plugin {self._command}: bad expirationTimestamp {expiry!r}") from None
        if seconds <= 0:
            raise ConfigError(f"exec plugin {self._command} gave a credential that has expired")
        return seconds - min(SKEW, seconds / 2)

    def _store(self, certificate: str, key: str) -> tuple[str, str]:
        self._certificates += 1
        number = self._certificates
        for kind in ("cert", "key"):
            # The pair before this one may be in use for a connection that is being opened.
            self._files.remove(f"{kind}-{number - 2}.pem")
        return (
            self._files.write(f"cert-{number}.pem", certificate.encode()),
            self._files.write(f"key-{number}.pem", key.encode()),
        )

    def __repr__(self) -> str:
        return f"ExecPlugin({self._command})"


def exec_credentials(
    plugin: ExecPlugin, clock: Clock | None = None, extra: Mapping[str, str] | None = None
) -> CachedCredentials:
    """The plugin's credentials with `extra` headers, read when needed, one run at a time."""

    def read() -> Fresh:
        fresh = plugin.read()
        return fresh._replace(headers={**fresh.headers, **extra}) if extra else fresh

    return CachedCredentials(read, name=repr(plugin), clock=clock)


def _cluster_info(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """What `provideClusterInfo` promises the plugin."""
    names = (
        "server",
        "tls-server-name",
        "insecure-skip-tls-verify",
        "certificate-authority-data",
        "proxy-url",
        "disable-compression",
    )
    info = {name: cluster[name] for name in names if name in cluster}
    authority = cluster.get("certificate-authority")
    if authority and "certificate-authority-data" not in info:
        info["certificate-authority-data"] = base64.b64encode(Path(authority).read_bytes()).decode()
    for extension in cluster.get("extensions") or ():
        if extension.get("name") == "client.authentication.k8s.io/exec":
            info["config"] = extension.get("extension")
    return info
