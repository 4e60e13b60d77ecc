"""$HTTPS_PROXY, $HTTP_PROXY and $NO_PROXY lead where they lead kubectl."""

from __future__ import annotations

import pytest

from kubeloop.client.proxies import environment_proxy, proxy_headers

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        ("https://api:6443", {}, None),
        ("https://api:6443", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://api:6443", {"https_proxy": "proxy:3128"}, PROXY),
        ("https://api:6443", {"HTTP_PROXY": PROXY}, None),
        ("http://api:8080", {"HTTP_PROXY": PROXY}, PROXY),
    ],
)
def test_the_servers_scheme_says_which_variable_counts(
    url: str, environ: dict[str, str], proxy: str | None
) -> None:
    assert environment_proxy(url, environ) == proxy


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.8.8", "[::1]"])
def test_what_is_on_this_machine_is_reached_directly(host: str) -> None:
    assert environment_proxy(f"https://{host}:6443", {"HTTPS_PROXY": PROXY}) is None


@pytest.mark.parametrize(
    ("url", "rules", "exempt"),
    [
        ("https://api.example.com", "example.com", True),
        ("https://API.example.com", "example.COM", True),
        ("https://example.com", "example.com", True),
        ("https://example.com", ".example.com", False),
        ("https://api.example.com", ".example.com", True),
        ("https://api.example.com", "*.example.com", True),
        ("https://myexample.com", "example.com", False),
        ("https://api.example.com", "other.org, *", True),
        ("https://api:6443", "api:6443", True),
        ("https://api:6443", "api:443", False),
        ("https://10.1.2.3:6443", "10.0.0.0/8", True),
        ("https://11.1.2.3:6443", "10.0.0.0/8", False),
        ("https://10.1.2.3:6443", "10.1.2.3", True),
        ("https://10.1.2.3:6443", "10.1.2.3:6443", True),
        ("https://[fd00::1]:6443", "fd00::/8", True),
        ("https://api", ",,", False),
    ],
)
def test_no_proxy_names_hosts_domains_ports_and_networks(url: str, rules: str, exempt: bool) -> None:
    assert (environment_proxy(url, {"HTTPS_PROXY": PROXY, "NO_PROXY": rules}) is None) is exempt


def test_a_proxys_password_goes_into_a_header_of_its_own() -> None:
    assert proxy_headers("http://me:pw@proxy:1") == {"Proxy-Authorization": "Basic bWU6cHc="}
    assert proxy_headers(PROXY) == {}
