"""`--metrics-secure`: who sees /metrics and /statusz is RBAC's word, and the certificate can be replaced.

As in controller-runtime: HTTPS, a bearer token, TokenReview and SubjectAccessReview. The operator asks with
the rights of `config/rbac`.
"""

from __future__ import annotations

import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

ROOT = Path(__file__).resolve().parents[2]
READER = ROOT / "config" / "rbac" / "metrics_reader_role.yaml"
AUTH_BINDING = "webapp-operator-metrics-auth"
SECURE = ("--health-bind-address=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0", "--metrics-secure")
PAGES = ("/metrics", "/statusz")


def blindly() -> ssl.SSLContext:
    """A client that takes any certificate, as scrapers of one that was made up at start must."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def get(url: str, token: str | None = None, trust: ssl.SSLContext | None = None) -> tuple[int, str]:
    """Status and text of a page; 0 and the reason when there is no connection."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60, context=trust or blindly()) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


class Endpoints:
    """The addresses of one operator."""

    def __init__(self, cluster: Any, operator: Any) -> None:
        cluster.wait(lambda: len(operator.lines("listening")) == 2, 15, "the endpoints")
        self.operator = operator
        self._ports = {name: operator.port(name) for name in ("health", "metrics")}

    def see(
        self, path: str, token: str | None = None, trust: ssl.SSLContext | None = None
    ) -> tuple[int, str]:
        """A page of the metrics' address."""
        return get(f"https://127.0.0.1:{self._ports['metrics']}{path}", token, trust)

    def health(self, path: str) -> int:
        """The status of a page of the health address, which is open."""
        return get(f"http://127.0.0.1:{self._ports['health']}{path}")[0]

    def plainly(self, path: str) -> tuple[int, str]:
        """A page of the metrics' address, asked for without TLS."""
        return get(f"http://127.0.0.1:{self._ports['metrics']}{path}")


@pytest.fixture
def start(cluster: Any, start_operator: Callable[..., Any]) -> Callable[..., Endpoints]:
    """Start an operator with protected metrics."""
    return lambda *flags: Endpoints(cluster, start_operator(*SECURE, *flags))


@pytest.fixture
def scraper(cluster: Any) -> Iterator[str]:
    """The token of one who may see metrics: by the ClusterRole that is shipped for it."""
    subject, token = cluster.account("scraper")
    name = f"scraper-{cluster.namespace}"
    cluster.apply(yaml.safe_load(READER.read_text()))
    cluster.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "webapp-operator-metrics-reader",
            },
            "subjects": [subject],
        }
    )
    yield token
    cluster.kubectl("delete", "clusterrolebinding", name)


@pytest.fixture
def stranger(cluster: Any) -> str:
    """The token of a ServiceAccount without rights."""
    return str(cluster.account("stranger")[1])


class TestWhoMaySee:
    def test_it_takes_a_token_and_the_right_to_get_the_page(
        self, start: Callable[..., Endpoints], scraper: str, stranger: str
    ) -> None:
        at = start()
        for page in PAGES:
            assert at.see(page) == (401, "Unauthorized\n")
            assert at.see(page, "made-up") == (401, "Unauthorized\n")
            assert at.see(page, stranger) == (403, "Forbidden\n")
            assert at.see(page, scraper)[0] == 200
        assert "controller_runtime_reconcile_total" in at.see("/metrics", scraper)[1]
        assert "webapp-operator" in at.see("/statusz", scraper)[1]
        # A page that is not there says so to nobody more than to others.
        assert at.see("/elsewhere", stranger)[0] == at.see("/elsewhere")[0] == 404

    def test_there_is_no_way_around(self, start: Callable[..., Endpoints], scraper: str) -> None:
        """Neither in plain text, nor by another spelling, nor at the address of the probes."""
        at = start()
        status, text = at.plainly("/metrics")
        assert status == 0, text
        for path in (
            "/metrics/",
            "//metrics",
            "/%6detrics",
            "/metrics?x=1",
            "/statusz?format=json",
            "/./metrics",
        ):
            assert at.see(path)[0] in (401, 404), path
        for path in PAGES:
            assert at.health(path) == 404
        assert at.see("/%6detrics", scraper)[0] == 200

    def test_probes_need_neither(self, cluster: Any, start: Callable[..., Endpoints]) -> None:
        """The kubelet has no token."""
        at = start()
        assert at.health("/healthz") == 200
        cluster.wait(lambda: at.health("/readyz") == 200, 15, "readiness")


