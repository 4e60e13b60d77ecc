"""A greeter on kopf: for each Greeting a ConfigMap that says its text, an Event, and a farewell.

Its writes go through the official client's typed API; kopf itself watches, patches and keeps the finalizer.
"""

from __future__ import annotations

from typing import Any

import kopf
from kubernetes import client, config

GREETINGS = ("compat.example.com", "v1", "greetings")


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    config.load_kube_config()
    settings.persistence.finalizer = "compat.example.com/farewell"
    settings.posting.level = 20
    settings.watching.server_timeout = 20


def write(namespace: str, name: str, text: str, owner: Any = None) -> None:
    body = {"metadata": {"name": name, "namespace": namespace}, "data": {"text": text}}
    if owner is not None:
        kopf.append_owner_reference(body, owner)
    api = client.CoreV1Api()
    try:
        api.create_namespaced_config_map(namespace, body)
    except client.ApiException as error:
        if error.status != 409:
            raise
        api.patch_namespaced_config_map(name, namespace, body)


@kopf.on.resume(*GREETINGS)
@kopf.on.create(*GREETINGS)
@kopf.on.update(*GREETINGS, field="spec")
@kopf.timer(*GREETINGS, interval=1.0)
def greet(body: kopf.Body, patch: kopf.Patch, **_: Any) -> None:
    text = body.spec["text"]
    write(body.metadata["namespace"], body.metadata["name"], text, body)
    if body.status.get("observedGeneration") != body.metadata["generation"]:
        patch.status["observedGeneration"] = body.metadata["generation"]
        patch.status["said"] = text
        kopf.info(body, reason="Greeted", message=f"said {text}")


@kopf.on.delete(*GREETINGS)
def bid_farewell(namespace: str, name: str, spec: kopf.Spec, **_: Any) -> None:
    write(namespace, f"farewell-{name}", spec["text"])
