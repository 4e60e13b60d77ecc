"""Pure comparisons behind "zero writes when nothing is wrong" (D1)."""

from __future__ import annotations

import copy
import enum
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeloop.controller.drift import (
    APPLIED,
    applied_generation,
    content_hash,
    covers,
    fingerprint,
    read_stamp,
    stamp,
)
from kubeloop.model import Deployment

NAMES = ["a", "b", "name", "type", "port", "protocol"]
"""Also those by which the items of lists are told apart."""

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=12,
)


@given(json_values)
def test_everything_covers_itself(value: Any) -> None:
    assert covers(value, value)


@given(st.dictionaries(st.sampled_from("abcdef"), json_values), json_values)
def test_what_is_not_wanted_does_not_matter(wanted: dict[str, Any], foreign: Any) -> None:
    assert covers(wanted, {**wanted, "foreign": foreign})


@pytest.mark.parametrize(
    ("wanted", "live", "same"),
    [
        pytest.param({"replicas": 3}, {"replicas": 0}, False, id="another value"),
        pytest.param({"replicas": 0}, {}, False, id="missing"),
        pytest.param({"replicas": 1}, {"replicas": True}, False, id="a bool is no number"),
        pytest.param({"paused": True}, {"paused": 1}, False, id="a number is no bool"),
        pytest.param({"args": ["a"]}, {"args": ["a", "b"]}, False, id="plain lists are atomic"),
        pytest.param(
            {"containers": [{"name": "app", "image": "nginx"}]},
            {"containers": [{"name": "sidecar"}, {"name": "app", "image": "nginx", "stdin": False}]},
            True,
            id="lists of maps are matched by name, whoever else added to them",
        ),
        pytest.param(
            {"containers": [{"name": "app", "image": "nginx"}]},
            {"containers": [{"name": "app", "image": "evil"}]},
            False,
            id="a changed image",
        ),
        pytest.param(
            {"ports": [{"containerPort": 80}]},
            {"ports": [{"containerPort": 80, "protocol": "TCP"}]},
            True,
            id="the protocol defaults to TCP",
        ),
        pytest.param(
            {"ports": [{"containerPort": 80, "protocol": "UDP"}]},
            {"ports": [{"containerPort": 80, "protocol": "TCP"}]},
            False,
            id="UDP is another port",
        ),
        pytest.param({"env": []}, {"env": [{"name": "A"}]}, False, id="an empty wish is a wish"),
        pytest.param({"a": None}, {"a": None}, True, id="null"),
        pytest.param({"a": {}}, {"a": []}, False, id="an empty list is no empty map"),
        pytest.param({"a": []}, {"a": {}}, False, id="an empty map is no empty list"),
        pytest.param({"a": []}, {"a": ""}, False, id="an empty text is no empty list"),
        pytest.param({"a": ["b", "c"]}, {"a": "bc"}, False, id="a text is no list of characters"),
        pytest.param({"a": "bc"}, {"a": ["b", "c"]}, False, id="a list of characters is no text"),
        pytest.param({"a": ["b", "c"]}, {"a": ["c", "b"]}, False, id="the order of a plain list matters"),
        pytest.param({"a": [{"x": 1}]}, {"a": [{"x": 1, "y": 2}]}, True, id="defaults in keyless items"),
        pytest.param({"a": [{"x": 1}]}, {"a": [{"x": 2}]}, False, id="another item without a key"),
        pytest.param({"a": [{"x": 1}]}, {"a": [{"x": 1}, {"x": 1}]}, False, id="one more without a key"),
        pytest.param({"a": [{"name": "b"}, "c"]}, {"a": [{"name": "b"}, "c"]}, True, id="a mixed list"),
        pytest.param({"a": [{"name": "b"}, "c"]}, {"a": ["c", {"name": "b"}]}, False, id="and its order"),
        pytest.param({"a": [{"name": "b"}]}, {"a": ["c", {"name": "b"}]}, True, id="a stranger's odd item"),
        pytest.param({"a": [{"name": "b"}]}, {"a": ["b"]}, False, id="a name alone is no item"),
        pytest.param(
            {"a": [{"name": "b", "port": 1}, {"name": "c", "port": 2}]},
            {"a": [{"name": "c", "port": 2}, {"name": "b", "port": 1}]},
            True,
            id="the order of items with a key does not matter",
        ),
        pytest.param(
            {"mounts": [{"name": "data", "mountPath": "/a"}, {"name": "data", "mountPath": "/b"}]},
            {"mounts": [{"name": "data", "mountPath": "/b"}, {"name": "data", "mountPath": "/a"}]},
            True,
            id="the first key that tells all items apart is taken",
        ),
        pytest.param(
            {"mounts": [{"name": "data", "mountPath": "/a"}, {"name": "data", "mountPath": "/b"}]},
            {"mounts": [{"name": "data", "mountPath": "/a"}, {"name": "evil", "mountPath": "/b"}]},
            False,
            id="and the rest of each item is compared",
        ),
        pytest.param(
            {"metrics": [{"type": "Resource", "name": "cpu"}, {"type": "Resource", "name": "memory"}]},
            {"metrics": [{"type": "Resource", "name": "cpu"}, {"type": "Resource", "name": "memory"}]},
            True,
            id="two metrics of one type",
        ),
        pytest.param(
            {"tolerations": [{"key": "a"}]},
            {"tolerations": [{"key": "a"}, {"key": "b"}]},
            False,
            id="one more toleration: the server replaces the whole list",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}]},
            {"tolerations": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}]},
            True,
            id="two tolerations of one key",
        ),
        pytest.param(
            {"subjects": [{"kind": "User", "name": "ann"}]},
            {"subjects": [{"kind": "User", "name": "ann"}, {"kind": "User", "name": "eve"}]},
            False,
            id="one more subject of a role",
        ),
        pytest.param(
            {"subjects": [{"kind": "User", "name": "ann"}]},
            {"subjects": [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}]},
            True,
            id="the subject of a role",
        ),
        pytest.param(
            {"selector": {"app": "a"}},
            {"selector": {"app": "a", "evil": "b"}},
            False,
            id="one more label of a Service's selector: it selects nothing any more",
        ),
        pytest.param({"subjects": 3}, {"subjects": 3}, True, id="somebody else's field of that name"),
        pytest.param(
            {"a": [{"name": "b", "x": 1}, {"name": "b", "x": 2}]},
            {"a": [{"name": "b", "x": 1}, {"name": "b", "x": 2}]},
            True,
            id="two items of one name",
        ),
        pytest.param(
            {"a": [{"name": "b", "x": 1}]},
            {"a": [{"name": "b", "x": 1}, {"name": "b", "x": 2}]},
            False,
            id="one more of the same name",
        ),
        pytest.param(
            {"a": [{"name": ["b"]}, {"name": {"c": 1}}]},
            {"a": [{"name": ["b"]}, {"name": {"c": 1}}]},
            True,
            id="names that are no texts",
        ),
        pytest.param(
            {"a": [{"name": "b"}]}, {"a": [{"name": ["c"]}, {"name": "b"}]}, True, id="a stranger's odd name"
        ),
        pytest.param(
            {"a": [{"ip": "::1"}]},
            {"a": [{"ip": "::2"}, {"ip": "::1"}]},
            True,
            id="items told apart by address",
        ),
        pytest.param(
            {"a": [{"name": "b"}, {"x": 1}]},
            {"a": [{"x": 1}, {"name": "b"}]},
            False,
            id="a key that not all items have tells nothing",
        ),
        pytest.param(
            {"a": [{"port": 53}, {"port": 53, "protocol": "UDP"}]},
            {"a": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]},
            True,
            id="one port of two protocols",
        ),
    ],
)
def test_covering(wanted: Any, live: Any, same: bool) -> None:
    assert covers(wanted, live) is same


