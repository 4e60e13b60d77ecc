"""Keys, certificates, tokens and kubeconfigs of one throw-away control plane."""

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

SERVICE_CLUSTER_IP = "10.0.0.1"
"""The first address of the service range: what in-cluster clients would connect to."""
SERVER_NAMES = (
    "127.0.0.1",
    "localhost",
    SERVICE_CLUSTER_IP,
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
)
USERS: dict[str, tuple[str, ...]] = {
    # The control plane's own parts: may do everything, and stays out of the audit log.
    "controlplane": ("system:masters",),
    # May do everything: kubectl in tests.
    "admin": ("system:masters",),
    # Nothing but what config/rbac grants: the operator under test.
    "operator": ("webapp-operators",),
    # Nothing but what a test grants.
    "user": (),
}


@dataclass(frozen=True, slots=True)
class Credentials:
    """The files under `folder`, and each user's bearer token."""

    folder: Path
    tokens: dict[str, str]

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def server_certificate(self) -> Path:
        return self.folder / "server.crt"

    @property
    def server_key(self) -> Path:
        return self.folder / "server.key"

    @property
    def service_account_key(self) -> Path:
        return self.folder / "sa.key"

    @property
    def token_file(self) -> Path:
        return self.folder / "tokens.csv"


def create(folder: Path) -> Credentials:
    """Make a new set under `folder`, readable by its owner only."""
    folder.mkdir(mode=0o700, parents=True)
    tokens = {user: secrets.token_hex(16) for user in USERS}
    credentials = Credentials(folder, tokens)
    ca = trustme.CA()
    server = ca.issue_cert(*SERVER_NAMES)
    ca.cert_pem.write_to_path(str(credentials.ca))
    server.private_key_pem.write_to_path(str(credentials.server_key))
    for part in server.cert_chain_pems:
        part.write_to_path(str(credentials.server_certificate), append=True)
    # kube-apiserver takes only RSA and ECDSA keys for signing service account tokens.
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    credentials.service_account_key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    lines = (f'{tokens[user]},{user},{user},"{",".join(groups)}"\n' for user, groups in USERS.items())
    credentials.token_file.write_text("".join(lines))
    return credentials


def write_kubeconfig(path: Path, *, server: str, ca: Path, user: str, token: str) -> None:
    """A kubeconfig of one cluster, one user, one context; paths in it are absolute."""
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": {"server": server, "certificate-authority": str(ca)}}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": user}}],
        "current-context": "local",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config, sort_keys=False))
