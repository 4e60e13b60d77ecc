"""The kubernetes package beside ours: one kubeconfig, one identity."""

from __future__ import annotations

import base64
import json
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from kubeloop.client import ConfigError, kubernetes_configuration, load_config


def kubeconfig(folder: Path, user: Any, **cluster: Any) -> str:
    document = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": cluster}],
        "users": [{"name": "x", "user": user}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return str(path)


def test_the_official_client_talks_to_the_same_server_as_the_same_user(echo: Any, tmp_path: Path) -> None:
    from kubernetes.client import ApiClient, VersionApi

    authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("api.internal", key_type=trustme.KeyType.ECDSA).configure_cert(context)
    server = echo(tls=context)
    (tmp_path / "token").write_text("one")
    path = kubeconfig(
        tmp_path,
        {"tokenFile": "token"},
        server=f"https://127.0.0.1:{server.port}",
        **{"certificate-authority": "ca.crt", "tls-server-name": "api.internal"},
    )
    client = ApiClient(kubernetes_configuration(load_config(path, environ={})))
    VersionApi(client).get_code(_preload_content=False)
    client.rest_client.close()
    assert server.requests[0][1]["authorization"] == "Bearer one"


def test_an_identity_that_it_cannot_take_on_is_refused(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, {"token": "t", "as": "ops"}, server="http://h")
    with pytest.raises(ConfigError, match="cannot impersonate"):
        kubernetes_configuration(load_config(path, environ={}))


def jwt(claims: dict[str, Any]) -> str:
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    return ".".join([*(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts), "c2ln"])


def test_an_oidc_section_gives_its_token(tmp_path: Path) -> None:
    token = jwt({"exp": 4_000_000_000, "sub": "me@example.com"})
    user = {"auth-provider": {"name": "oidc", "config": {"id-token": token}}}
    config = load_config(kubeconfig(tmp_path, user, server="http://h"), environ={})
    assert config.credentials.headers() == {"Authorization": f"Bearer {token}"}


def test_an_oidc_section_that_makes_no_sense_is_an_error(tmp_path: Path) -> None:
    user = {"auth-provider": {"name": "oidc", "config": {}}}
    with pytest.raises(ConfigError, match="auth-provider"):
        load_config(kubeconfig(tmp_path, user, server="http://h"), environ={})
