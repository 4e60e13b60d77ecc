"""Which server, and as whom: a kubeconfig, else the service account of the pod we run in.

`kubeconfig` selects a context, `endpoint` reads what it says of TLS and proxies, `credentials` keeps what it
says of identity fresh.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubeloop.client import endpoint as endpoints
from kubeloop.client import kubeconfig as files
from kubeloop.client.client import Client
from kubeloop.client.credentials import (
    Anonymous,
    Credentials,
    basic,
    bearer,
    fixed,
    token_file,
)
from kubeloop.client.endpoint import Endpoint
from kubeloop.client.errors import ConfigError
from kubeloop.client.http_transport import HttpTransport
from kubeloop.client.transport import Transport
from kubeloop.clock import Clock, StopEvent
from kubeloop.version import __version__

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where the kubelet puts token, ca.crt and namespace."""

_FAILED = "kubeconfig failed to load"


@dataclass(frozen=True)
class ClusterConfig:
    """A server, how to reach it and as whom. `source` says where this was found, for logs."""

    server: str
    source: str
    namespace: str | None
    """The namespace of the context, or the pod's own; None if there is none."""
    endpoint: Endpoint = field(repr=False)
    credentials: Credentials = field(repr=False)
    in_cluster: bool = False


def load_config(
    kubeconfig: str | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    service_account: str = SERVICE_ACCOUNT,
    clock: Clock | None = None,
) -> ClusterConfig:
    """The configuration of this process.

    `kubeconfig` names a file that must exist. Without it, the files of $KUBECONFIG or ~/.kube/config are
    used if any exists, else the pod's service account. A file that exists but is not usable is an error and
    not a reason to look on.

    Raises `ConfigError` ("kubeconfig failed to load: ...") naming everything that was looked for.
    """
    environ = os.environ if environ is None else environ
    paths = files.candidates(kubeconfig, environ)
    present = [path for path in paths if os.path.exists(os.path.expanduser(path))]
    try:
        if present:
            return _from_kubeconfig(paths, context, environ, clock)
        if kubeconfig or context:
            raise ConfigError(f"there is no {', no '.join(paths)}")
        return _in_cluster(environ, service_account, paths, clock)
    except ConfigError as error:
        raise ConfigError(f"{_FAILED}: {error}") from error.__cause__


def connect(
    config: ClusterConfig,
    *,
    pool_size: int = 16,
    clock: Clock | None = None,
    stop: StopEvent | None = None,
    wrap: Callable[[Transport], Transport] | None = None,
    **options: Any,
) -> Client:
    """A client with a connection pool of its own; `pool_size` is best the number of its threads.

    `wrap`, if given, puts something around the transport, as client-go's WrapTransport does. `options` are
    those of `Client`.
    """
    from kubeloop.client.dialer import Urllib3Dialer

    dialer = Urllib3Dialer(config.endpoint, config.credentials)
    transport: Transport = HttpTransport(dialer, pool_size)
    if wrap is not None:
        transport = wrap(transport)
    options.setdefault("user_agent", user_agent())
    return Client(transport, credentials=config.credentials, clock=clock, stop=stop, **options)


def _from_kubeconfig(
    paths: list[str], context: str | None, environ: Mapping[str, str], clock: Clock | None
) -> ClusterConfig:
    selected = files.read(paths, context)
    try:
        endpoint = endpoints.from_kubeconfig(selected.cluster, selected.user, environ)
        credentials = _credentials(selected, paths, context, clock)
    except ConfigError as error:
        raise ConfigError(f"context {selected.context!r}: {error}") from error.__cause__
    return ClusterConfig(
        server=endpoint.url,
        source=f"kubeconfig {os.pathsep.join(paths)}, context {selected.context}",
        namespace=selected.namespace,
        endpoint=endpoint,
        credentials=credentials,
    )


def _credentials(
    selected: files.Selected, paths: list[str], context: str | None, clock: Clock | None
) -> Credentials:
    user = selected.user
    extra = _impersonation(user)
    if user.get("tokenFile"):
        return token_file(str(user["tokenFile"]), clock, extra)
    if user.get("auth-provider"):
        from kubeloop.client.official import auth_provider

        provided = auth_provider(user, extra, clock)
        if provided is not None:
            return provided
    if user.get("exec") and not user.get("token"):
        # Imported late: few need it, and what starts processes takes its time to import.
        from kubeloop.client.exec_plugin import ExecPlugin, exec_credentials

        plugin = ExecPlugin(user["exec"], selected.cluster, base=selected.user_base, clock=clock)
        return exec_credentials(plugin, clock, extra)
    headers = {**_static_headers(user), **extra}
    if not headers:
        return Anonymous()  # a client certificate, or nothing: the server will say

    def reload() -> Mapping[str, str]:
        anew = files.read(paths, context).user
        return {**_static_headers(anew), **_impersonation(anew)}

    return fixed(headers, reload, clock)


def _static_headers(user: Mapping[str, Any]) -> dict[str, str]:
    if user.get("token"):
        return bearer(str(user["token"]))
    if user.get("username"):
        return basic(str(user["username"]), str(user.get("password") or ""))
    return {}


def _impersonation(user: Mapping[str, Any]) -> dict[str, str]:
    """`as` and its kin. Acting as ourselves where the file says to act as somebody else would be a breach."""
    headers: dict[str, str] = {}
    if user.get("as"):
        headers["Impersonate-User"] = str(user["as"])
    if user.get("as-uid"):
        headers["Impersonate-Uid"] = str(user["as-uid"])
    groups = user.get("as-groups") or ()
    if len(groups) > 1 or user.get("as-user-extra"):
        raise ConfigError("impersonation of several groups or with extras is not supported")
    if groups:
        headers["Impersonate-Group"] = str(groups[0])
    return headers


def _in_cluster(
    environ: Mapping[str, str], folder: str, paths: list[str], clock: Clock | None
) -> ClusterConfig:
    looked_for = f"there is no {', no '.join(paths)}"
    if not environ.get("KUBERNETES_SERVICE_HOST"):
        raise ConfigError(f"{looked_for}, and this is no pod: KUBERNETES_SERVICE_HOST is not set")
    token, authority = os.path.join(folder, "token"), os.path.join(folder, "ca.crt")
    try:
        if not Path(authority).read_bytes():
            raise ConfigError(f"{authority} is empty")
        endpoint = endpoints.in_cluster(environ, authority)
        credentials = token_file(token, clock)
        credentials.headers()  # a token that cannot be read is an error now, not with the first request
    except (ConfigError, OSError) as error:
        raise ConfigError(
            f"{looked_for}, and the service account in {folder} is not usable: {error}"
        ) from None
    return ClusterConfig(
        server=endpoint.url,
        source=f"service account in {folder}",
        namespace=_read_namespace(folder),
        endpoint=endpoint,
        credentials=credentials,
        in_cluster=True,
    )


def _read_namespace(folder: str) -> str | None:
    try:
        return Path(folder, "namespace").read_text("utf-8").strip() or None
    except OSError:
        return None  # not every token volume has it


def user_agent(name: str = "kubeloop") -> str:
    """`name/version (system/machine) python/version`, as client-go composes its own."""
    system = os.uname()
    python = ".".join(map(str, sys.version_info[:3]))
    return f"{name}/{__version__} ({system.sysname.lower()}/{system.machine}) python/{python}"
