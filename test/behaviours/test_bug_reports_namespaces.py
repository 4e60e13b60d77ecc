"""Report 17, and the other about what is being taken away: namespaces and the CRD."""

from __future__ import annotations

from typing import Any

from webapp_operator.types import WebApp

OURS = "webapp.example.com/cleanup"
OTHER = "other.example.com/wait"
CRDS = "customresourcedefinitions.apiextensions.k8s.io"


def test_a_terminating_namespace_empties_and_is_left_alone(stage: Any) -> None:
    """strimzi/strimzi-kafka-operator#11901: a namespace hangs because nobody takes the finalizers off.

    The last WebApp is kept by somebody else, while its children are deleted under it.
    """
    stage.sandbox.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    operator = stage.operate()
    for name in ("one", "two", "kept"):
        stage.make(name, "shop")
    stage.until(lambda: all(stage.phase(n, "shop") == "Ready" for n in ("one", "two", "kept")))
    patch = {"metadata": {"finalizers": [OURS, OTHER]}}
    stage.sandbox.patch("webapps.example.com", "kept", patch, "shop")
    stage.pass_time(1)
    mark = stage.sandbox.log.mark()
    stage.sandbox.delete("namespaces", "shop")
    stage.pass_time(300, step=1)

    assert [app["metadata"]["name"] for app in stage.sandbox.list("webapps.example.com", "shop")] == ["kept"]
    assert stage.app("kept", "shop")["metadata"]["finalizers"] == [OTHER]
    assert stage.sandbox.list("deployments.apps", "shop") == []
    written = operator.writes(mark)
    refused = [e for e in written if e.status == 403]
    assert {(e.resource, e.subresource) for e in written if e not in refused} <= {
        ("webapps", ""),
        ("webapps", "status"),
    }
    assert len(written) <= 12
    assert len(refused) <= 3, "one look for each child that the namespace controller was faster with"
    assert all((e.time - written[0].time).total_seconds() < 5 for e in written)
    stage.sandbox.patch("webapps.example.com", "kept", {"metadata": {"finalizers": None}}, "shop")
    stage.until(lambda: stage.sandbox.get("namespaces", "shop") is None)


def test_creating_in_a_terminating_namespace_is_given_up(stage: Any) -> None:
    """kubernetes/kubernetes#84123: controllers loop in a namespace that is being deleted.

    A child disappears in there although its WebApp stays; the 403 says why it cannot come back.
    """
    stage.sandbox.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    operator = stage.operate()
    busy = {
        "kind": "Status",
        "code": 403,
        "reason": "Forbidden",
        "message": 'deployments.apps "hello" is forbidden: unable to create new content in namespace shop '
        "because it is being terminated",
        "details": {"causes": [{"reason": "NamespaceTerminating", "message": "x", "field": "metadata"}]},
    }
    stage.sandbox.faults.add(
        verb="patch", resource="deployments", namespace="shop", status=403, body=busy, count=None
    )
    stage.make(namespace="shop")
    stage.pass_time(280, step=1)

    attempts = operator.wire.of("patch", "deployments")
    assert len(attempts) <= 2
    assert operator.controller.queue.failures("shop/hello") == 0
    assert stage.phase(namespace="shop") == "Pending"
    assert "Namespace shop is being deleted" in str(stage.app(namespace="shop")["status"])


def test_the_informer_survives_its_crds_removal_and_works_when_it_is_back(stage: Any) -> None:
    """strimzi/strimzi-kafka-operator#11901: the same for the removal of the CRD while objects exist."""
    operator = stage.operate()
    for name in ("one", "two"):
        stage.make(name)
    stage.ready("one", "two")
    definition = WebApp.crd()
    stage.sandbox.delete(CRDS, definition["metadata"]["name"])
    stage.until(
        lambda: stage.sandbox.get(CRDS, definition["metadata"]["name"]) is None,
        what="finalizers to be taken off, and the CRD to go",
    )
    stage.pass_time(120, step=1)
    assert operator.unwell() == ""
    assert "webapps.example.com" in operator.unready()
    assert "404" in operator.unready()
    asked = [s for s in operator.wire.sent if s.plural == "webapps" and s.at > stage.time - 60]
    assert 5 <= len(asked) <= 40
    assert stage.sandbox.list("deployments.apps", "default") == []

    stage.sandbox.apply(definition)
    stage.make("three")
    stage.until(lambda: stage.phase("three") == "Ready", within=15)
    assert operator.unready() == ""
