"""URLs, IP addresses and networks in expressions."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

URL, IP, CIDR = "kubernetes.URL", "net.IP", "net.CIDR"
Value = dict[str, str]
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Interface | ipaddress.IPv6Interface
_BAD = re.compile(r"[\x00-\x20\x7f<>\"]|%(?![0-9A-Fa-f]{2})")


def _split(text: str) -> SplitResult | None:
    """A URL or a path as Go's url.ParseRequestURI takes it."""
    if not text or _BAD.search(text):
        return None
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return None
    if text.startswith("/"):
        return parts
    return parts if parts.scheme and text[len(parts.scheme) + 1 :].startswith("/") else None


def is_url(text: str) -> bool:
    return _split(text) is not None


def url(text: str) -> Value:
    """Raises ValueError for what is no URL."""
    if _split(text) is None:
        raise ValueError(
            f'URL parse error during conversion from string: parse "{text}": invalid URI for request'
        )
    return {URL: text}


def _parts(value: Value) -> SplitResult:
    return urlsplit(value[URL])


def _host(value: Value) -> str:
    return _parts(value).netloc.rpartition("@")[2]


def _hostname(value: Value) -> str:
    host = _host(value)
    return host[1 : host.index("]")] if host.startswith("[") else host.partition(":")[0]


def _port(value: Value) -> str:
    port = _parts(value).port
    return "" if port is None else str(port)


URL_PARTS: dict[str, Callable[[Value], str]] = {
    "getScheme": lambda value: _parts(value).scheme,
    "getHost": _host,
    "getHostname": _hostname,
    "getPort": _port,
    "getEscapedPath": lambda value: _parts(value).path,
}


def query(value: Value) -> dict[str, list[str]]:
    return parse_qs(_parts(value).query, keep_blank_values=True)


def _address(text: str) -> _Address | None:
    if "%" in text:
        return None  # zones are not taken
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None
    return None if mapped else found


def is_ip(text: str) -> bool:
    return _address(text) is not None


def ip(text: str) -> Value:
    """Raises ValueError for what is no address."""
    found = _address(text)
    if found is None:
        raise ValueError(
            f'IP Address "{text}" parse error during conversion from string: '
            f'ParseAddr("{text}"): unable to parse IP'
        )
    return {IP: str(found)}


def is_canonical(text: str) -> bool:
    """Raises ValueError for what is no address."""
    return ip(text)[IP] == text


def _ip(value: Any) -> _Address:
    return ipaddress.ip_address(value[IP] if isinstance(value, dict) else ip(value)[IP])


def family(value: Value) -> int:
    return _ip(value).version


def _global_unicast(value: Value) -> bool:
    """Go's sense: neither unspecified, loopback, multicast nor link-local; private ones count."""
    address = _ip(value)
    broadcast = str(address) == "255.255.255.255"
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not (special or broadcast)


def _link_local_multicast(value: Value) -> bool:
    address = _ip(value)
    if address.version == 4:
        return address in ipaddress.ip_network("224.0.0.0/24")
    return address.is_multicast and address.packed[1] & 0x0F == 2


IP_TESTS: dict[str, Callable[[Value], bool]] = {
    "isUnspecified": lambda value: _ip(value).is_unspecified,
    "isLoopback": lambda value: _ip(value).is_loopback,
    "isLinkLocalMulticast": _link_local_multicast,
    "isLinkLocalUnicast": lambda value: _ip(value).is_link_local,
    "isGlobalUnicast": _global_unicast,
}


def _interface(text: str) -> _Network | None:
    address, slash, length = text.partition("/")
    if (
        not slash
        or not length.isdigit()
        or (length != "0" and length.startswith("0"))
        or _address(address) is None
    ):
        return None
    try:
        return ipaddress.ip_interface(text)
    except ValueError:
        return None


def is_cidr(text: str) -> bool:
    return _interface(text) is not None


def cidr(text: str) -> Value:
    """Raises ValueError for what is no network."""
    found = _interface(text)
    if found is None:
        prefix = "network address parse error during conversion from string: "
        why = "no '/'" if "/" not in text else "bad prefix"
        raise ValueError(f'{prefix}{prefix}netip.ParsePrefix("{text}"): {why}')
    return {CIDR: str(found)}


def _cidr(value: Any) -> _Network:
    return ipaddress.ip_interface(value[CIDR] if isinstance(value, dict) else cidr(value)[CIDR])


def contains_ip(value: Value, other: Any) -> bool:
    return _ip(other) in _cidr(value).network


def contains_cidr(value: Value, other: Any) -> bool:
    whole, part = _cidr(value).network, _cidr(other).network
    if whole.version != part.version:
        return False
    return whole.prefixlen <= part.prefixlen and part.network_address in whole


def prefix_length(value: Value) -> int:
    return _cidr(value).network.prefixlen


def ip_of(value: Value) -> Value:
    return {IP: str(_cidr(value).ip)}


def masked(value: Value) -> Value:
    return {CIDR: str(_cidr(value).network)}


def text(value: Value) -> str:
    return next(iter(value.values()))
