"""The verbs: what is sent, what comes back, what is tried again."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from kubeloop.client import (
    AlreadyExists,
    Apply,
    Conflict,
    ConnectFailed,
    CredentialsError,
    Expired,
    InternalError,
    Invalid,
    JsonPatch,
    MergePatch,
    NotFound,
    ServiceUnavailable,
    TooManyRequests,
    TransportError,
    Unauthorized,
)
from kubeloop.client.errors import ConfigError
from kubeloop.clock import StopEvent

THING = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "ns"}}
PATH = "/apis/example.com/v1/namespaces/ns/things"


def test_get(scripted: Any, tools: Any) -> None:
    client, transport = scripted(tools.answer(THING), user_agent="me/1")
    assert client.get(tools.things, "a", "ns") == THING
    method, target, headers, body = transport.sent[0]
    assert (method, target, body) == ("GET", f"{PATH}/a", None)
    assert headers == {"User-Agent": "me/1", "Accept": "application/json"}


def test_a_page_asks_for_what_it_was_told_to(scripted: Any, tools: Any) -> None:
    document = {"kind": "ThingList", "metadata": {"resourceVersion": "7", "continue": "t"}, "items": [{}]}
    client, transport = scripted(tools.answer(document), tools.answer(document))
    page = client.list_page(tools.things, "ns", label_selector="a=b,c in (d)", resource_version="3")
    assert (
        transport.sent[0][1] == f"{PATH}?limit=500&resourceVersion=3&labelSelector=a%3Db%2Cc%20in%20%28d%29"
    )
    assert transport.sent[0][2]["Accept-Encoding"] == "gzip"
    assert page.items == [{"apiVersion": "example.com/v1", "kind": "Thing"}]
    assert (page.resource_version, page.continue_) == ("7", "t")
    client.list_page(tools.things, continue_="t", resource_version="3")
    assert transport.sent[1][1] == "/apis/example.com/v1/things?limit=500&continue=t"


def lists(tools: Any, names: str, version: str, token: str = "") -> Any:
    items = [{"metadata": {"name": name}} for name in names]
    return tools.answer(
        {"kind": "ThingList", "metadata": {"resourceVersion": version, "continue": token}, "items": items}
    )


def test_a_list_is_read_to_its_end(scripted: Any, tools: Any) -> None:
    client, _ = scripted(lists(tools, "ab", "7", "t1"), lists(tools, "c", "7"))
    found = client.list(tools.things)
    assert "".join(item["metadata"]["name"] for item in found.items) == "abc"
    assert found.resource_version == "7"


def test_a_list_that_expires_on_the_way_is_begun_anew(scripted: Any, tools: Any) -> None:
    gone = tools.refusal(410, "Expired")
    client, transport = scripted(lists(tools, "ab", "7", "t1"), gone, lists(tools, "abc", "9"))
    assert len(client.list(tools.things).items) == 3
    assert transport.sent[2][1] == "/apis/example.com/v1/things"
    client, _ = scripted(lists(tools, "ab", "7", "t1"), gone, gone)
    with pytest.raises(Expired):
        client.list(tools.things)


@pytest.mark.parametrize(
    "body",
    [b"<html>", b"[]", b'{"kind":"Status"}', b'{"kind":"ThingList","metadata":{}}', b'{"items":[]}', b""],
)
def test_what_is_not_a_list_does_not_pass_for_an_empty_one(scripted: Any, tools: Any, body: bytes) -> None:
    """jupyterhub/kubespawner: a 504's body treated as a list"""
    client, _ = scripted(tools.answer(body))
    with pytest.raises(TransportError, match=r"list things\.example\.com"):
        client.list_page(tools.things)


def test_a_list_of_null_is_empty(scripted: Any, tools: Any) -> None:
    document = {"kind": "ThingList", "metadata": {"resourceVersion": "7"}, "items": None}
    assert scripted(tools.answer(document))[0].list(tools.things).items == []


def test_apply_says_who_and_how(scripted: Any, tools: Any) -> None:
    """R0.9"""
    client, transport = scripted(tools.answer(THING, 201), tools.answer(THING))
    answer = client.patch(tools.things, "a", "ns", Apply(THING), field_manager="me", force=True)
    assert answer.created
    assert answer.object == THING
    method, target, headers, body = transport.sent[0]
    assert (method, target) == ("PATCH", f"{PATH}/a?fieldManager=me&force=true")
    assert headers["Content-Type"] == "application/apply-patch+yaml"
    assert json.loads(body) == THING
    assert not client.patch(tools.things, "a", "ns", Apply(THING), field_manager="me").created
    with pytest.raises(ValueError, match="field manager"):
        client.patch(tools.things, "a", "ns", Apply(THING))


