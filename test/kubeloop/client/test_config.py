"""Finding out whom to ask, and as whom."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubeloop.client import ConfigError, load_config
from kubeloop.client.credentials import Anonymous
from kubeloop.clock import FakeClock


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writes a kubeconfig with one cluster, user and context, all named `name`."""

    def write(name: str, *, cluster: Any = None, user: Any = None, context: Any = None, **top: Any) -> str:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        document: dict[str, Any] = {
            "clusters": [
                {"name": name, "cluster": {"server": f"https://{name}.example:6443", **(cluster or {})}}
            ],
            "users": [{"name": name, "user": user or {}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name, **(context or {})}}],
            "current-context": name,
            **top,
        }
        path = folder / "config"
        path.write_text(yaml.safe_dump(document))
        return str(path)

    return write


def headers(config: Any) -> Any:
    return config.credentials.headers()


def test_nothing_anywhere_names_all_that_was_looked_for(tmp_path: Path) -> None:
    """R4.5"""
    with pytest.raises(ConfigError) as caught:
        load_config(environ={"HOME": str(tmp_path)})
    message = str(caught.value)
    assert message.startswith("kubeconfig failed to load: ")
    assert str(tmp_path / ".kube" / "config") in message
    assert "KUBERNETES_SERVICE_HOST is not set" in message


def test_a_file_asked_for_must_exist(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(ConfigError, match=r"kubeconfig failed to load: there is no .*nowhere"):
        load_config(str(tmp_path / "nowhere"), environ=environ)


def test_the_home_directory_is_looked_at_last(write: Any, tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    Path(write("home")).rename(tmp_path / ".kube" / "config")
    environ = {"HOME": str(tmp_path)}
    assert load_config(environ=environ).server == "https://home.example:6443"
    environ["KUBECONFIG"] = write("env")
    assert load_config(environ=environ).server == "https://env.example:6443"
    assert load_config(write("given"), environ=environ).server == "https://given.example:6443"


def test_of_several_files_the_first_to_say_something_wins(write: Any, tmp_path: Path) -> None:
    first, second = write("one", user={"token": "1"}), write("two", user={"token": "2"})
    environ = {"KUBECONFIG": os.pathsep.join([str(tmp_path / "absent"), first, second])}
    config = load_config(environ=environ)
    assert (config.server, headers(config)) == ("https://one.example:6443", {"Authorization": "Bearer 1"})
    other = load_config(environ=environ, context="two")
    assert (other.server, headers(other)) == ("https://two.example:6443", {"Authorization": "Bearer 2"})
    assert "context two" in other.source


def test_paths_are_relative_to_the_file_they_stand_in(
    write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """bug report 7; the user's files beside the user, not beside the cluster"""
    first = write("one", cluster={"certificate-authority": "ca.crt"}, context={"user": "two"})
    second = write("two", user={"client-certificate": "c.crt", "client-key": "c.key", "tokenFile": "token"})
    (tmp_path / "one" / "ca.crt").write_text("CA")
    for name in ("c.crt", "c.key", "token"):
        (tmp_path / "two" / name).write_text(name)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    config = load_config(environ={"KUBECONFIG": os.pathsep.join([first, second])})
    assert config.endpoint.authority == str(tmp_path / "one" / "ca.crt")
    assert config.endpoint.certificate == (str(tmp_path / "two" / "c.crt"), str(tmp_path / "two" / "c.key"))
    assert headers(config) == {"Authorization": "Bearer token"}


def test_inline_certificates_become_private_files(write: Any) -> None:
    data = base64.b64encode(b"PEM").decode()
    path = write("a", user={"client-certificate-data": data, "client-key-data": data})
    config = load_config(path, environ={})
    assert config.endpoint.certificate
    key = Path(config.endpoint.certificate[1])
    assert key.read_text() == "PEM"
    assert key.stat().st_mode & 0o077 == 0
    assert isinstance(config.credentials, Anonymous)
    del config
    assert not key.exists()


@pytest.mark.parametrize(
    ("user", "complaint"),
    [
        ({"client-certificate-data": "not base64!"}, "client-certificate-data is not base64"),
        ({"client-certificate-data": "UEVN"}, "one is given without the other"),
        ({"client-key": "/not/there.pem"}, r"client-key: there is no file /not/there\.pem"),
    ],
)
def test_a_certificate_that_cannot_be_used_is_an_error_at_once(write: Any, user: Any, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        load_config(write("a", user=user), environ={})


@pytest.mark.parametrize(
    ("cluster", "url"),
    [
        ({"server": "http://h:1/"}, "http://h:1"),
        ({"server": "h:1"}, "http://h:1"),
        ({"server": "h:1", "insecure-skip-tls-verify": True}, "https://h:1"),
        ({"server": "h:1", "certificate-authority-data": "UEVN"}, "https://h:1"),
    ],
)
def test_a_server_without_scheme_is_taken_as_kubectl_takes_it(write: Any, cluster: Any, url: str) -> None:
    assert load_config(write("a", cluster=cluster), environ={}).server == url


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"token": " abc\n"}, {"Authorization": "Bearer abc"}),
        ({"username": "me", "password": "pw"}, {"Authorization": "Basic bWU6cHc="}),
        (
            {"token": "t", "as": "ops", "as-groups": ["g"], "as-uid": "u"},
            {
                "Authorization": "Bearer t",
                "Impersonate-User": "ops",
                "Impersonate-Group": "g",
                "Impersonate-Uid": "u",
            },
        ),
        ({}, {}),
    ],
)
def test_ways_to_say_who_we_are(write: Any, user: Any, expected: Any) -> None:
    assert headers(load_config(write("a", user=user), environ={})) == expected


