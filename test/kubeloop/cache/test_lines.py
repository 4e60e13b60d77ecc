"""The lines of a watch."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubeloop.cache.codec import Candidate, Codec, Undecodable
from kubeloop.cache.failure import Failure, Kind, classify
from kubeloop.cache.lines import NotAnEvent, read_bookmark, read_error, split_event
from kubeloop.client import CredentialsError, Expired, TransportError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=9), JSON, max_size=4), st.booleans(), st.booleans())
@settings(max_examples=50, deadline=None)
def test_an_event_is_split_however_it_is_written(content: dict[str, Any], ascii_: bool, usual: bool) -> None:
    event = {"type": "ADDED", "object": content}
    separators = (",", ":") if usual else (" , ", " : ")
    line = json.dumps(event, separators=separators, ensure_ascii=ascii_).encode("utf-8", "replace")
    kind, raw = split_event(line)
    assert kind == "ADDED"
    assert json.loads(raw) == json.loads(line)["object"]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"x",
        b"[]",
        b'{"type":"ADDED"}',
        b'{"type":"ADDED","object":3}',
        b'{"type":"PING","object":{}}',
        b"\xff",
    ],
)
def test_anything_else_is_no_event(line: bytes) -> None:
    """python-peers W4: None is given to the caller"""
    with pytest.raises(NotAnEvent):
        split_event(line)


def test_bookmarks_tell_a_version_and_whether_the_list_is_whole() -> None:
    end = {"metadata": {"resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"}}}
    assert read_bookmark(json.dumps(end).encode()) == ("7", True)
    assert read_bookmark(b'{"metadata":{"resourceVersion":"7","annotations":null}}') == ("7", False)
    for broken in (b"{}", b'{"metadata":[]}', b'{"metadata":{"resourceVersion":"x"}}'):
        with pytest.raises(NotAnEvent):
            read_bookmark(broken)


def test_an_error_event_may_lack_anything() -> None:
    """python-peers W3: KeyError"""
    assert isinstance(read_error(b'{"code":410,"reason":"Expired"}', "things"), Expired)
    error = read_error(b"{}", "things")
    assert str(error) == "watch things: 500 InternalError: no message"
    assert classify(error, in_stream=True).kind is Kind.BROKEN


def test_failures_are_told_apart() -> None:
    silent = TransportError("watch", "things", "timed out")
    silent.__cause__ = TimeoutError()
    assert classify(silent, in_stream=True).kind is Kind.SILENT
    assert classify(silent).kind is Kind.UNREACHABLE
    assert classify(CredentialsError("watch", "things", "no token")) == Failure(
        Kind.FORBIDDEN, "watch things: no token"
    )


@pytest.mark.parametrize(
    ("raw", "key", "message"),
    [
        (b'{"metadata":{"name":"a","namespace":"n"},"spec":{"size":1}}', "n/a", "invalid literal"),
        (b'{"metadata":{"name":"a","resourceVersion":"5"},"spec":{}}', "a", "spec.size: Field required"),
        (b'{"metadata":{"name":"a","resourceVersion":"5"}}', "a", "spec: Field required"),
        (b'{"metadata":{"name":"a","resourceVersion":5},"spec":{"size":1}}', "a", "resourceVersion"),
        (b'{"metadata":{"name":"a","namespace":7},"spec":{"size":1}}', "a", "namespace"),
    ],
)
def test_what_cannot_be_read_says_where_and_why(
    codec: Codec[Any], raw: bytes, key: str, message: str
) -> None:
    """D4"""
    found = codec.candidate(raw)
    assert isinstance(found, Undecodable)
    assert found.key == key
    assert message in found.message


@pytest.mark.parametrize("raw", [b"x", b"[]", b"{}", b'{"metadata":{"name":""}}', b'{"metadata":{"name":3}}'])
def test_what_has_no_name_cannot_even_be_reported(codec: Codec[Any], raw: bytes) -> None:
    assert codec.candidate(raw) is None


def test_a_readable_object_keeps_what_decisions_need(codec: Codec[Any]) -> None:
    metadata = {
        "name": "a",
        "namespace": "n",
        "uid": "u",
        "resourceVersion": "5",
        "generation": 3,
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "X", "name": "no", "uid": "u0"},
            {"apiVersion": "v1", "kind": "X", "name": "yes", "uid": "u1", "controller": True},
        ],
    }
    found = codec.candidate(json.dumps({"metadata": metadata, "spec": {"size": 1}}).encode())
    assert isinstance(found, Candidate)
    entry = found.entry
    assert (found.key, entry.uid, entry.version, entry.generation, entry.owner) == ("n/a", "u", 5, 3, "u1")
    assert codec.read(entry) == found.object
