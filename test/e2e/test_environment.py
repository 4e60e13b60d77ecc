"""spec.env and spec.envFrom: what the operator refuses, the server would refuse, and what it lets through
never meets the 500 that server-side apply has for fields that it does not know (D4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kubeloop.client import ApiError, Apply, Client, connect, load_config
from kubeloop.model import Resource
from webapp_operator.resources import build_deployment
from webapp_operator.types import WebApp
from webapp_operator.validation import validate_spec

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
KEY = {"name": "s", "key": "k"}
LONG = "a" * 254
ODD: list[Any] = [None, "", 0, 1, 1.5, True, "x", "A_b", "..", "a/b", LONG, [], {}]
"""What may stand where a text, a truth or a quantity should."""

FIELDS = {
    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"},
    "resourceFieldRef": {"containerName": "app", "resource": "limits.memory", "divisor": "1Mi"},
    "configMapKeyRef": {**KEY, "optional": True},
    "secretKeyRef": {**KEY, "optional": False},
    "fileKeyRef": {"volumeName": "v", "path": "p", "key": "k", "optional": True},
}


def sources() -> Iterator[Any]:
    """Values of valueFrom, good and bad."""
    yield from (None, {}, {"secretRef": KEY})
    for name, fields in FIELDS.items():
        yield from ({name: odd} for odd in (None, {}, "x", [fields], fields))
        yield {name: {**fields, "unknown": 1}}
        yield {name: fields, "unknown": {}}
        yield {name: fields, "secretKeyRef" if name != "secretKeyRef" else "fieldRef": None}
        yield {name: fields, "secretKeyRef" if name != "secretKeyRef" else "fieldRef": KEY}
        for field in fields:
            yield {name: {key: value for key, value in fields.items() if key != field}}
            yield from ({name: {**fields, field: odd}} for odd in ODD)
    for amount in ("1m", "1", "2", "-1", "1k", "1Ki", "1e3", "1000m", "abc", "1Zi", ".5", "1.", "+1", " 1"):
        yield {"resourceFieldRef": {"resource": "limits.cpu", "divisor": amount}}
    for path in ("metadata.labels", "metadata.labels['a']", "status.podIPs", "spec.hostNetwork", "x", "é"):
        yield {"fieldRef": {"fieldPath": path}}


def specs() -> Iterator[dict[str, Any]]:
    """Parts of a spec, good and bad."""
    for source in sources():
        yield {"env": [{"name": "A", "valueFrom": source}]}
    for name in ("A", "a.b-c", "1", "A B", "é", "=", "A=B", "\t", LONG):
        yield {"env": [{"name": name, "value": "x"}]}
        yield {"envFrom": [{"prefix": name, "secretRef": {"name": "s"}}]}
        yield {"envFrom": [{"secretRef": {"name": name}}]}
        yield {"envFrom": [{"configMapRef": {"name": name.lower(), "optional": True}}]}
    for value in (None, "", "x"):
        yield {"env": [{"name": "A", "value": value, "valueFrom": {"secretKeyRef": KEY}}]}
    yield {"envFrom": [{}]}
    yield {"envFrom": [{"secretRef": {"name": "s"}, "configMapRef": {"name": "s"}}]}


class Judge:
    """Asks the server about the Deployment of a WebApp, without making it."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    def code(self, app: WebApp) -> tuple[int, str]:
        """The status code of the answer, and its message."""
        try:
            self._client.patch(
                DEPLOYMENTS,
                app.name,
                self._namespace,
                Apply(build_deployment(app)),
                field_manager="test",
                dry_run=True,
            )
        except ApiError as error:
            return error.code, error.message
        return 200, ""

    def app(self, spec: dict[str, Any]) -> WebApp:
        return WebApp.model_validate(
            {
                "apiVersion": "example.com/v1",
                "kind": "WebApp",
                "metadata": {"name": "hello", "namespace": self._namespace, "uid": "0"},
                "spec": {"image": "nginx:1.27", **spec},
            }
        )


@pytest.fixture
def judge(cluster: Any) -> Iterator[Judge]:
    client = connect(load_config(str(cluster.kubeconfig)), pool_size=2)
    yield Judge(client, cluster.namespace)
    client.close()


def test_it_refuses_nothing_that_the_server_takes_and_lets_nothing_through_that_ends_in_a_500(
    cluster: Any, judge: Judge
) -> None:
    exact = not hasattr(cluster, "sandbox")  # which looks into a pod's environment less closely
    wrong = []
    codes: dict[int, int] = {}
    for spec in specs():
        app = judge.app(spec)
        problems = validate_spec(app)
        code, message = judge.code(app)
        codes[code] = codes.get(code, 0) + 1
        if (code == 200 and problems and exact) or (code not in (200, 422) and not problems):
            wrong.append((spec, code, problems, message))

    assert wrong == []
    assert codes.keys() == {200, 422, 500}
    assert min(codes.values()) > 20


def test_an_unknown_field_is_named_and_not_tried_again(
    cluster: Any, start_operator: Callable[..., Any]
) -> None:
    app: dict[str, Any] = {
        "apiVersion": "example.com/v1",
        "kind": "WebApp",
        "metadata": {"name": "hello"},
        "spec": {"image": "nginx:1.27", "env": [{"name": "A", "valueFrom": {"secretKeyRef": dict(KEY)}}]},
    }
    reference = app["spec"]["env"][0]["valueFrom"]["secretKeyRef"]
    reference["optinal"] = True
    cluster.apply(app)
    operator = start_operator()

    def ready() -> dict[str, Any]:
        found = cluster.get("webapp", "hello", cluster.namespace)
        conditions = (found.get("status") or {}).get("conditions") or []
        return next((each for each in conditions if each["type"] == "Ready"), {})

    cluster.wait(lambda: ready().get("reason") == "InvalidSpec", 20, "the verdict")
    problem = (
        "spec.env[0].valueFrom.secretKeyRef.optinal: there is no such field; known are name, key, optional"
    )
    assert ready()["message"] == problem
    assert operator.lines("reconcile failed") == []
    assert cluster.get("deployment", "hello", cluster.namespace) is None

    reference["optional"] = reference.pop("optinal")
    cluster.apply(app)
    cluster.wait(lambda: cluster.get("deployment", "hello", cluster.namespace), 20, "the Deployment")
    assert [write for write in cluster.writes() if write[5] == 500] == []
