"""Side by side with the kubernetes package: what it does for us, and how to use it on the same cluster.

Nothing here is imported unless it is used: the package takes 0.3 s and 10 MiB.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kubeloop.client.credentials import CachedCredentials, Fresh, bearer
from kubeloop.client.errors import ConfigError
from kubeloop.client.proxies import proxy_headers
from kubeloop.clock import Clock

if TYPE_CHECKING:
    from kubernetes.client import Configuration

    from kubeloop.client.config import ClusterConfig


def kubernetes_configuration(config: ClusterConfig) -> Configuration:
    """A `kubernetes.client.Configuration` for the same server and user, its token kept fresh by ours.

    For what only the official client has, such as `exec` into a pod:
    `CoreV1Api(ApiClient(kubernetes_configuration(load_config())))`. Raises `ConfigError` if there is no
    credential now.
    """
    from kubernetes.client import Configuration

    endpoint = config.endpoint
    result: Any = Configuration(host=endpoint.url)  # the package is only partly typed
    result.ssl_ca_cert = endpoint.authority
    result.ca_cert_data = endpoint.authority_data
    result.verify_ssl = endpoint.verify
    result.tls_server_name = endpoint.server_name
    result.proxy = endpoint.proxy
    result.no_proxy = None
    result.proxy_headers = proxy_headers(endpoint.proxy) if endpoint.proxy else None

    def refresh(configuration: Any) -> None:
        headers = config.credentials.headers()
        if set(headers) - {"Authorization"}:
            raise ConfigError("the kubernetes package cannot impersonate")
        if "Authorization" in headers:
            configuration.api_key["BearerToken"] = headers["Authorization"]
        certificate = config.credentials.client_certificate() or endpoint.certificate
        if certificate is not None:
            configuration.cert_file, configuration.key_file = certificate

    refresh(result)
    result.refresh_api_key_hook = refresh
    configuration: Configuration = result
    return configuration


def auth_provider(
    user: Mapping[str, Any], extra: Mapping[str, str], clock: Clock | None
) -> CachedCredentials | None:
    """The token of a user's `auth-provider` section (oidc, gcp), which the package refreshes; None without.

    `extra` are headers to send with it.
    """
    from kubernetes.client import Configuration
    from kubernetes.config import ConfigException, load_kube_config_from_dict

    document = {
        "current-context": "selected",
        "contexts": [{"name": "selected", "context": {"cluster": "selected", "user": "selected"}}],
        "clusters": [{"name": "selected", "cluster": {"server": "http://unused"}}],
        "users": [{"name": "selected", "user": {"auth-provider": user["auth-provider"]}}],
    }
    configuration = Configuration()
    try:
        load: Any = load_kube_config_from_dict  # the package is only partly typed
        load(document, client_configuration=configuration)
    except (ConfigException, OSError, ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"auth-provider: {error}") from None
    if "BearerToken" not in configuration.api_key:
        return None

    def read() -> Fresh:
        value = str(configuration.auth_settings()["BearerToken"]["value"])
        return Fresh({**bearer(value.partition(" ")[2]), **extra}, 60.0)

    return CachedCredentials(read, name="auth-provider", clock=clock)
