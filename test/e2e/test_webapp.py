"""The WebApp operator as a process, against an API server over HTTP: the sandbox, and the real one.

Everything is done and seen from outside, with kubectl's eyes: the API, the operator's log, its exit code.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

FINALIZER = "webapp.example.com/cleanup"


def webapp(name: str = "hello", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "WebApp",
        "metadata": {"name": name},
        "spec": {"image": "nginx:1.27", "replicas": 3, **spec},
    }


def condition(obj: dict[str, Any] | None, kind: str) -> dict[str, Any]:
    conditions = ((obj or {}).get("status") or {}).get("conditions") or []
    found: dict[str, Any] = next((c for c in conditions if c["type"] == kind), {})
    return found


class Apps:
    """WebApps and Deployments in the test's namespace."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster

    def app(self, name: str = "hello") -> dict[str, Any] | None:
        return self.cluster.get("webapp", name, self.cluster.namespace)  # type: ignore[no-any-return]

    def deployment(self, name: str = "hello") -> dict[str, Any] | None:
        return self.cluster.get("deployment", name, self.cluster.namespace)  # type: ignore[no-any-return]

    def apply(self, *manifests: dict[str, Any]) -> None:
        self.cluster.apply(list(manifests))

    def kubectl(self, *args: str, **kwargs: Any) -> str:
        done = self.cluster.kubectl("-n", self.cluster.namespace, *args, **kwargs)
        return str(done.stdout)

    def writes(self, since: int) -> list[tuple[str, str, str, str]]:
        """The operator's writes in the test's namespace: verb, resource, name, subresource."""
        return [
            (verb, resource, name, subresource)
            for verb, resource, namespace, name, subresource, _ in self.cluster.writes(since=since)
            if namespace == self.cluster.namespace
        ]

    def settle(self, name: str = "hello") -> dict[str, Any]:
        """Wait until the status is about the current spec; gives the WebApp."""
        self.cluster.wait(lambda: self.is_settled(name), 30, f"webapp {name} is reconciled")
        app = self.app(name)
        assert app is not None
        return app

    def is_settled(self, name: str) -> bool:
        app = self.app(name)
        if app is None or self.deployment(name) is None:
            return False
        return (app.get("status") or {}).get("observedGeneration") == app["metadata"]["generation"]


@pytest.fixture
def apps(cluster: Any) -> Apps:
    return Apps(cluster)