def test_a_status_patch_and_a_dry_run(scripted: Any, tools: Any) -> None:
    client, transport = scripted(tools.answer(THING))
    client.patch(tools.things, "a", "ns", MergePatch({"status": {}}), subresource="status", dry_run=True)
    assert transport.sent[0][1] == f"{PATH}/a/status?dryRun=All"


def test_delete_names_its_object_and_its_ways(scripted: Any, tools: Any) -> None:
    client, transport = scripted(tools.answer({"kind": "Status"}))
    client.delete(tools.things, "a", "ns", uid="u", propagation="Foreground")
    assert json.loads(transport.sent[0][3]) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": "u"},
        "propagationPolicy": "Foreground",
    }


def test_a_busy_server_is_asked_again_when_it_says(scripted: Any, tools: Any, clock: Any) -> None:
    busy = tools.refusal(429, "TooManyRequests", retry_after="2")
    client, _ = scripted(busy, busy, tools.answer(THING))
    assert client.create(tools.things, THING) == THING
    assert all(2 <= wait <= 2.5 for wait in clock.waits)


def test_an_absurd_retry_after_neither_overflows_nor_blocks(scripted: Any, tools: Any, clock: Any) -> None:
    """kube-rs/kube#1772"""
    busy = tools.refusal(429, "TooManyRequests", retry_after="1000000000000")
    client, _ = scripted(*[busy] * 4)
    with pytest.raises(TooManyRequests) as caught:
        client.get(tools.things, "a", "ns")
    assert caught.value.retry_after == 3600
    assert clock.waits == []


def test_setting_the_stop_event_ends_the_waiting(scripted: Any, tools: Any) -> None:
    stop = StopEvent()
    stop.set()
    client, transport = scripted(*[tools.refusal(503, "ServiceUnavailable")] * 4, stop=stop)
    with pytest.raises(ServiceUnavailable):
        client.get(tools.things, "a", "ns")
    assert len(transport.sent) == 1


def test_a_lost_answer_is_asked_for_again_where_that_is_safe(scripted: Any, tools: Any) -> None:
    client, _ = scripted(ConnectionResetError("reset"), BrokenPipeError("gone"), tools.answer(THING))
    assert client.get(tools.things, "a", "ns") == THING
    client, _ = scripted(ConnectionResetError("reset"), tools.answer(THING))
    assert client.patch(tools.things, "a", "ns", MergePatch({})).object == THING


def test_a_json_patch_whose_answer_was_lost_is_not_sent_twice(scripted: Any, tools: Any) -> None:
    client, transport = scripted(ConnectionResetError("reset"), tools.answer(THING))
    with pytest.raises(TransportError, match=r"patch things\.example\.com ns/a: reset") as caught:
        client.patch(tools.things, "a", "ns", JsonPatch([]))
    assert caught.value.sent
    assert len(transport.sent) == 1
    client, _ = scripted(ConnectFailed("refused"), tools.answer(THING))
    assert client.patch(tools.things, "a", "ns", JsonPatch([])).object == THING


LIVE = {
    **THING,
    "metadata": {
        "name": "a",
        "namespace": "ns",
        "uid": "u",
        "resourceVersion": "5",
        "generation": 1,
        "managedFields": [
            {"manager": "me", "operation": "Update"},
            {"manager": "kcm", "operation": "Update", "subresource": "status"},
        ],
    },
    "spec": {"size": 1, "defaulted": True},
}


def test_a_create_whose_answer_was_lost_succeeds_if_the_object_is_ours(scripted: Any, tools: Any) -> None:
    taken = tools.refusal(409, "AlreadyExists")
    client, transport = scripted(ConnectionResetError("reset"), taken, tools.answer(LIVE))
    assert client.create(tools.things, {**THING, "spec": {"size": 1}}, field_manager="me") == LIVE
    assert [sent[0] for sent in transport.sent] == ["POST", "POST", "GET"]


