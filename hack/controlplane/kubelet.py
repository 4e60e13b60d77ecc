"""A stand-in for all kubelets: calls every pod ready soon after it appears.

kube-controller-manager then counts it as available, with no scheduler and no node.  Deleting such a pod is
immediate, since no node has to confirm it.
"""

import json
import logging
import threading
import urllib.error
from datetime import UTC, datetime
from typing import Any

from .processes import HttpClient

POLL = 0.2
"""Seconds between two looks at all pods; a throw-away control plane has few."""
UNREADY_ANNOTATION = "kubeloop.dev/never-ready"
"""A pod with this annotation stays as it is: for tests of a Deployment that does not come up."""

log = logging.getLogger(__name__)


def ready_status(pod: dict[str, Any], now: datetime) -> dict[str, Any] | None:
    """The status that `pod` should get, or None when it is to be left alone."""
    metadata = pod["metadata"]
    if "deletionTimestamp" in metadata or UNREADY_ANNOTATION in metadata.get("annotations", {}):
        return None
    if pod.get("status", {}).get("phase") != "Pending":
        return None
    stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    return {
        "phase": "Running",
        "startTime": stamp,
        "conditions": [{"type": name, "status": "True", "lastTransitionTime": stamp} for name in conditions],
    }


class FakeKubelet:
    """Owns one thread; `stop` returns when it has ended."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fake-kubelet")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(POLL):
            try:
                self._look()
            except OSError as error:
                # The API server is starting, stopping or busy; the next look tries again.
                log.debug("fake kubelet: %s", error)

    def _look(self) -> None:
        # resourceVersion=0: from the server's cache, the cheapest list there is.
        pods = json.loads(self._client.request("GET", "/api/v1/pods?resourceVersion=0"))
        for pod in pods["items"]:
            status = ready_status(pod, datetime.now(UTC))
            if status is None:
                continue
            name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
            path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
            body = json.dumps({"status": status}).encode()
            try:
                self._client.request("PATCH", path, body, kind="application/merge-patch+json")
            except urllib.error.HTTPError as error:  # deleted meanwhile: nothing left to call ready
                error.close()