@given(st.dictionaries(st.text(max_size=4), json_values))
def test_the_hash_does_not_depend_on_the_order_of_keys(content: dict[str, Any]) -> None:
    assert content_hash(content) == content_hash(dict(reversed(content.items())))


class Protocol(enum.StrEnum):
    UDP = "UDP"


class Port(enum.IntEnum):
    DNS = 53


@pytest.mark.parametrize(
    ("wanted", "live", "same"),
    [
        (Protocol.UDP, "UDP", True),
        (Protocol.UDP, "TCP", False),
        (Protocol.UDP, Protocol.UDP, True),
        (Port.DNS, 53, True),
        (Port.DNS, 54, False),
        (Port.DNS, 53.0, False),
        (Port.DNS, "53", False),
        (Decimal(1), Decimal(1), True),
        (Decimal(1), Decimal(2), False),
        (Decimal(1), 1, False),
    ],
)
def test_a_member_of_an_enum_is_its_value(wanted: Any, live: Any, same: bool) -> None:
    """Whoever builds manifests may like them; on the wire they are plain."""
    assert covers({"x": wanted}, {"x": live}) is same


@given(json_values, json_values)
def test_a_fingerprint_is_of_one_content_only(one: Any, other: Any) -> None:
    mark, another = fingerprint({"x": one}), fingerprint({"x": other})

    assert mark == fingerprint({"x": copy.deepcopy(one)})
    assert mark != another or content_hash({"x": one}) == content_hash({"x": other})


def test_a_fingerprint_is_short_and_sensitive_to_order() -> None:
    """Many are remembered. Two orders are two fingerprints: that costs a hash, and no wrong conclusion."""
    assert len(fingerprint({"a": 1, "b": 2})) == 10
    assert fingerprint({"a": 1, "b": 2}) != fingerprint({"b": 2, "a": 1})


def test_the_hash_is_the_same_in_every_version() -> None:
    """It stands in annotations: with another one, an upgraded operator would write everything once more."""
    content = {"b": {"ü": [1, 2.5, None, True]}, "a": "x y"}

    assert content_hash(content) == "e74bcb83404d82d1bd11"


@given(json_values, json_values)
def test_other_content_has_another_hash(one: Any, other: Any) -> None:
    if type(one) is type(other) and one != other:
        assert content_hash({"x": one}) != content_hash({"x": other})


@pytest.mark.parametrize(
    "text", [None, "", "abc", "abc:", "abc:-1", "abc:x", "abc:１", "abc:1:2", "abc 1", "a:" + "1" * 5000]
)
def test_a_stamp_that_makes_no_sense_is_no_stamp(text: str | None) -> None:
    """Anybody can edit an annotation."""
    assert read_stamp(text) is None


def test_a_stamp_reads_back() -> None:
    assert stamp("abc", 7) == "abc:7"
    assert read_stamp(stamp("abc", 7)) == ("abc", 7)
    assert read_stamp(stamp("abc", 2**63 - 1)) == ("abc", 2**63 - 1)


@pytest.mark.parametrize(
    ("annotations", "generation"),
    [
        ({APPLIED: "abc:7"}, 7),
        ({APPLIED: "abc:7", "other": "def:8"}, 7),
        ({APPLIED: "garbage"}, None),
        ({}, None),
    ],
)
def test_the_generation_that_we_led_to_is_read_from_our_annotation(
    annotations: dict[str, str], generation: int | None
) -> None:
    """Whatever generation the object has come to since."""
    metadata = {"name": "hello", "generation": 9, "annotations": annotations}

    assert applied_generation(Deployment.model_validate({"metadata": metadata})) == generation