@pytest.mark.usefixtures("operator")
class TestApply:
    def test_a_webapp_becomes_a_deployment_and_gets_a_status(self, apps: Apps) -> None:
        """R0.3, R0.4, R0.6, R0.8, R0.9, R0.16."""
        apps.apply(webapp())
        app = apps.settle()
        deployment = apps.deployment()

        assert deployment is not None
        assert deployment["spec"]["replicas"] == 3
        assert [c["image"] for c in deployment["spec"]["template"]["spec"]["containers"]] == ["nginx:1.27"]
        owner = deployment["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("WebApp", "hello", app["metadata"]["uid"])
        assert owner["controller"] is True
        assert owner["blockOwnerDeletion"] is True
        assert app["metadata"]["finalizers"] == [FINALIZER]
        assert set(app["status"]) >= {"availableReplicas", "ready", "observedGeneration", "conditions"}

    def test_the_deployment_is_applied_by_its_field_manager(self, apps: Apps) -> None:
        """R0.9."""
        apps.apply(webapp())
        apps.settle()
        text = apps.kubectl("get", "deployment", "hello", "-o", "json", "--show-managed-fields")
        managers = json.loads(text)["metadata"]["managedFields"]

        assert ("webapp-operator", "Apply") in {(m["manager"], m["operation"]) for m in managers}

    def test_a_new_webapp_costs_three_writes(self, apps: Apps) -> None:
        """D1: finalizer, apply, status, until its Deployment brings news."""
        mark = apps.cluster.mark()
        apps.apply(webapp())
        apps.settle()
        writes = apps.writes(mark)

        assert writes[:3] == [
            ("patch", "webapps", "hello", ""),
            ("patch", "deployments", "hello", ""),
            ("patch", "webapps", "hello", "status"),
        ]
        assert set(writes[3:]) <= {("patch", "webapps", "hello", "status")}

    def test_only_image_and_replicas_make_nothing_but_a_deployment(self, apps: Apps) -> None:
        """D6."""
        apps.apply(webapp())
        apps.settle()

        assert apps.cluster.get("service", "hello", apps.cluster.namespace) is None

    def test_a_port_makes_a_service_and_without_it_the_service_goes(self, apps: Apps) -> None:
        """D6."""
        namespace = apps.cluster.namespace
        apps.apply(webapp(port=8080, readinessPath="/healthz", env=[{"name": "A", "value": "é→😀"}]))
        apps.settle()
        apps.cluster.wait(lambda: apps.cluster.get("service", "hello", namespace), 20, "the Service")
        deployment = apps.deployment()
        assert deployment is not None
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        assert container["env"] == [{"name": "A", "value": "é→😀"}]

        apps.kubectl("patch", "webapp", "hello", "--type=json", "-p", json.dumps(
            [{"op": "remove", "path": "/spec/port"}, {"op": "remove", "path": "/spec/readinessPath"}]
        ))  # fmt: skip

        apps.cluster.wait(
            lambda: apps.cluster.get("service", "hello", namespace) is None, 20, "the Service gone"
        )

    def test_the_longest_name_works(self, apps: Apps) -> None:
        """R0.8: label values stay valid and unique for every legal name."""
        name = "a" * 249 + ".b-c"
        apps.apply(webapp(name), webapp(name[:-1] + "d"))
        apps.settle(name)
        apps.settle(name[:-1] + "d")
        selectors = [
            json.dumps((apps.deployment(each) or {})["spec"]["selector"]) for each in (name, name[:-1] + "d")
        ]

        assert selectors[0] != selectors[1]

    def test_a_changed_spec_is_rolled_on(self, apps: Apps) -> None:
        apps.apply(webapp())
        apps.settle()
        apps.apply(webapp(image="nginx:1.28", replicas=5))
        apps.settle()
        deployment = apps.deployment()

        assert deployment is not None
        assert deployment["spec"]["replicas"] == 5
        assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1.28"

    def test_kubectl_scale_works_on_the_webapp(self, apps: Apps) -> None:
        """D5."""
        apps.apply(webapp())
        apps.settle()
        apps.kubectl("scale", "webapp/hello", "--replicas=5")
        apps.cluster.wait(
            lambda: (apps.deployment() or {})["spec"]["replicas"] == 5, 20, "the Deployment to follow"
        )
        scale = json.loads(apps.kubectl("get", "--raw", _path(apps, "scale")))

        assert scale["spec"]["replicas"] == 5
        assert scale["status"]["selector"]

    def test_the_user_who_updates_the_spec_never_meets_a_conflict_with_a_status_write(
        self, apps: Apps
    ) -> None:
        """R0.4."""
        apps.apply(webapp())
        for replicas in range(1, 12):
            apps.kubectl(
                "patch", "webapp/hello", "--type=merge", "-p", json.dumps({"spec": {"replicas": replicas}})
            )
        app = apps.settle()

        assert app["spec"]["replicas"] == 11
        assert (apps.deployment() or {})["spec"]["replicas"] == 11


@pytest.mark.usefixtures("operator")
class TestHealing:
    @pytest.fixture(autouse=True)
    def settled(self, apps: Apps, operator: object) -> None:  # noqa: ARG002 - it must run before
        apps.apply(webapp())
        apps.settle()

    def test_a_scaled_deployment_is_healed(self, apps: Apps) -> None:
        """R0.22."""
        apps.kubectl("scale", "deployment/hello", "--replicas=0")
        apps.cluster.wait(lambda: (apps.deployment() or {})["spec"]["replicas"] == 3, 20, "3 replicas again")

    def test_a_deleted_deployment_comes_back(self, apps: Apps) -> None:
        """R0.22."""
        uid = (apps.deployment() or {})["metadata"]["uid"]
        apps.kubectl("delete", "deployment/hello", "--wait=false")
        apps.cluster.wait(
            lambda: (d := apps.deployment()) and d["metadata"]["uid"] != uid, 20, "a new Deployment"
        )

    def test_a_changed_image_is_healed(self, apps: Apps) -> None:
        apps.kubectl("set", "image", "deployment/hello", "*=evil:1")
        apps.cluster.wait(
            lambda: (
                (apps.deployment() or {})["spec"]["template"]["spec"]["containers"][0]["image"]
                == "nginx:1.27"
            ),
            20,
            "the image put right",
        )

    def test_a_removed_label_is_healed(self, apps: Apps) -> None:
        """Labels move no generation."""
        label = "app.kubernetes.io/managed-by"
        apps.kubectl("label", "deployment/hello", f"{label}-")
        apps.cluster.wait(
            lambda: label in (apps.deployment() or {})["metadata"].get("labels", {}), 20, "the label is back"
        )

    def test_what_others_add_to_the_deployment_stays(self, apps: Apps) -> None:
        """Server-side apply owns only what it says."""
        apps.kubectl("annotate", "deployment/hello", "team=blue")
        apps.kubectl("scale", "deployment/hello", "--replicas=1")
        apps.cluster.wait(lambda: (apps.deployment() or {})["spec"]["replicas"] == 3, 20, "3 replicas again")

        assert (apps.deployment() or {})["metadata"]["annotations"]["team"] == "blue"

    def test_a_foreign_annotation_costs_no_write(self, apps: Apps) -> None:
        """D1: the generation moves, but nothing of ours drifted."""
        mark = apps.cluster.mark()
        apps.kubectl("annotate", "deployment/hello", "team=blue")
        apps.apply(webapp("other"))
        apps.settle("other")

        assert ("patch", "deployments", "hello", "") not in apps.writes(mark)


@pytest.mark.usefixtures("operator")
class TestConflicts:
    def test_a_foreign_deployment_is_left_untouched_and_the_conflict_clears_by_itself(
        self, apps: Apps
    ) -> None:
        """D2."""
        foreign = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "hello"},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "app", "image": "foreign:1"}]},
                },
            },
        }
        apps.apply(foreign)
        before = apps.deployment()
        assert before is not None
        apps.apply(webapp())
        apps.cluster.wait(
            lambda: condition(apps.app(), "Ready").get("reason") == "Conflict", 20, "a Conflict condition"
        )
        after = apps.deployment()
        assert after is not None
        assert after["spec"] == before["spec"]
        assert "ownerReferences" not in after["metadata"]
        assert after["metadata"]["generation"] == before["metadata"]["generation"]

        apps.kubectl("delete", "deployment/hello", "--wait=false")

        app = apps.settle()
        apps.cluster.wait(
            lambda: condition(apps.app(), "Ready").get("reason") != "Conflict", 20, "the conflict cleared"
        )
        owner = (apps.deployment() or {})["metadata"]["ownerReferences"][0]
        assert owner["uid"] == app["metadata"]["uid"]

    def test_a_bad_spec_is_explained_and_never_in_the_way_of_others(self, apps: Apps) -> None:
        """D4, R0.15: the schema cannot catch a readinessPath without port."""
        apps.apply(webapp("bad", readinessPath="/healthz"), webapp("good"))
        apps.settle("good")
        apps.cluster.wait(
            lambda: condition(apps.app("bad"), "Ready").get("reason") == "InvalidSpec", 20, "an explanation"
        )
        bad = apps.app("bad")
        assert "readinessPath" in condition(bad, "Degraded")["message"]
        assert apps.deployment("bad") is None
        assert (bad or {})["status"]["phase"] == "Failed"

        apps.apply(webapp("bad", readinessPath="/healthz", port=8080))

        apps.settle("bad")
        apps.cluster.wait(
            lambda: condition(apps.app("bad"), "Degraded").get("status") == "False", 20, "the cure to show"
        )


