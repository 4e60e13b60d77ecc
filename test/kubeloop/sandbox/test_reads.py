"""get and list: revisions, pages, selectors, encodings."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest
import yaml

from kubeloop.sandbox import Sandbox

TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


def names(reply: Any) -> list[str]:
    return [item["metadata"]["name"] for item in reply.json["items"]]


def test_pages_show_one_state_whatever_happens_in_between(api: Any) -> None:
    for name in "abcde":
        api.create(name)
    first = api.get(f"{api.WEBAPPS}?limit=2").json
    assert first["metadata"]["remainingItemCount"] == 3
    api.create("aa")
    api.delete(f"{api.WEBAPPS}/d")
    second = api.get(f"{api.WEBAPPS}?limit=2&continue={first['metadata']['continue']}")
    assert names(second) == ["c", "d"]
    assert second.json["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    third = api.get(f"{api.WEBAPPS}?limit=2&continue={second.json['metadata']['continue']}")
    assert names(third) == ["e"]
    assert not third.json["metadata"].get("continue")


def test_an_expired_page_tells_how_to_go_on(api: Any, sandbox: Sandbox) -> None:
    for name in "abc":
        api.create(name)
    token = api.get(f"{api.WEBAPPS}?limit=1").json["metadata"]["continue"]
    api.create("d")
    sandbox.compact()
    reply = api.get(f"{api.WEBAPPS}?limit=1&continue={token}")
    assert (reply.status, reply.reason) == (410, "Expired")
    rest = api.get(f"{api.WEBAPPS}?continue={reply.json['metadata']['continue']}")
    assert names(rest) == ["b", "c", "d"]


def test_a_continue_token_has_the_real_servers_form(api: Any) -> None:
    for name in "ab":
        api.create(name)
    meta = api.get(f"{api.WEBAPPS}?limit=1").json["metadata"]
    token = json.loads(base64.b64decode(meta["continue"] + "=="))
    assert token == {"v": "meta.k8s.io/v1", "rv": int(meta["resourceVersion"]), "start": "/a\0"}


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("limit=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        (
            "continue=bogus",
            400,
            "invalid continue token: continue key is not valid: illegal base64 data at input byte 4",
        ),
        (
            "resourceVersionMatch=Exact",
            422,
            'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is '
            "forbidden unless resourceVersion is provided",
        ),
        ("labelSelector=n%20in%20", 400, "unable to parse requirement: found '' expected: '('"),
        ("labelSelector=%3D%3D", 400, "found '==', expected: !, identifier, or 'end of string'"),
        ("fieldSelector=bad", 400, "invalid selector: 'bad'; can't understand 'bad'"),
        ("fieldSelector=spec.foo%3D1", 400, "field label not supported: spec.foo"),
    ],
)
def test_a_wrong_question_is_answered_as_the_real_server_does(
    api: Any, query: str, status: int, message: str
) -> None:
    reply = api.get(f"{api.WEBAPPS}?{query}")
    assert (reply.status, reply.message) == (status, message)


@pytest.mark.parametrize("target", ["", "/a"])
def test_a_revision_from_the_future_times_out(api: Any, target: str) -> None:
    api.create("a")
    reply = api.get(f"{api.WEBAPPS}{target}?resourceVersion=999999")
    assert (reply.status, reply.reason) == (504, "Timeout")
    assert reply.json["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert reply.headers["retry-after"] == "1"


def test_an_exact_revision_shows_the_past(api: Any) -> None:
    then = api.create("a")["metadata"]["resourceVersion"]
    api.create("b")
    assert names(api.get(f"{api.WEBAPPS}?resourceVersion={then}&resourceVersionMatch=Exact")) == ["a"]
    assert names(api.get(f"{api.WEBAPPS}?resourceVersion={then}")) == ["a", "b"]
    assert names(api.get(f"{api.WEBAPPS}?resourceVersion=0")) == ["a", "b"]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("n in (1,2)", ["a", "b"]),
        ("n notin (1,2)", ["c", "d"]),
        ("n", ["a", "b", "c"]),
        ("!n", ["d"]),
        ("n!=1", ["b", "c", "d"]),
        ("n=1,n", ["a"]),
        ("n>1", ["b", "c"]),
        ("n<2", ["a"]),
    ],
)
def test_label_selectors(api: Any, selector: str, expected: list[str]) -> None:
    for index, name in enumerate("abc", 1):
        api.create(name, labels={"n": str(index)})
    api.create("d")
    encoded = selector.replace(" ", "%20").replace("=", "%3D").replace(">", "%3E").replace("<", "%3C")
    assert names(api.get(f"{api.WEBAPPS}?labelSelector={encoded}")) == expected


def test_field_selectors_know_names_and_selectable_fields(api: Any) -> None:
    api.create("a", "nginx")
    api.create("b", "httpd")
    assert names(api.get(f"{api.WEBAPPS}?fieldSelector=spec.image%3Dhttpd")) == ["b"]
    assert names(api.get(f"{api.WEBAPPS}?fieldSelector=metadata.name!%3Da")) == ["b"]
    assert names(api.get(f"{api.WEBAPPS}?fieldSelector=metadata.namespace%3Dother")) == []


def test_answers_come_in_the_form_that_was_asked_for(api: Any) -> None:
    api.create("a")
    table = api.get(api.WEBAPPS, accept=TABLE).json
    assert table["kind"] == "Table"
    assert [row["cells"][:2] for row in table["rows"]] == [["a", "nginx"]]
    partial = api.get(f"{api.WEBAPPS}/a", accept=PARTIAL).json
    assert (partial["kind"], "spec" in partial) == ("PartialObjectMetadata", False)
    text = api.get(f"{api.WEBAPPS}/a", accept="application/yaml").body
    assert yaml.safe_load(text)["spec"] == {"image": "nginx", "replicas": 1}
    both = api.get(f"{api.WEBAPPS}/a", accept="application/vnd.kubernetes.protobuf,application/json")
    assert both.json["kind"] == "WebApp"


def test_what_cannot_be_written_is_not_acceptable(api: Any) -> None:
    reply = api.get(api.WEBAPPS, accept="text/plain")
    assert (reply.status, reply.reason) == (406, "NotAcceptable")
    assert reply.message.startswith("only the following media types are accepted: application/json")


def test_large_answers_are_compressed_when_the_client_can_read_it(api: Any) -> None:
    for index in range(4):
        api.create(f"a{index}", annotations={"text": "x" * 60_000})
    plain = api.get(api.WEBAPPS)
    packed = api.get(api.WEBAPPS, **{"accept-encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body


def test_unknown_paths_are_a_plain_404(api: Any) -> None:
    for path in ("/foo", "/apis/example.com/v1/foos", "/apis/example.com/v9/webapps"):
        reply = api.get(path)
        assert (reply.status, reply.body) == (404, b"404 page not found\n")


def test_what_is_not_simulated_is_refused_by_name(api: Any) -> None:
    reply = api.get("/apis/batch/v1/namespaces/default/jobs")
    assert (reply.status, reply.reason) == (501, "NotImplemented")
    assert reply.message == "the sandbox does not simulate jobs.batch"
    assert api.get("/api/v1/namespaces/default/pods/x/log").status == 501


def test_a_list_of_a_missing_namespace_is_empty(api: Any) -> None:
    reply = api.get("/apis/example.com/v1/namespaces/nope/webapps")
    assert (reply.status, reply.json["items"]) == (200, [])
