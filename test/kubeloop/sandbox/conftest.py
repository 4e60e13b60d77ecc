"""A sandbox without threads, on a clock that stands still, and a way to talk to it as a client would."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from kubeloop.clock import FakeClock
from kubeloop.sandbox import Sandbox
from kubeloop.sandbox.inprocess import InProcessStream, InProcessTransport

WEBAPP_CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "webapps.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "WebApp", "plural": "webapps", "singular": "webapp", "shortNames": ["wa"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "selectableFields": [{"jsonPath": ".spec.image"}],
                "additionalPrinterColumns": [
                    {"name": "Image", "type": "string", "jsonPath": ".spec.image"},
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["image"],
                                "properties": {
                                    "image": {"type": "string", "minLength": 1},
                                    "replicas": {
                                        "type": "integer",
                                        "format": "int32",
                                        "minimum": 0,
                                        "default": 1,
                                    },
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {
                                    "replicas": {"type": "integer"},
                                    "ready": {"type": "boolean"},
                                    "selector": {"type": "string"},
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}


@dataclass
class Reply:
    """An answer, decoded."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str:
        return str(self.json["message"])

    @property
    def reason(self) -> str:
        return str(self.json.get("reason", ""))


class Api:
    """Requests as `curl` would send them."""

    WEBAPPS = "/apis/example.com/v1/namespaces/default/webapps"

    def __init__(self, transport: InProcessTransport) -> None:
        self.transport = transport

    def __call__(
        self, method: str, target: str, body: Any = None, kind: str = "application/json", **headers: str
    ) -> Reply:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        sent = {"content-type": kind, "user-agent": "curl/8", **headers}
        answer = self.transport.request(method, target, headers=sent, body=data)
        return Reply(answer.status, dict(answer.headers), answer.body)

    def get(self, target: str, **headers: str) -> Reply:
        return self("GET", target, **headers)

    def post(self, target: str, body: Any) -> Reply:
        return self("POST", target, body)

    def put(self, target: str, body: Any) -> Reply:
        return self("PUT", target, body)

    def delete(self, target: str, body: Any = None) -> Reply:
        return self("DELETE", target, body)

    def merge(self, target: str, body: Any) -> Reply:
        return self("PATCH", target, body, "application/merge-patch+json")

    def apply(self, target: str, body: Any) -> Reply:
        return self("PATCH", target, body, "application/apply-patch+yaml")

    def watch(self, target: str) -> InProcessStream:
        return self.transport.stream("GET", target, headers={"user-agent": "curl/8"})

    def events(self, stream: InProcessStream) -> list[tuple[str, Any]]:
        """The events that are there now."""
        lines = b"".join(stream.poll() or []).splitlines()
        return [(event["type"], event["object"]) for event in map(json.loads, lines)]

    def webapp(self, name: str, image: str = "nginx", **metadata: Any) -> dict[str, Any]:
        """A WebApp to send."""
        return {
            "apiVersion": "example.com/v1",
            "kind": "WebApp",
            "metadata": {"name": name, **metadata},
            "spec": {"image": image},
        }

    def create(self, name: str, image: str = "nginx", **metadata: Any) -> Any:
        """Create a WebApp and return it."""
        reply = self.post(self.WEBAPPS, self.webapp(name, image, **metadata))
        assert reply.status == 201, reply.body
        return reply.json


@pytest.fixture(scope="session")
def webapp_crd() -> dict[str, Any]:
    return WEBAPP_CRD


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def sandbox(clock: FakeClock) -> Iterator[Sandbox]:
    """Step by step, seeded; knows WebApps."""
    with Sandbox(clock=clock, step=True, seed=1) as running:
        running.apply(WEBAPP_CRD)
        running.settle()
        yield running


@pytest.fixture
def api(sandbox: Sandbox) -> Api:
    return Api(sandbox.transport())
