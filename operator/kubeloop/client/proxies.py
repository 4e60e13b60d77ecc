"""Which proxy stands between us and a server: $HTTPS_PROXY, $HTTP_PROXY and $NO_PROXY as Go reads them.

kubectl and every Go client behave so, and one kubeconfig should lead all of them the same way
(golang.org/x/net/http/httpproxy).
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def environment_proxy(url: str, environ: Mapping[str, str]) -> str | None:
    """The proxy that the environment names for `url`, unless it is on this machine or in $NO_PROXY."""
    target = urlsplit(url)
    name = f"{target.scheme}_proxy"
    proxy = environ.get(name.upper()) or environ.get(name)
    if not proxy or _is_exempt(target.hostname or "", target.port, environ):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def proxy_headers(proxy: str) -> dict[str, str]:
    """Proxy-Authorization for a proxy URL with user and password in it."""
    parts = urlsplit(proxy)
    if parts.username is None:
        return {}
    secret = base64.b64encode(f"{parts.username}:{parts.password or ''}".encode()).decode()
    return {"Proxy-Authorization": f"Basic {secret}"}


def _is_exempt(host: str, port: int | None, environ: Mapping[str, str]) -> bool:
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    rules = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    return any(_covers(rule.strip().lower(), host, port, address) for rule in rules.split(","))


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _covers(rule: str, host: str, port: int | None, address: _Address | None) -> bool:
    if rule in ("", "*"):
        return rule == "*"
    if address is not None:
        try:
            return address in ipaddress.ip_network(rule, strict=False)
        except ValueError:
            pass  # a name, or an address with a port
    name, colon, rule_port = rule.rpartition(":")
    if colon and rule_port.isdigit():
        if int(rule_port) != port:
            return False
        rule = name
    if rule.startswith(("*.", ".")):
        return host.endswith(rule.removeprefix("*"))
    return host == rule.strip("[]") or host.endswith(f".{rule}")


def _address(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
