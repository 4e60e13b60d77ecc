"""A certificate for loopback, made when it is needed. Optional: needs the package trustme."""

from __future__ import annotations

import ssl


class TlsUnavailableError(RuntimeError):
    """HTTPS was asked for, but trustme is not installed."""


def server_context(host: str) -> tuple[ssl.SSLContext, bytes]:
    """A TLS context with a fresh certificate for `host` and localhost, and its CA as PEM.

    Raises `TlsUnavailableError`.
    """
    try:
        import trustme
    except ImportError:
        raise TlsUnavailableError(
            "HTTPS needs the package trustme; plain HTTP on loopback does not"
        ) from None
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host, "localhost").configure_cert(context)
    context.set_alpn_protocols(["http/1.1"])
    return context, authority.cert_pem.bytes()
