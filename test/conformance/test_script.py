"""Scripts as data: shorthand, variables, paths into answers."""

from typing import Any

import pytest
from conformance.address import Kind, identity, place
from conformance.corpus import Corpus
from conformance.script import own_crd, parse_script
from conformance.variables import MISSING, ScriptError, lookup, merge, substitute
from conformance.yamlfile import read_yaml
from hypothesis import given
from hypothesis import strategies as st

KINDS = {
    "cm": Kind("v1", "configmaps", "ConfigMap"),
    "widget": Kind("x.example.com/v1", "widgets", "Widget"),
    "ns": Kind("v1", "namespaces", "Namespace", namespaced=False),
}


@pytest.mark.parametrize(
    ("target", "create", "expected"),
    [
        ("cm", False, "/api/v1/namespaces/here/configmaps"),
        ("cm/a", False, "/api/v1/namespaces/here/configmaps/a"),
        ("cm/a?x=1", True, "/api/v1/namespaces/here/configmaps?x=1"),
        ("cm@*", False, "/api/v1/configmaps"),
        ("cm@there/a", False, "/api/v1/namespaces/there/configmaps/a"),
        ("ns/a", False, "/api/v1/namespaces/a"),
        ("widget/a/status", False, "/apis/x.example.com/v1/namespaces/here/widgets/a/status"),
        ("/version", False, "/version"),
    ],
)
def test_targets_become_paths(target: str, create: bool, expected: str) -> None:
    assert place(target, KINDS, namespace="here", group="g", create=create).target == expected


def test_an_unknown_alias_is_a_mistake() -> None:
    with pytest.raises(ScriptError, match="no kind 'cn'"):
        place("cn/a", KINDS, namespace="here", group="g", create=False)


def test_bodies_are_completed_from_the_target() -> None:
    where = place("widget/a/scale", KINDS, namespace="here", group="g", create=False)
    assert identity(where, "g") == {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "a"},
    }
    where = place("widget/a", KINDS, namespace="here", group="g", create=True)
    assert identity(where, "g")["kind"] == "Widget"


def test_variables_are_replaced_in_keys_and_values_and_whole_ones_keep_their_type() -> None:
    known = {"rv": "41", "obj": {"a": [1]}, "ns": "here"}
    value = {"x-${ns}": "${rv+1}", "y": "${obj}", "z": ["at ${rv}", 5]}
    assert substitute(value, known) == {"x-here": "42", "y": {"a": [1]}, "z": ["at 41", 5]}
    with pytest.raises(ScriptError, match="no variable 'nothing'"):
        substitute("${nothing}", known)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".", {"a": {"b.c": [{"type": "Ready", "on": 1}]}}),
        ("a['b.c'][0].on", 1),
        ("a['b.c'][type=Ready].on", 1),
        ("a['b.c'][type=Other].on", MISSING),
        ("a['b.c'][1]", MISSING),
        ("a.x.y", MISSING),
    ],
)
def test_paths_lead_into_answers(path: str, expected: Any) -> None:
    assert lookup({"a": {"b.c": [{"type": "Ready", "on": 1}]}}, path) == expected


JSON = st.recursive(
    st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text(max_size=2), JSON, max_size=3)


@given(OBJECTS)
def test_merging_something_into_itself_changes_nothing(value: dict[str, Any]) -> None:
    assert merge(value, value) == value


@given(OBJECTS)
def test_null_removes(value: dict[str, Any]) -> None:
    assert merge(value, dict.fromkeys(value)) == {}


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ({"steps": [{"get": "cm", "put": "cm"}]}, "one verb"),
        ({"steps": [{"body": {}}]}, "one verb"),
        ({"steps": [{"get": "cm", "bodi": {}}]}, "unknown options"),
        ({"step": [], "steps": []}, "unknown keys"),
    ],
)
def test_a_mistake_in_a_script_is_reported(data: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ScriptError, match=complaint):
        parse_script("area", "name", data, Corpus().shared)


def test_several_targets_are_several_steps() -> None:
    script = parse_script("area", "name", {"steps": [{"create": ["cm/a", "cm/b"]}]}, Corpus().shared)
    assert [step.label for step in script.steps] == ["create cm/a", "create cm/b"]


def test_a_crd_in_short_becomes_a_whole_one() -> None:
    crd = own_crd(
        {"properties": {"spec": {"type": "object"}}, "subresources": {"status": {}}}, "g.example.com"
    )
    assert crd["metadata"]["name"] == "foos.g.example.com"
    version = crd["spec"]["versions"][0]
    assert version["subresources"] == {"status": {}}
    assert version["schema"]["openAPIV3Schema"]["properties"] == {"spec": {"type": "object"}}


def test_yaml_words_stay_words(tmp_path: Any) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("{a: yes, b: no, c: true, d: 2001-01-01, y: 1}")
    assert read_yaml(file) == {"a": "yes", "b": "no", "c": True, "d": "2001-01-01", "y": 1}
