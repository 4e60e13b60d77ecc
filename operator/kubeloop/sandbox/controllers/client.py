"""How the sandbox's controllers write: through the same pipeline as everybody, marked as internal."""

from __future__ import annotations

import json
from typing import Any

from kubeloop.sandbox.pipeline.request import Request, Response
from kubeloop.sandbox.pipeline.server import ApiServer
from kubeloop.sandbox.registry import Object, ResourceInfo

MERGE = "application/merge-patch+json"
AGENT = "kube-controller-manager/sandbox"


class RefusedError(Exception):
    """The API server refused a controller's request."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code = code
        self.reason = reason


def object_path(info: ResourceInfo, namespace: str, name: str = "", subresource: str = "") -> str:
    """The path of an object or (without a name) a collection."""
    base = f"/apis/{info.group}/{info.version}" if info.group else f"/api/{info.version}"
    where = f"/namespaces/{namespace}" if info.namespaced and namespace else ""
    tail = "".join(f"/{part}" for part in (name, subresource) if part)
    return f"{base}{where}/{info.plural}{tail}"


class SystemClient:
    """Requests of one controller."""

    def __init__(self, api: ApiServer, agent: str = AGENT) -> None:
        self._api = api
        self._agent = agent

    def send(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> Object:
        """One request. Raises `RefusedError`."""
        headers = {"content-type": content_type, "user-agent": self._agent}
        data = json.dumps(body, ensure_ascii=False).encode() if body is not None else b""
        answer = self._api.handle(Request(method, path, headers, data, internal=True))
        assert isinstance(answer, Response)
        value: Object = json.loads(answer.body) if answer.body[:1] == b"{" else {}
        if answer.status >= 400:
            raise RefusedError(answer.status, value.get("reason", ""), value.get("message", ""))
        return value

    def create(self, info: ResourceInfo, namespace: str, obj: Object) -> Object:
        """POST."""
        return self.send("POST", object_path(info, namespace), obj)

    def update(self, info: ResourceInfo, obj: Object, subresource: str = "") -> Object:
        """PUT of an object with its resourceVersion."""
        metadata = obj["metadata"]
        path = object_path(info, metadata.get("namespace", ""), metadata["name"], subresource)
        return self.send("PUT", path, obj)

    def merge(
        self, info: ResourceInfo, namespace: str, name: str, patch: Object, subresource: str = ""
    ) -> Object:
        """Merge patch."""
        return self.send("PATCH", object_path(info, namespace, name, subresource), patch, MERGE)

    def delete(
        self,
        info: ResourceInfo,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "",
        grace_seconds: int | None = None,
    ) -> None:
        """DELETE with preconditions; what is already gone (or another object) is no failure."""
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        body: Object = {"preconditions": {key: value for key, value in preconditions.items() if value}}
        if propagation:
            body["propagationPolicy"] = propagation
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        try:
            self.send("DELETE", object_path(info, namespace, name), body)
        except RefusedError as refused:
            if refused.code != 404:
                raise
