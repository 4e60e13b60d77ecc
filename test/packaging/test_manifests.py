"""What `kubectl apply -k config/default` would install."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from kubeloop.version import __version__

CONFIG = Path(__file__).resolve().parents[2] / "config"
BASES = sorted(path.parent.name for path in CONFIG.glob("*/kustomization.yaml"))
SCHEMAS = "1.36"
"""The Kubernetes whose schemas the manifests are checked against."""

Manifest = dict[str, Any]

POD_LABELS = {"app.kubernetes.io/name": "webapp-operator"}


def render(base: str) -> list[Manifest]:
    program = shutil.which("kubectl") or str(Path(sys.executable).parent / "kubectl")
    done = subprocess.run([program, "kustomize", str(CONFIG / base)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


@pytest.fixture(scope="module")
def installed() -> dict[tuple[str, str], Manifest]:
    return {(each["kind"], each["metadata"]["name"]): each for each in render("default")}


def rules(role: Manifest) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule.get("apiGroups", [""])
        for resource in rule.get("resources", rule.get("nonResourceURLs"))
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize("base", BASES)
def test_every_base_renders_without_a_network(base: str) -> None:
    assert render(base)


def test_every_built_in_object_is_valid_by_its_schema(installed: dict[tuple[str, str], Manifest]) -> None:
    for manifest in installed.values():
        if (
            manifest["kind"] != "CustomResourceDefinition"
        ):  # its schema is recursive; the real server judges it
            kubernetes_validate.validate(manifest, SCHEMAS, strict=True)


def test_every_yaml_file_is_part_of_a_base() -> None:
    """One that no kustomization names would be forgotten. Samples and the Book's CRD are applied by file."""
    for kustomization in CONFIG.glob("*/kustomization.yaml"):
        folder = kustomization.parent
        named = set(yaml.safe_load(kustomization.read_text())["resources"])
        files = {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml", "books.yaml"}
        if folder.name not in ("samples", "default"):
            assert files == {each for each in named if not each.startswith("../")}, folder.name


class TestRights:
    def test_the_operator_may_do_what_it_does_and_no_more(
        self, installed: dict[tuple[str, str], Manifest]
    ) -> None:
        children = {"get", "list", "watch", "create", "patch", "delete"}
        expected = {("example.com", "webapps", verb) for verb in ("get", "list", "watch", "patch")}
        expected |= {
            ("example.com", "webapps/status", "patch"),
            ("example.com", "webapps/finalizers", "update"),
        }
        expected |= {("apps", "deployments", verb) for verb in children}
        expected |= {("", "services", verb) for verb in children}
        expected |= {("events.k8s.io", "events", verb) for verb in ("create", "patch")}

        assert rules(installed["ClusterRole", "webapp-operator"]) == expected

    def test_leases_are_only_its_own(self, installed: dict[tuple[str, str], Manifest]) -> None:
        role = installed["Role", "webapp-operator-leader-election"]
        named = [rule for rule in role["rules"] if rule["verbs"] != ["create"]]

        assert role["metadata"]["namespace"] == "webapp-system"
        assert all(rule["resourceNames"] == ["webapp-operator"] for rule in named)
        assert {verb for _, _, verb in rules(role)} == {"create", "get", "watch", "update"}

    def test_asking_who_may_see_metrics_is_a_right_of_its_own(
        self, installed: dict[tuple[str, str], Manifest]
    ) -> None:
        assert rules(installed["ClusterRole", "webapp-operator-metrics-auth"]) == {
            ("authentication.k8s.io", "tokenreviews", "create"),
            ("authorization.k8s.io", "subjectaccessreviews", "create"),
        }

    def test_whoever_may_read_metrics_may_read_nothing_else(
        self, installed: dict[tuple[str, str], Manifest]
    ) -> None:
        role = installed["ClusterRole", "webapp-operator-metrics-reader"]

        assert role["rules"] == [{"nonResourceURLs": ["/metrics", "/statusz"], "verbs": ["get"]}]

    def test_no_role_has_a_wildcard(self, installed: dict[tuple[str, str], Manifest]) -> None:
        roles = [each for (kind, _), each in installed.items() if kind in ("Role", "ClusterRole")]

        assert len(roles) == 6
        for role in roles:
            assert not [entry for entry in rules(role) if "*" in entry]

    def test_bindings_lead_from_the_service_account_of_the_deployment_to_roles_that_exist(
        self, installed: dict[tuple[str, str], Manifest]
    ) -> None:
        account = installed["Deployment", "webapp-operator"]["spec"]["template"]["spec"]["serviceAccountName"]
        for kind in ("ClusterRoleBinding", "RoleBinding"):
            bindings = [each for (k, _), each in installed.items() if k == kind]
            assert bindings
            for binding in bindings:
                assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in installed
                assert [s["name"] for s in binding["subjects"]] == [account]
                assert [s["namespace"] for s in binding["subjects"]] == ["webapp-system"]

    def test_people_get_rights_through_the_built_in_roles(
        self, installed: dict[tuple[str, str], Manifest]
    ) -> None:
        viewer, editor = installed["ClusterRole", "webapp-viewer"], installed["ClusterRole", "webapp-editor"]
        writing = {"create", "update", "patch", "delete", "deletecollection"}

        assert viewer["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
        assert editor["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-edit"] == "true"
        assert not [verb for _, _, verb in rules(viewer) if verb in writing]
        # A status is the operator's word.
        assert not [r for r in rules(editor) if r[1] == "webapps/status" and r[2] in writing]


class TestDeployment:
    @pytest.fixture
    def pod(self, installed: dict[tuple[str, str], Manifest]) -> Manifest:
        spec: Manifest = installed["Deployment", "webapp-operator"]["spec"]["template"]["spec"]
        return spec

    def test_it_satisfies_the_restricted_pod_security_standard(self, pod: Manifest) -> None:
        (container,) = pod["containers"]
        security = container["securityContext"]

        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert security["allowPrivilegeEscalation"] is False
        assert security["readOnlyRootFilesystem"] is True
        assert security["capabilities"] == {"drop": ["ALL"]}

    def test_its_image_is_this_version(self, pod: Manifest) -> None:
        assert pod["containers"][0]["image"] == f"webapp-operator:{__version__}"

    def test_it_gets_longer_than_the_operator_takes_to_stop(self, pod: Manifest) -> None:
        from kubeloop.manager.manager import SHUTDOWN_TIMEOUT

        assert pod["terminationGracePeriodSeconds"] > SHUTDOWN_TIMEOUT

    def test_two_replicas_elect_a_leader(
        self, installed: dict[tuple[str, str], Manifest], pod: Manifest
    ) -> None:
        spec = installed["Deployment", "webapp-operator"]["spec"]

        assert spec["replicas"] == 2
        assert "--leader-elect" in pod["containers"][0]["args"]
        assert ("Role", "webapp-operator-leader-election") in installed

    def test_probes_and_metrics_go_where_the_operator_listens(
        self, installed: dict[tuple[str, str], Manifest], pod: Manifest
    ) -> None:
        (container,) = pod["containers"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        service = installed["Service", "webapp-operator-metrics"]["spec"]

        assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "health"}
        assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "health"}
        for name, port in ports.items():
            assert f"--{name}-bind-address=:{port}" in container["args"]
        assert service["ports"][0]["targetPort"] in ports
        assert service["selector"].items() <= POD_LABELS.items()

    def test_its_arguments_are_understood(self, pod: Manifest) -> None:
        from webapp_operator.flags import parse

        parse(pod["containers"][0]["args"], {})


class TestMetrics:
    """As controller-runtime's scaffold has it: HTTPS and RBAC, without anything to be prepared."""

    def test_they_are_protected_and_whoever_asks_can_be_judged(
        self, installed: dict[tuple[str, str], Manifest]
    ) -> None:
        deployment = installed["Deployment", "webapp-operator"]["spec"]["template"]["spec"]

        assert "--metrics-secure" in deployment["containers"][0]["args"]
        assert ("ClusterRoleBinding", "webapp-operator-metrics-auth") in installed
        # What makes up a certificate is in the image: test_dependencies.py.
        assert "--metrics-cert-dir" not in str(deployment["containers"][0]["args"])

    def test_with_cert_manager_the_operator_reads_the_secret_that_is_kept_fresh(self) -> None:
        from webapp_operator.flags import parse

        objects = {each["kind"]: each for each in render("certmanager")}
        pod = objects["Deployment"]["spec"]["template"]["spec"]
        (container,), (volume,) = pod["containers"], pod["volumes"]
        (mount,) = container["volumeMounts"]

        assert volume["secret"]["secretName"] == objects["Certificate"]["spec"]["secretName"]
        assert mount["name"] == volume["name"]
        args = parse(container["args"], {})
        assert args.metrics_secure
        assert args.metrics_cert_dir == mount["mountPath"]
        assert objects["Certificate"]["spec"]["issuerRef"]["name"] == objects["Issuer"]["metadata"]["name"]
        assert "webapp-operator-metrics.webapp-system.svc" in objects["Certificate"]["spec"]["dnsNames"]

    def test_the_binding_of_prometheus_leads_to_the_role_for_it(
        self, installed: dict[tuple[str, str], Manifest]
    ) -> None:
        (binding,) = [each for each in render("prometheus") if each["kind"] == "ClusterRoleBinding"]

        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in installed


class TestMonitoring:
    def test_prometheus_scrapes_the_port_of_the_service(
        self, installed: dict[tuple[str, str], Manifest]
    ) -> None:
        (monitor,) = [each for each in render("prometheus") if each["kind"] == "ServiceMonitor"]
        service = installed["Service", "webapp-operator-metrics"]

        assert monitor["metadata"]["namespace"] == service["metadata"]["namespace"]
        (endpoint,) = monitor["spec"]["endpoints"]
        assert endpoint["port"] == service["spec"]["ports"][0]["name"]
        assert endpoint["scheme"] == "https"
        assert endpoint["bearerTokenFile"]
        labels = monitor["spec"]["selector"]["matchLabels"]
        assert labels.items() <= service["metadata"]["labels"].items()

    def test_dashboard_and_alerts_use_metrics_that_exist(self) -> None:
        from kubeloop.manager.telemetry import Telemetry

        exposed = Telemetry(lease="webapp-operator").set.names()
        dashboard = (CONFIG / "grafana" / "webapp-operator.json").read_text()
        rules_text = (CONFIG / "prometheus" / "rules.yaml").read_text()
        pattern = r"\b((?:kubeloop|workqueue|controller_runtime|leader_election|rest_client)_[a-z_]+)"
        used = set(re.findall(pattern, dashboard + rules_text))

        assert json.loads(dashboard)["panels"]
        assert len(used) > 10
        assert not {re.sub(r"_(total|bucket|sum|count)$", "", name) for name in used} - exposed