@pytest.mark.parametrize(
    ("change", "manager"),
    [
        ({}, None),
        ({}, "somebody else"),
        ({"spec": {"size": 2}}, "me"),
        ({"metadata": {**LIVE["metadata"], "generation": 2}}, "me"),  # type: ignore[dict-item]
        ({"metadata": {**LIVE["metadata"], "deletionTimestamp": "x"}}, "me"),  # type: ignore[dict-item]
        ({"metadata": {**LIVE["metadata"], "managedFields": []}}, "me"),  # type: ignore[dict-item]
    ],
)
def test_a_create_whose_answer_was_lost_fails_if_that_is_not_certain(
    scripted: Any, tools: Any, change: Any, manager: str | None
) -> None:
    taken = tools.refusal(409, "AlreadyExists")
    client, _ = scripted(ConnectionResetError("reset"), taken, tools.answer({**LIVE, **change}))
    with pytest.raises(AlreadyExists):
        client.create(tools.things, {**THING, "spec": {"size": 1}}, field_manager=manager)


def test_a_name_that_was_taken_before_is_taken(scripted: Any, tools: Any) -> None:
    client, transport = scripted(tools.refusal(409, "AlreadyExists"))
    with pytest.raises(AlreadyExists):
        client.create(tools.things, THING, field_manager="me")
    assert len(transport.sent) == 1


def test_a_generated_name_is_not_created_twice(scripted: Any, tools: Any) -> None:
    """argoproj/argo-rollouts#243"""
    client, transport = scripted(ConnectionResetError("reset"), tools.answer(THING))
    with pytest.raises(TransportError):
        client.create(tools.things, {"metadata": {"generateName": "a-", "namespace": "ns"}})
    assert len(transport.sent) == 1


def test_a_delete_whose_answer_was_lost_counts_when_the_object_is_gone(scripted: Any, tools: Any) -> None:
    client, _ = scripted(ConnectionResetError(), tools.refusal(404, "NotFound"))
    assert client.delete(tools.things, "a", "ns")["status"] == "Success"
    with pytest.raises(NotFound):
        scripted(tools.refusal(404, "NotFound"))[0].delete(tools.things, "a", "ns")


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [(409, "Conflict", Conflict), (422, "Invalid", Invalid), (500, "InternalError", InternalError)],
)
def test_refusals_are_not_repeated(scripted: Any, tools: Any, code: int, reason: str, kind: Any) -> None:
    client, transport = scripted(tools.refusal(code, reason))
    with pytest.raises(kind, match=r"update things\.example\.com ns/a"):
        client.replace(tools.things, THING)
    assert len(transport.sent) == 1


class Tokens:
    """Credentials whose next token is taken at each renewal."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)
        self.broken = False

    def headers(self) -> dict[str, str]:
        if self.broken:
            raise ConfigError("the plugin failed")
        return {"Authorization": f"Bearer {self.tokens[0]}"}

    def renew(self, refused: Any) -> bool:
        if len(self.tokens) > 1 and refused == self.headers():
            self.tokens.pop(0)
        return bool(refused != self.headers())

    def client_certificate(self) -> None:
        return None


def test_a_refused_token_is_read_anew_once(scripted: Any, tools: Any) -> None:
    """bug report 6, kubernetes-client/python#1768"""
    no = tools.refusal(401, "Unauthorized")
    client, transport = scripted(no, tools.answer(THING), credentials=Tokens("old", "new"))
    assert client.get(tools.things, "a", "ns") == THING
    assert [sent[2]["Authorization"] for sent in transport.sent] == ["Bearer old", "Bearer new"]
    client, transport = scripted(no, no, tools.answer(THING), credentials=Tokens("old", "new", "newer"))
    with pytest.raises(Unauthorized):
        client.get(tools.things, "a", "ns")
    client, transport = scripted(no, credentials=Tokens("only"))
    with pytest.raises(Unauthorized):
        client.get(tools.things, "a", "ns")


def test_without_a_credential_nothing_is_sent(scripted: Any, tools: Any) -> None:
    """python-peers 2.4: the kubernetes client goes on anonymously"""
    tokens = Tokens("t")
    tokens.broken = True
    client, transport = scripted(tools.answer(THING), credentials=tokens)
    with pytest.raises(CredentialsError, match="the plugin failed"):
        client.get(tools.things, "a", "ns")
    with pytest.raises(CredentialsError):
        client.watch(tools.things).open()
    assert transport.sent == []


