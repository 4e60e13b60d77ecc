"""What kubectl get prints."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubeloop.sandbox.builtins import INFOS
from kubeloop.sandbox.crd import infos
from kubeloop.sandbox.registry import ResourceInfo
from kubeloop.sandbox.status import ApiFailure
from kubeloop.sandbox.tables import to_table
from kubeloop.sandbox.tables.duration import human
from kubeloop.sandbox.tables.jsonpath import find

NOW = datetime(2026, 1, 1, 1, 0, tzinfo=UTC)
AGO = "2026-01-01T00:30:00Z"
INFO = {info.plural: info for info in INFOS}


def cells(info: ResourceInfo, obj: dict[str, Any]) -> dict[str, Any]:
    obj = {**obj, "metadata": {"name": "a", "creationTimestamp": AGO, **obj.get("metadata", {})}}
    table = to_table(info, [obj], list_meta=None, include_object="None", now=NOW)
    headers = [column["name"] for column in table["columnDefinitions"]]
    return dict(zip(headers, table["rows"][0]["cells"], strict=True))


def test_a_deployment() -> None:
    spec = {
        "replicas": 3,
        "selector": {"matchLabels": {"b": "2", "a": "1"}},
        "template": {"spec": {"containers": [{"name": "x", "image": "i"}, {"name": "y", "image": "j"}]}},
    }
    status = {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1}
    assert cells(INFO["deployments"], {"spec": spec, "status": status}) == {
        "Name": "a",
        "Ready": "2/3",
        "Up-to-date": 3,
        "Available": 1,
        "Age": "30m",
        "Containers": "x,y",
        "Images": "i,j",
        "Selector": "a=1,b=2",
    }


def test_an_event() -> None:
    obj = {
        "involvedObject": {"kind": "Pod", "name": "p"},
        "reason": "R",
        "type": "Normal",
        "message": " hello ",
        "source": {"component": "me"},
        "firstTimestamp": AGO,
        "lastTimestamp": "2026-01-01T00:59:50Z",
        "count": 4,
    }
    row = cells(INFO["events"], obj)
    assert (row["Last Seen"], row["First Seen"], row["Count"]) == ("10s", "30m", 4)
    assert (row["Object"], row["Source"], row["Message"]) == ("pod/p", "me", "hello")


@pytest.mark.parametrize(
    ("status", "metadata", "expected"),
    [
        ({"phase": "Pending"}, {}, ("0/1", "Pending", "0")),
        (
            {
                "phase": "Running",
                "containerStatuses": [{"ready": True, "restartCount": 2, "state": {"running": {}}}],
            },
            {},
            ("1/1", "Running", "2"),
        ),
        (
            {
                "phase": "Pending",
                "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}],
            },
            {},
            ("0/1", "ImagePullBackOff", "0"),
        ),
        ({"phase": "Running"}, {"deletionTimestamp": AGO}, ("0/1", "Terminating", "0")),
        (
            {"phase": "Pending", "initContainerStatuses": [{"state": {"running": {}}}]},
            {},
            ("0/1", "Init:0/0", "0"),
        ),
    ],
)
def test_a_pods_status_in_one_word(status: Any, metadata: Any, expected: tuple[str, str, str]) -> None:
    row = cells(INFO["pods"], {"spec": {"containers": [{}]}, "status": status, "metadata": metadata})
    assert (row["Ready"], row["Status"], row["Restarts"]) == expected


def test_a_service_and_a_namespace() -> None:
    spec = {
        "type": "NodePort",
        "clusterIPs": ["10.0.0.1"],
        "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}],
    }
    row = cells(INFO["services"], {"spec": spec})
    assert (row["Cluster-IP"], row["External-IP"], row["Port(s)"], row["Selector"]) == (
        "10.0.0.1",
        "<none>",
        "80:30080/TCP",
        "<none>",
    )
    assert cells(INFO["namespaces"], {"status": {"phase": "Active"}})["Status"] == "Active"


def custom(*columns: dict[str, Any]) -> ResourceInfo:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
        "additionalPrinterColumns": list(columns),
    }
    names = {"plural": "things", "kind": "Thing"}
    crd = {"spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}}
    return infos(crd)[0]


def test_a_crd_without_columns_prints_the_age() -> None:
    assert cells(custom(), {}) == {"Name": "a", "Age": "30m"}


def test_crd_columns_are_typed() -> None:
    kinds = ("string", "integer", "number", "boolean", "date")
    info = custom(*({"name": kind, "type": kind, "jsonPath": f".spec.{kind}"} for kind in kinds))
    spec = {"string": 5, "integer": 2.0, "number": 3, "boolean": True, "date": AGO}
    assert cells(info, {"spec": spec}) == {
        "Name": "a",
        "string": "5",
        "integer": 2,
        "number": 3.0,
        "boolean": True,
        "date": "30m",
    }
    wrong = {"integer": "x", "boolean": "x", "date": "x"}
    row = cells(info, {"spec": wrong})
    assert [row[kind] for kind in kinds] == [None, None, None, None, "<invalid>"]


def test_a_column_can_pick_a_condition() -> None:
    path = '.status.conditions[?(@.type=="Ready")].status'
    info = custom({"name": "Ready", "type": "string", "jsonPath": path, "priority": 1})
    conditions = [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]
    assert cells(info, {"status": {"conditions": conditions}})["Ready"] == "True"
    assert cells(info, {})["Ready"] is None


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a.b", [1]),
        (".l[0]", ["x"]),
        (".l[-1]", ["y"]),
        (".l[*]", ["x", "y"]),
        ("['a']['b']", [1]),
        (".labels.app\\.kubernetes\\.io/name", ["n"]),
        (".missing.b", []),
        (".a[", []),
    ],
)
def test_json_paths(path: str, found: list[Any]) -> None:
    obj = {"a": {"b": 1}, "l": ["x", "y"], "labels": {"app.kubernetes.io/name": "n"}}
    assert find(obj, path) == found


def test_what_comes_along_with_each_row() -> None:
    obj = {"metadata": {"name": "a"}, "spec": {}}
    info = INFO["namespaces"]

    def row(include: str) -> Any:
        return to_table(info, [obj], list_meta={}, include_object=include, now=NOW)["rows"][0]["object"]

    assert row("None") is None
    assert row("Object") is obj
    assert row("") == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": "a"},
    }
    with pytest.raises(ApiFailure, match="must be 'Metadata', 'Object', 'None', or empty"):
        row("Foo")


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (timedelta(seconds=-5), "<invalid>"),
        (timedelta(seconds=0), "0s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(minutes=2), "2m"),
        (timedelta(minutes=5, seconds=30), "5m30s"),
        (timedelta(minutes=179), "179m"),
        (timedelta(hours=3, minutes=5), "3h5m"),
        (timedelta(hours=47), "47h"),
        (timedelta(days=2, hours=4), "2d4h"),
        (timedelta(days=400), "400d"),
        (timedelta(days=365 * 3 + 5), "3y5d"),
        (timedelta(days=365 * 9), "9y"),
    ],
)
def test_ages_get_coarser(age: timedelta, text: str) -> None:
    assert human(age.total_seconds()) == text
