"""Restarts: with the data, without, and with an older backup of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kubeloop.sandbox import Sandbox

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


@pytest.fixture
def threaded(webapp_crd: dict[str, Any]) -> Iterator[Sandbox]:
    with Sandbox(http=True) as running:
        running.apply(webapp_crd)
        yield running


def test_a_restart_keeps_the_data_and_ends_watches(sandbox: Sandbox, api: Any) -> None:
    api.create("a")
    before = api.get(api.WEBAPPS).json["metadata"]["resourceVersion"]
    stream = api.watch(f"{api.WEBAPPS}?watch=1&resourceVersion={before}&timeoutSeconds=60")
    api.create("b")
    sandbox.restart()
    assert [kind for kind, _ in api.events(stream)] in ([], ["ADDED"])
    assert stream.poll() is None
    assert [o["metadata"]["name"] for o in sandbox.list("webapps.example.com")] == ["a", "b"]
    ((kind, status),) = api.events(api.watch(f"{api.WEBAPPS}?watch=1&resourceVersion={before}"))
    assert (kind, status["code"]) == ("ERROR", 410)


def test_a_restart_with_a_backup_goes_back_in_time(sandbox: Sandbox, api: Any) -> None:
    api.create("a")
    backup = sandbox.backup()
    newer = int(api.create("b")["metadata"]["resourceVersion"])
    sandbox.restart(backup)
    listed = api.get(api.WEBAPPS).json
    assert [o["metadata"]["name"] for o in listed["items"]] == ["a"]
    assert int(listed["metadata"]["resourceVersion"]) < newer
    ahead = api.get(f"{api.WEBAPPS}?resourceVersion={newer + 1}")
    assert (ahead.status, ahead.json["details"]["causes"][0]["reason"]) == (504, "ResourceVersionTooLarge")
    # The same revision may come to mean something else: what clients must be able to live with.
    assert int(api.create("c")["metadata"]["resourceVersion"]) <= newer


def test_a_restart_without_data_begins_anew(sandbox: Sandbox, api: Any, webapp_crd: dict[str, Any]) -> None:
    api.create("a")
    sandbox.restart("lose")
    assert api.get(api.WEBAPPS).status == 404
    assert sandbox.get("namespaces", "default")
    sandbox.apply(webapp_crd)
    assert api.get(api.WEBAPPS).json["items"] == []
    sandbox.settle()
    assert sandbox.get("serviceaccounts", "default", "default")


def test_while_it_is_down_connections_are_refused(sandbox: Sandbox, api: Any) -> None:
    sandbox.halt()
    with pytest.raises(ConnectionRefusedError):
        api.get(CONFIG_MAPS)
    sandbox.resume()
    assert api.get(CONFIG_MAPS).status == 200


def test_over_http_it_comes_back_in_the_same_place(threaded: Sandbox) -> None:
    url = threaded.url
    threaded.create(config_map("a"))
    threaded.restart()
    assert threaded.url == url
    assert threaded.transport().request("GET", f"{CONFIG_MAPS}/a").status == 200
    assert threaded.transport().request("GET", "/apis/example.com/v1/webapps").status == 200


def test_controllers_go_on_after_a_restart(threaded: Sandbox) -> None:
    threaded.restart()
    threaded.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "later"}})
    watcher = threaded.backend.store.watch(("", "serviceaccounts"), 1 + threaded.backend.store.compacted)
    with watcher.wake:
        watcher.wake.wait_for(lambda: threaded.get("serviceaccounts", "default", "later"), 5)
    watcher.close()
    assert threaded.get("serviceaccounts", "default", "later")
