"""The direct helpers of a `Sandbox`: an administrator's hand on its objects, from Python."""

from __future__ import annotations

import json
import time
from urllib.parse import quote

import yaml

from kubeloop.sandbox.inprocess import InProcessTransport
from kubeloop.sandbox.pipeline.backend import CRDS, Backend
from kubeloop.sandbox.registry import Object, ResourceInfo

USER_AGENT = "sandbox-test/1"
SERVED_TIMEOUT = 10.0
"""Seconds that a CRD gets to be served after it was applied with the direct helpers."""


class SandboxError(Exception):
    """A direct helper's request was refused; `status` is the server's Status object."""

    def __init__(self, status: Object) -> None:
        super().__init__(f"{status.get('code')} {status.get('reason')}: {status.get('message')}")
        self.status = status
        self.code = int(status.get("code", 0))
        self.reason = str(status.get("reason", ""))


class Helpers:
    """What `Sandbox` inherits; `settle` and the attributes are its."""

    backend: Backend
    _client: InProcessTransport
    _step: bool
    _has_controllers: bool

    def settle(self) -> None:
        """Let the controllers work until nothing more is due."""
        raise NotImplementedError

    def apply_yaml(self, text: str, *, manager: str = "sandbox-test") -> list[Object]:
        """Server-side apply (forced) of every document in `text`; the objects as they are then."""
        return [self.apply(document, manager=manager) for document in yaml.safe_load_all(text) if document]

    def apply(self, obj: Object, *, manager: str = "sandbox-test") -> Object:
        """Server-side apply (forced) of one object; a CRD is served when this returns.

        Raises `SandboxError`.
        """
        path = self._object_path(obj, name=True)
        result = self._send(
            "PATCH",
            f"{path}?fieldManager={quote(manager)}&force=true",
            obj,
            content_type="application/apply-patch+yaml",
        )
        if obj["kind"] == "CustomResourceDefinition" and self._has_controllers:
            self._await_served(result)
        return result

    def _await_served(self, definition: Object) -> None:
        """Wait until every served version of a CRD is there. Raises TimeoutError (names taken, say)."""
        if self._step:
            self.settle()
            return
        name, spec = definition["metadata"]["name"], definition["spec"]
        group, plural = spec["group"], spec["names"]["plural"]
        wanted = [version["name"] for version in spec["versions"] if version.get("served")]
        watcher = self.backend.store.list_and_watch(CRDS, name=name)[2]
        deadline = time.monotonic() + SERVED_TIMEOUT
        try:
            with watcher.wake:
                while not all(self.backend.registry.find(group, v, plural) for v in wanted):
                    left = deadline - time.monotonic()
                    if left <= 0:
                        raise TimeoutError(f"{name} was not served within {SERVED_TIMEOUT:g} s")
                    # Served shortly after the event that tells so: hence the short wait.
                    watcher.wake.wait(min(left, 0.02))
        finally:
            watcher.close()

    def create(self, obj: Object) -> Object:
        """Create one object. Raises `SandboxError`."""
        return self._send("POST", self._object_path(obj, name=False), obj)

    def get(self, resource: str, name: str, namespace: str | None = None) -> Object | None:
        """One object (``sandbox.get("deployments.apps", "hello", "default")``), None when it is not there."""
        try:
            return self._send("GET", f"{self._path(resource, namespace)}/{quote(name)}")
        except SandboxError as error:
            if error.code == 404:
                return None
            raise

    def list(self, resource: str, namespace: str | None = None) -> list[Object]:
        """All objects of a resource (of one namespace)."""
        found = self._send("GET", self._path(resource, namespace))
        head = {"apiVersion": found["apiVersion"], "kind": found["kind"].removesuffix("List")}
        return [{**head, **item} for item in found["items"]]

    def patch(
        self, resource: str, name: str, patch: Object, namespace: str | None = None, *, subresource: str = ""
    ) -> Object:
        """Merge patch. Raises `SandboxError`."""
        path = f"{self._path(resource, namespace)}/{quote(name)}" + (f"/{subresource}" if subresource else "")
        return self._send("PATCH", path, patch, content_type="application/merge-patch+json")

    def delete(
        self, resource: str, name: str, namespace: str | None = None, *, propagation: str = ""
    ) -> Object:
        """Delete one object. Raises `SandboxError`."""
        query = f"?propagationPolicy={propagation}" if propagation else ""
        return self._send("DELETE", f"{self._path(resource, namespace)}/{quote(name)}{query}")

    def _send(
        self, method: str, target: str, body: Object | None = None, content_type: str = "application/json"
    ) -> Object:
        headers = {"content-type": content_type, "user-agent": USER_AGENT}
        data = json.dumps(body, ensure_ascii=False).encode() if body is not None else None
        response = self._client.request(method, target, headers=headers, body=data)
        answer: Object = json.loads(response.body) if response.body[:1] == b"{" else {}
        if response.status >= 400:
            raise SandboxError(answer or {"code": response.status, "message": response.body.decode()})
        return answer

    def _path(self, resource: str, namespace: str | None) -> str:
        plural, _, group = resource.partition(".")
        info = self.backend.registry.any_version(group, plural)
        if info is None:
            raise SandboxError({"code": 404, "reason": "NotFound", "message": f"no resource {resource}"})
        return _collection(info, namespace)

    def _object_path(self, obj: Object, *, name: bool) -> str:
        group, _, version = obj["apiVersion"].rpartition("/")
        info = self.backend.registry.by_kind(group, version, obj["kind"])
        if info is None:
            message = f"no kind {obj['kind']} in {obj['apiVersion']}"
            raise SandboxError({"code": 404, "reason": "NotFound", "message": message})
        namespace = obj["metadata"].get("namespace") or "default" if info.namespaced else None
        path = _collection(info, namespace)
        return f"{path}/{quote(obj['metadata']['name'])}" if name else path


def _collection(info: ResourceInfo, namespace: str | None) -> str:
    base = f"/apis/{info.group}/{info.version}" if info.group else f"/api/{info.version}"
    where = f"/namespaces/{quote(namespace)}" if namespace and info.namespaced else ""
    return f"{base}{where}/{info.plural}"
