"""Where a server is and how a connection to it is made: what a kubeconfig says of TLS and proxies.

Read here and not by the kubernetes package: its loader costs 0.3 s and 10 MiB in every process, most of it
for parts that an operator never touches, and leaves out what kubectl understands (docs/design/client.md).
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from kubeloop.client.errors import ConfigError
from kubeloop.client.private_files import PrivateFiles
from kubeloop.client.proxies import environment_proxy


@dataclass(frozen=True)
class Endpoint:
    """One API server. Files are read for each new connection, so that rotated ones are used."""

    url: str
    """Scheme, host, port and the path that all requests start with; no slash at its end."""
    authority: str | None = None
    """Path of the certificates to trust; None: `authority_data`, else the system's."""
    authority_data: str | None = field(default=None, repr=False)
    """The same as text."""
    certificate: tuple[str, str] | None = field(default=None, repr=False)
    """Paths of the certificate and the key to show."""
    verify: bool = True
    server_name: str | None = None
    """The name that the server's certificate must be for, if not the URL's host."""
    proxy: str | None = field(default=None, repr=False)
    """URL of an http, https or socks5 proxy; it may hold a password."""
    files: PrivateFiles = field(default_factory=PrivateFiles, repr=False, compare=False)
    """Keeps what was written for this endpoint as long as it is used."""


def from_kubeconfig(
    cluster: Mapping[str, Any], user: Mapping[str, Any], environ: Mapping[str, str]
) -> Endpoint:
    """The endpoint of a kubeconfig's cluster for one of its users; file paths in them are absolute.

    Raises `ConfigError` for data that is not base64, for files that are not there and for a client
    certificate without key, or the reverse.
    """
    files = PrivateFiles()
    data = _decoded(cluster, "certificate-authority")
    authority = _path(cluster, "certificate-authority") if data is None else None
    certificate = _material(user, "client-certificate", files)
    key = _material(user, "client-key", files)
    if (certificate is None) != (key is None):
        raise ConfigError("client-certificate and client-key: one is given without the other")
    insecure = cluster.get("insecure-skip-tls-verify")
    if not isinstance(insecure, bool | None):
        # "false" in quotes is a text, and a text is not nothing: nobody may lose the verification by that.
        raise ConfigError("insecure-skip-tls-verify is neither true nor false")
    if insecure and (authority or data):
        raise ConfigError("insecure-skip-tls-verify: true contradicts the certificate-authority")
    verify = not insecure
    url = str(cluster["server"]).rstrip("/")
    if "://" not in url:
        # As client-go (rest.DefaultServerURL): https when anything speaks of TLS.
        url = f"{'https' if authority or data or certificate or not verify else 'http'}://{url}"
    _check_url("server", url, ("http", "https"))
    given = cluster.get("proxy-url")
    proxy = str(given) if given else environment_proxy(url, environ)
    if proxy:
        _check_url("proxy-url", proxy, ("http", "https", "socks5", "socks5h"))
    return Endpoint(
        url=url,
        authority=authority,
        authority_data=data.decode("ascii", "replace") if data is not None else None,
        certificate=(certificate, key) if certificate and key else None,
        verify=verify,
        server_name=cluster.get("tls-server-name") or None,
        # What the file says for this cluster beats the environment, its exceptions included.
        proxy=proxy,
        files=files,
    )


def _check_url(what: str, url: str, schemes: tuple[str, ...]) -> None:
    """Raises `ConfigError` for what cannot be connected to. Never shows the URL: it may hold a password."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or url != url.strip() or any(sign.isspace() for sign in url):
        raise ConfigError(f"{what} is no URL of the kind {schemes[0]}://host:port")


def in_cluster(environ: Mapping[str, str], authority: str) -> Endpoint:
    """The API server of the cluster that this pod runs in, reached directly.

    A pod's API server is near, whatever proxy the environment names for other traffic. Raises `ConfigError`
    if the environment does not say where it is.
    """
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ConfigError("KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set")
    return Endpoint(f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}", authority)


def _material(section: Mapping[str, Any], name: str, files: PrivateFiles) -> str | None:
    """Path of a PEM file that stands in `section` by name, or as base64 (which wins, as in kubectl)."""
    data = _decoded(section, name)
    return files.write(f"{name}.pem", data) if data is not None else _path(section, name)


def _decoded(section: Mapping[str, Any], name: str) -> bytes | None:
    data = section.get(f"{name}-data")
    if not data:
        return None
    try:
        return base64.b64decode("".join(str(data).split()), validate=True)
    except ValueError:  # binascii.Error is one
        raise ConfigError(f"{name}-data is not base64") from None


def _path(section: Mapping[str, Any], name: str) -> str | None:
    path = section.get(name)
    if not path:
        return None
    if not os.path.isfile(str(path)):
        raise ConfigError(f"{name}: there is no file {path}")
    return str(path)