@pytest.mark.usefixtures("operator")
class TestDeletion:
    def test_cleanup_runs_and_everything_goes(self, apps: Apps) -> None:
        """R0.16, R0.18."""
        apps.apply(webapp())
        apps.settle()
        apps.kubectl("delete", "webapp/hello", "--timeout=20s")

        assert apps.app() is None
        if apps.cluster.has_controllers:
            apps.cluster.wait(lambda: apps.deployment() is None, 30, "the Deployment collected")

    def test_another_finalizer_is_respected_and_nothing_is_made_anew(self, apps: Apps) -> None:
        """kubernetes-sigs/cluster-api#8949: a finalizer proposed for an object that goes; R0.17."""
        manifest = webapp()
        manifest["metadata"]["finalizers"] = ["other.example.com/wait"]
        apps.apply(manifest)
        apps.settle()
        mark = apps.cluster.mark()
        apps.kubectl("delete", "webapp/hello", "--wait=false")
        apps.cluster.wait(
            lambda: (apps.app() or {})["metadata"]["finalizers"] == ["other.example.com/wait"], 20, "ours off"
        )
        apps.kubectl("delete", "deployment/hello", "--wait=false")
        apps.apply(webapp("witness"))
        apps.settle("witness")

        assert apps.deployment() is None
        writes = [write for write in apps.writes(mark) if write[2:] == ("hello", "")]
        assert writes == [("patch", "webapps", "hello", "")]
        apps.kubectl(
            "patch", "webapp/hello", "--type=json", "-p", '[{"op":"remove","path":"/metadata/finalizers"}]'
        )

    def test_a_namespace_goes_with_all_its_webapps(self, apps: Apps) -> None:
        """strimzi/strimzi-kafka-operator#11901: a namespace hangs because nobody takes the finalizers off."""
        if not apps.cluster.has_controllers:
            return
        apps.apply(webapp("one"), webapp("two"))
        apps.settle("one")
        apps.settle("two")
        namespace = apps.cluster.namespace
        apps.cluster.kubectl("delete", "namespace", namespace, "--wait=false")
        apps.cluster.wait(
            lambda: apps.cluster.get("namespace", namespace, None) is None, 60, "the namespace gone"
        )


def _path(apps: Apps, subresource: str) -> str:
    return f"/apis/example.com/v1/namespaces/{apps.cluster.namespace}/webapps/hello/{subresource}"
