"""The certificate of the metrics server: from files that may change, or made up at start."""

from __future__ import annotations

import logging
import os
import ssl
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kubeloop.observe import fields

VALID = timedelta(days=365)
"""Of a certificate that is made up at start, as controller-runtime's."""

_logger = logging.getLogger("kubeloop.manager")


class CertificateError(Exception):
    """There is no certificate that could be used."""


class CertificateFiles:
    """The TLS context for ``tls.crt`` and ``tls.key`` in a folder, made anew when the files change.

    The files are looked at for each new connection (two `stat` calls), so nothing has to poll. While a new
    pair is not usable, for example half written, the old one goes on. Raises `CertificateError` if the first
    pair is not usable.
    """

    def __init__(self, folder: str) -> None:
        self._certificate, self._key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        self._lock = threading.Lock()  # guards _seen and _context
        try:
            self._seen = self._look()
            self._context = _context(self._certificate, self._key)
        except (OSError, ValueError) as error:
            raise CertificateError(f"no usable certificate in {folder}: {error}") from error

    def context(self) -> ssl.SSLContext:
        """The context for a new connection."""
        with self._lock:
            try:
                seen = self._look()
                if seen != self._seen:
                    self._seen = seen
                    self._context = _context(self._certificate, self._key)
                    _logger.info("certificate reloaded", extra=fields(file=str(self._certificate)))
            except (OSError, ValueError) as error:
                _logger.warning(
                    "new certificate is not usable, keeping the old one", extra=fields(error=str(error))
                )
            return self._context

    def _look(self) -> list[tuple[int, int]]:
        return [(s.st_mtime_ns, s.st_ino) for s in (os.stat(self._certificate), os.stat(self._key))]


class SelfSigned:
    """A certificate of this process' own. It encrypts, and proves nothing: clients cannot verify it."""

    def __init__(self, names: Sequence[str] = ("localhost",)) -> None:
        """Raises `CertificateError` if the package that makes certificates is not installed."""
        certificate, key = _make(names)
        try:
            with _as_file(certificate + key) as path:
                self._context = _context(path, path)
        except OSError as error:
            raise CertificateError(f"a certificate could not be made up: {error}") from error

    def context(self) -> ssl.SSLContext:
        """The context for a new connection."""
        return self._context


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A path that `content` can be read from, as the ssl module reads files only.

    In memory where that can be: an image is often read-only without a temporary folder, and a key is best on
    no disk.
    """
    if sys.platform == "linux":
        with open(os.memfd_create("certificate"), "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile(prefix="certificate-") as temporary:  # readable by its owner only
            temporary.write(content)
            temporary.flush()
            yield temporary.name


def _context(certificate: Path | str, key: Path | str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    return context


def _make(names: Sequence[str]) -> tuple[bytes, bytes]:
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise CertificateError(
            "making a certificate up needs the extra 'tls' (package cryptography); or give one"
        ) from None
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, names[0])])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + VALID)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(each) for each in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return (
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