class TestReviewsThatFail:
    def test_without_the_right_to_review_nobody_gets_in(
        self, cluster: Any, start: Callable[..., Endpoints], scraper: str
    ) -> None:
        """Like controller-runtime: 500, and the log says why."""
        binding = cluster.kubectl("get", "clusterrolebinding", AUTH_BINDING, "-o", "yaml").stdout
        at = start()
        cluster.kubectl("delete", "clusterrolebinding", AUTH_BINDING)
        try:
            cluster.wait(lambda: at.see("/metrics", scraper)[0] == 500, 10, "the missing right to show")
            status, text = at.see("/statusz", scraper)
            assert status == 500
            assert "kubeloop" not in text
            assert at.see("/metrics")[0] == 401
            assert at.health("/healthz") == 200
        finally:
            manifest = yaml.safe_load(binding)
            manifest["metadata"] = {"name": AUTH_BINDING}
            cluster.apply(manifest)
        (line, *_) = at.operator.lines("cannot find out who may see metrics")
        assert "tokenreviews" in line["error"]
        assert scraper not in at.operator.log.read_text()
        cluster.wait(lambda: at.see("/metrics", scraper)[0] == 200, 10, "the right to be given back")

    def test_without_an_api_server_nobody_new_gets_in(
        self, bare_cluster: Any, start_on: Callable[..., Any]
    ) -> None:
        cluster = bare_cluster
        at = Endpoints(cluster, start_on(cluster, *SECURE))
        token = cluster.account("stranger")[1]
        cluster.stop()

        status, text = at.see("/metrics", token)
        assert status == 500
        assert "kubeloop" not in text
        assert at.see("/metrics")[0] == 401
        assert at.health("/healthz") == 200


class MountedSecret:
    """A folder as the kubelet mounts a Secret: files are links, and all change at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._count = 0
        folder.mkdir()
        for file in ("tls.crt", "tls.key", "ca.crt"):
            (folder / file).symlink_to(Path("..data", file))

    def update(self) -> ssl.SSLContext:
        """A new certificate; gives what trusts it and nothing else."""
        authority = trustme.CA()
        issued = authority.issue_cert("127.0.0.1")
        self._count += 1
        version = self.folder / f"..{self._count}"
        version.mkdir()
        (version / "tls.crt").write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
        (version / "tls.key").write_bytes(issued.private_key_pem.bytes())
        (version / "ca.crt").write_bytes(authority.cert_pem.bytes())
        (self.folder / "..data_tmp").symlink_to(version.name)
        os.replace(self.folder / "..data_tmp", self.folder / "..data")
        trust = ssl.create_default_context()
        authority.configure_trust(trust)
        return trust


class TestCertificate:
    def test_one_from_files_can_be_verified_and_is_replaced_without_a_restart(
        self, start: Callable[..., Endpoints], scraper: str, tmp_path: Path
    ) -> None:
        mounted = MountedSecret(tmp_path / "metrics-tls")
        first = mounted.update()
        at = start(f"--metrics-cert-dir={mounted.folder}")
        assert at.see("/metrics", scraper, first)[0] == 200

        second = mounted.update()
        assert at.see("/metrics", scraper, second)[0] == 200
        status, why = at.see("/metrics", scraper, first)
        assert (status, "CERTIFICATE_VERIFY_FAILED" in why) == (0, True)
        assert len(at.operator.lines("certificate reloaded")) == 1

    def test_a_folder_without_one_is_said_at_once(
        self, start_operator: Callable[..., Any], tmp_path: Path
    ) -> None:
        operator = start_operator(*SECURE, f"--metrics-cert-dir={tmp_path / 'missing'}")

        assert operator.child.wait(15) == 2
        assert "--metrics-secure: no usable certificate" in operator.tail()