def test_the_fence_is_asked_before_each_try_of_each_write(scripted: Any, tools: Any) -> None:
    class Fenced(Exception):
        pass

    allowed = [True, False]

    def fence() -> None:
        if not allowed.pop(0):
            raise Fenced

    client, transport = scripted(tools.refusal(503, "ServiceUnavailable"), tools.answer(THING), fence=fence)
    with pytest.raises(Fenced):
        client.patch(tools.things, "a", "ns", MergePatch({}))
    assert len(transport.sent) == 1
    assert client.get(tools.things, "a", "ns") == THING


def test_each_try_is_counted(scripted: Any, tools: Any) -> None:
    seen: list[tuple[str, int]] = []
    client, _ = scripted(
        tools.refusal(503, "ServiceUnavailable"),
        ConnectionResetError(),
        tools.answer(THING),
        observer=lambda info: seen.append((info.method, info.code)),
    )
    client.get(tools.things, "a", "ns")
    assert seen == [("GET", 503), ("GET", 0), ("GET", 200)]


def test_warnings_are_logged_once(scripted: Any, tools: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "kubeloop.client")
    text = '299 - "unknown field \\"spec.x\\"", 299 - "deprecated"'
    client, _ = scripted(*[tools.answer(THING, warning=text)] * 3)
    for _ in range(3):
        client.get(tools.things, "a", "ns")
    told: Any = [record.__dict__["fields"]["warning"] for record in caplog.records]
    assert told == ['unknown field "spec.x"', "deprecated"]


def test_a_body_that_cannot_be_sent_is_a_local_error(scripted: Any, tools: Any) -> None:
    client, transport = scripted()
    with pytest.raises(ValueError, match=r"\.metadata\.name .*lone surrogate"):
        client.patch(tools.things, "a", "ns", Apply({"metadata": {"name": "\udc80"}}), field_manager="me")
    assert transport.sent == []


def test_a_watch_asks_for_bookmarks_and_reads_lines(scripted: Any, tools: Any) -> None:
    stream = tools.Stream(200, [b'{"a":1}\n{"b"', b":2}\n", b'{"cut'])
    client, transport = scripted(stream)
    watch = client.watch(tools.things, "ns", resource_version="5", timeout_seconds=300)
    assert transport.sent == []
    assert list(watch) == [b'{"a":1}', b'{"b":2}']
    assert stream.closed
    query = "watch=true&allowWatchBookmarks=true&resourceVersion=5&timeoutSeconds=300"
    assert transport.sent[0][1] == f"{PATH}?{query}"


def test_a_refused_watch_says_why(scripted: Any, tools: Any) -> None:
    body = tools.refusal(410, "Expired").body
    client, _ = scripted(tools.Stream(410, [body[:20], body[20:]]))
    with pytest.raises(Expired, match=r"watch things\.example\.com"):
        client.watch(tools.things).open()


def test_a_watch_with_a_refused_token_is_opened_anew(scripted: Any, tools: Any) -> None:
    client, transport = scripted(
        tools.Stream(401, [b""]), tools.Stream(200, [b"x\n"]), credentials=Tokens("old", "new")
    )
    assert list(client.watch(tools.things)) == [b"x"]
    assert transport.sent[1][2]["Authorization"] == "Bearer new"


def test_a_watch_closed_before_it_began_ends_quietly_or_says_so(scripted: Any, tools: Any) -> None:
    client, _ = scripted(tools.Stream(200, [b"x\n"]))
    watch = client.watch(tools.things)
    watch.close()
    with pytest.raises(TransportError, match="closed before it began"):
        watch.open()


def test_metadata_is_asked_for_in_the_form_of_each_verb(scripted: Any, tools: Any) -> None:
    partial = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "a"}}
    document = {"kind": "PartialObjectMetadataList", "metadata": {"resourceVersion": "7"}, "items": [partial]}
    client, transport = scripted(
        tools.answer(partial), tools.answer(document), tools.Stream(200, [b"{}\n"]), tools.answer(THING)
    )
    assert client.get(tools.things, "a", "ns", metadata_only=True) == partial
    assert client.list(tools.things, metadata_only=True).items == [partial]
    assert list(client.watch(tools.things, initial_events=True, metadata_only=True)) == [b"{}"]
    client.get(tools.things, "a", "ns")
    assert [headers["Accept"] for _, _, headers, _ in transport.sent] == [
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
        "application/json",
    ]
