"""Which requests a fault happens to, how often, and that it can be repeated."""

from __future__ import annotations

from typing import Any

import pytest

from kubeloop.sandbox import Sandbox, User

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def statuses(api: Any, count: int, target: str = CONFIG_MAPS) -> list[int]:
    return [api.get(target).status for _ in range(count)]


def test_a_fault_happens_as_often_as_it_was_asked_for(sandbox: Sandbox, api: Any) -> None:
    fault = sandbox.faults.add(verb="list", status=503, after=1, count=2)
    assert statuses(api, 5) == [200, 503, 503, 200, 200]
    assert (fault.fired, fault.left) == (2, 0)
    assert str(fault) == "fault 1 (verb=list: status=503) fired 2 times"


def test_a_removed_fault_happens_no_more(sandbox: Sandbox, api: Any) -> None:
    with sandbox.faults.add(status=500) as fault:
        assert statuses(api, 1) == [500]
    fault.remove()
    assert statuses(api, 1) == [200]
    sandbox.faults.add(status=500)
    sandbox.faults.clear()
    assert statuses(api, 1) == [200]


@pytest.mark.parametrize(
    ("wanted", "hits"),
    [
        ({"verb": "get"}, ["get", "status"]),
        ({"verb": ("list", "create")}, ["list", "create", "other"]),
        ({"resource": "webapps"}, ["get", "list", "create"]),
        ({"resource": "webapps.example.com"}, ["get", "list", "create"]),
        ({"resource": "webapps/status"}, ["status"]),
        ({"resource": "webapps/*"}, ["get", "list", "create", "status"]),
        ({"kind": "WebApp"}, ["get", "list", "create", "status"]),
        ({"name": "a"}, ["get", "create", "status"]),
        ({"namespace": "default", "verb": "list"}, ["list", "other"]),
        ({"user_agent": "curl"}, ["get", "list", "create", "status", "other"]),
        ({"user_agent": "kubectl"}, []),
        ({"user": "kubernetes-admin", "resource": "configmaps"}, ["other"]),
        ({"path": "/api/"}, ["other"]),
    ],
)
def test_rules_say_which_requests(
    sandbox: Sandbox, api: Any, wanted: dict[str, Any], hits: list[str]
) -> None:
    sandbox.faults.add(**wanted, status=418)
    answers = {
        "get": api.get(f"{api.WEBAPPS}/a"),
        "list": api.get(api.WEBAPPS),
        "create": api.post(api.WEBAPPS, api.webapp("a")),
        "status": api.get(f"{api.WEBAPPS}/a/status"),
        "other": api.get(CONFIG_MAPS),
    }
    assert [name for name, answer in answers.items() if answer.status == 418] == hits


def test_the_same_seed_gives_the_same_faults() -> None:
    def run(seed: int) -> list[int]:
        with Sandbox(step=True, seed=seed) as sandbox:
            sandbox.faults.add(verb="list", probability=0.5, status=500)
            return [sandbox.transport().request("GET", CONFIG_MAPS).status for _ in range(40)]

    assert run(1) == run(1)
    assert run(1) != run(2)
    assert {200, 500} == set(run(3))


def test_effects_of_several_rules_add_up(sandbox: Sandbox, api: Any) -> None:
    sandbox.faults.add(status=500, message="first")
    sandbox.faults.add(status=429, retry_after=7)
    answer = api.get(CONFIG_MAPS)
    assert (answer.status, answer.headers["retry-after"], answer.reason) == (429, "7", "TooManyRequests")
    assert answer.message == "first"


def test_the_sandboxs_controllers_and_helpers_are_spared(sandbox: Sandbox) -> None:
    sandbox.faults.add(reset=True)
    sandbox.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    sandbox.settle()
    assert sandbox.get("serviceaccounts", "default", "other")


def test_the_log_tells_what_a_fault_did(sandbox: Sandbox, api: Any) -> None:
    sandbox.faults.add(status=503, count=1)
    sandbox.faults.add(reset=True, after=1)
    mark = sandbox.log.mark()
    api.get(CONFIG_MAPS)
    with pytest.raises(ConnectionResetError):
        api.get(CONFIG_MAPS)
    found = [(e.verb, e.status, e.fault) for e in sandbox.log.entries(since=mark)]
    assert found == [("list", 503, "status=503"), ("list", 0, "reset")]


def test_users_are_told_apart() -> None:
    tokens = {"a": User("ann"), "b": User("bob")}
    with Sandbox(step=True, tokens=tokens) as sandbox:
        sandbox.faults.add(user="bob", status=401)
        assert sandbox.transport("a").request("GET", CONFIG_MAPS).status == 200
        assert sandbox.transport("b").request("GET", CONFIG_MAPS).status == 401
        sandbox.access.revoke("a")
        assert sandbox.transport("a").request("GET", CONFIG_MAPS).status == 401


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"latency": -1},
        {"status": 99},
        {"pieces": 0},
        {"status": 500, "probability": 2},
        {"end_after": -1},
    ],
)
def test_nonsense_is_refused(sandbox: Sandbox, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        sandbox.faults.add(**wrong)
    with pytest.raises(TypeError):
        sandbox.faults.add(explode=True)