def test_what_cannot_be_impersonated_is_refused(write: Any) -> None:
    with pytest.raises(ConfigError, match="impersonation"):
        load_config(write("a", user={"token": "t", "as": "x", "as-groups": ["a", "b"]}), environ={})


def test_a_token_changed_in_the_file_is_used_when_the_old_one_is_refused(write: Any) -> None:
    config = load_config(write("a", user={"token": "old"}), environ={})
    refused = headers(config)
    write("a", user={"token": "new"})
    assert headers(config) == refused
    assert config.credentials.renew(refused)
    assert headers(config) == {"Authorization": "Bearer new"}


def test_server_name_proxy_and_namespace_are_read(write: Any) -> None:
    """bug report 7; the file's proxy beats the environment's exceptions"""
    cluster = {
        "proxy-url": "http://me:pw@proxy:3128",
        "tls-server-name": "api",
        "insecure-skip-tls-verify": True,
    }
    config = load_config(
        write("a", cluster=cluster, context={"namespace": "team"}), environ={"NO_PROXY": "*"}
    )
    assert config.namespace == "team"
    assert config.endpoint.proxy == "http://me:pw@proxy:3128"
    assert config.endpoint.server_name == "api"
    assert config.endpoint.verify is False
    assert "pw" not in repr(config)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: [", "not YAML in line"),
        ("- a", "not a kubeconfig, but a list"),
        ("", "no current-context"),
        ("clusters: 5", "clusters is not a list"),
        ("clusters: [{cluster: {}}]", "an entry of clusters has no name"),
        ("users: [{name: a, user: []}]\nusers: [{name: a, user: x}]", "no proper user"),
        ("current-context: x", "there is no context 'x', only: none at all"),
        ("current-context: x\ncontexts: [{name: x, context: {cluster: c}}]", "refers to cluster 'c'"),
        (
            "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\nclusters: [{name: c}]",
            "has no server",
        ),
        (
            "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
            "clusters: [{name: c, cluster: {server: s}}]",
            "refers to user 'u'",
        ),
    ],
)
def test_a_broken_file_says_what_is_wrong_and_nothing_else_is_tried(
    tmp_path: Path, text: str, complaint: str
) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    environ = {"KUBECONFIG": str(path), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    with pytest.raises(ConfigError, match=complaint) as caught:
        load_config(environ=environ)
    assert str(path) in str(caught.value)


def test_a_missing_certificate_file_is_an_error_at_once(write: Any) -> None:
    with pytest.raises(ConfigError, match=r"ca\.crt"):
        load_config(write("a", cluster={"certificate-authority": "ca.crt"}), environ={})


def test_no_secret_is_shown(write: Any) -> None:
    config = load_config(write("a", user={"token": "hunter2"}), environ={})
    headers(config)
    assert "hunter2" not in repr(config)


@pytest.fixture
def account(tmp_path: Path) -> Path:
    folder = tmp_path / "account"
    folder.mkdir()
    (folder / "token").write_text("one\n")
    (folder / "ca.crt").write_text("CA")
    (folder / "namespace").write_text("home")
    return folder


@pytest.mark.parametrize(
    ("host", "server"), [("10.0.0.1", "https://10.0.0.1:443"), ("fd00::1", "https://[fd00::1]:443")]
)
def test_a_pod_uses_its_service_account(account: Path, host: str, server: str) -> None:
    """R0.20, bug report 8"""
    clock = FakeClock()
    environ = {"HOME": str(account), "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}
    config = load_config(environ=environ, service_account=str(account), clock=clock)
    assert config.in_cluster
    assert (config.server, config.namespace) == (server, "home")
    assert config.endpoint.authority == str(account / "ca.crt")
    assert headers(config) == {"Authorization": "Bearer one"}
    (account / "token").write_text("two")
    clock.advance(61)
    assert headers(config) == {"Authorization": "Bearer two"}


@pytest.mark.parametrize("missing", ["token", "ca.crt"])
def test_a_pod_without_a_usable_account_says_so(account: Path, missing: str) -> None:
    (account / missing).unlink()
    environ = {"HOME": str(account), "KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(ConfigError, match=r"service account in .* is not usable"):
        load_config(environ=environ, service_account=str(account))
    (account / missing).write_text("")
    with pytest.raises(ConfigError, match="is not usable"):
        load_config(environ=environ, service_account=str(account))


def test_a_pod_without_a_port_to_go_to_says_so(account: Path) -> None:
    environ = {"HOME": str(account), "KUBERNETES_SERVICE_HOST": "h"}
    with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_PORT is not set"):
        load_config(environ=environ, service_account=str(account))


@pytest.mark.parametrize(
    ("cluster", "complaint"),
    [
        ({"insecure-skip-tls-verify": "false"}, "neither true nor false"),
        ({"insecure-skip-tls-verify": 0}, "neither true nor false"),
        ({"insecure-skip-tls-verify": True, "certificate-authority-data": "UEVN"}, "contradicts"),
        ({"certificate-authority-data": "äöü"}, "not base64"),
        ({"server": "https://127.0.0.1:abc"}, "server is no URL"),
        ({"server": "https://127.0.0.1:99999"}, "server is no URL"),
        ({"server": "https://[::1"}, "server is no URL"),
        ({"server": " https://h"}, "server is no URL"),
        ({"server": "ftp://h"}, "server is no URL"),
        ({"proxy-url": "ftp://h"}, "proxy-url is no URL"),
        ({"proxy-url": "me:pw@h:9"}, "proxy-url is no URL"),
        ({"proxy-url": "http://"}, "proxy-url is no URL"),
    ],
)
def test_what_would_lead_elsewhere_or_nowhere_is_an_error_at_once(
    write: Any, cluster: Any, complaint: str
) -> None:
    """A quoted "false" must not switch the verification off, and the token go to whoever answers."""
    with pytest.raises(ConfigError, match=complaint) as caught:
        load_config(write("a", cluster=cluster), environ={})
    assert "pw" not in str(caught.value)
