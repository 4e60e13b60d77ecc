"""What normalisation keeps of an answer, and what it makes equal."""

import json
from typing import Any

import pytest
from conformance.normalise import normalise
from conformance.play import Answer
from conformance.script import Script, Step

FIRST = "0b0c3e4e-57a3-4bb3-a39c-b3a0ab2b5f66"
SECOND = "7c2f4f5e-8d4d-4f6e-9a55-1d2c3b4a5e6f"


def normalised(*bodies: Any, code: int = 200, **script: Any) -> list[Any]:
    """The bodies of answers after normalisation."""
    options = {"steps": (), "kinds": {}, "manifests": {}, **script}
    answers = [Answer(Step("get", "x", {}), code, {}, body) for body in bodies]
    steps = normalise(Script("area", "name", "about", **options), answers, "t-area-name")
    return [step.get("body") for step in steps]


def test_uids_become_symbols_so_that_the_same_one_shows() -> None:
    one, other, again = normalised({"uid": FIRST}, {"message": f"not {SECOND}"}, {"uid": FIRST})
    assert (one, other, again) == ({"uid": "<uid1>"}, {"message": "not <uid2>"}, {"uid": "<uid1>"})


def test_resource_versions_keep_their_order_only() -> None:
    bodies = [{"metadata": {"resourceVersion": version}} for version in ("900", "17", "900", "0")]
    found = [body["metadata"]["resourceVersion"] for body in normalised(*bodies)]
    assert found == ["<rv2>", "<rv1>", "<rv2>", "0"]


@pytest.mark.parametrize("version", ["20", "21", "399"])
def test_a_list_is_only_known_to_be_not_older_than_an_object(version: str) -> None:
    """Writes of others move it."""
    objects = [{"metadata": {"resourceVersion": "20"}}, {"metadata": {"resourceVersion": "400"}}]
    listed = normalised(*objects, {"items": [], "metadata": {"resourceVersion": version}})[2]
    assert listed["metadata"]["resourceVersion"] == "<rv1+>"


def test_versions_in_messages_are_replaced_and_other_numbers_stay() -> None:
    known = {"metadata": {"resourceVersion": "12"}}
    texts = [
        "the ResourceVersion in the precondition (12) does not match the ResourceVersion in record (13)",
        "Too large resource version: 100, current: 12",
        "must be at most 12 characters",
    ]
    found = [body["message"] for body in normalised(known, *({"message": text} for text in texts))[1:]]
    assert found[0].startswith("the ResourceVersion in the precondition (<rv1>) does not match")
    assert found[1] == "Too large resource version: <rv>, current: <rv>"
    assert found[2] == texts[2]


def test_times_of_today_go_and_times_of_a_script_stay() -> None:
    body = {"a": "2031-05-06T07:08:09Z", "b": "2031-05-06T07:08:09.123456Z", "c": "2001-02-03T04:05:06Z"}
    assert normalised(body) == [{"a": "<time>", "b": "<microtime>", "c": "2001-02-03T04:05:06Z"}]


def test_generated_names_are_replaced_wherever_they_stand() -> None:
    made = {"metadata": {"generateName": "x-", "name": "x-abcde"}}
    body, failure = normalised(made, {"message": 'pods "x-abcde" not found'})
    assert body["metadata"]["name"] == "x-<random1>"
    assert failure["message"] == 'pods "x-<random1>" not found'


def test_managed_fields_are_left_out_unless_a_script_keeps_them_in_a_fixed_order() -> None:
    fields = [
        {"manager": "z", "operation": "Update"},
        {"manager": "kube-controller-manager", "operation": "Update"},
        {"manager": "b", "operation": "Apply"},
    ]
    body = {"metadata": {"managedFields": fields}}
    assert normalised(body) == [{"metadata": {}}]
    kept = normalised(body, keep=frozenset({"managedFields"}))[0]["metadata"]["managedFields"]
    assert [entry["manager"] for entry in kept] == ["b", "z"]


def test_causes_that_a_server_gives_in_chance_order_are_sorted_in_the_message_too() -> None:
    causes = [
        {"field": "spec.b", "message": "Required value"},
        {"field": "spec.a", "message": "Required value"},
    ]
    status = {
        "message": "invalid: [spec.b: Required value, spec.a: Required value]",
        "details": {"group": "x.example.com", "causes": causes},
    }
    body = normalised(status, code=422)[0]
    assert body["message"] == "invalid: [spec.a: Required value, spec.b: Required value]"
    assert [cause["field"] for cause in body["details"]["causes"]] == ["spec.a", "spec.b"]


def test_only_and_ignore_pick_parts_of_an_answer_but_never_of_a_failure() -> None:
    body = {"spec": {"a": 1, "list": [{"x": 1, "y": 2}]}, "status": {}}
    assert normalised(body, only=("spec.a", "spec.b")) == [{"spec.a": 1, "spec.b": "<nothing>"}]
    assert normalised(body, ignore=("spec.list.*.x", "status")) == [{"spec": {"a": 1, "list": [{"y": 2}]}}]
    assert normalised(body, code=404, only=("spec.a",)) == [body]


def test_an_object_quoted_in_a_message_is_an_object_whatever_the_order_of_its_keys() -> None:
    quoted = [
        json.dumps(f"{{{keys}}}") for keys in ('"b":1,"a":"' + FIRST + '"', '"a":"' + FIRST + '","b":1')
    ]
    messages = [{"message": f"patch: Invalid value: {text}: resourceVersion 5 is odd"} for text in quoted]
    one, other = normalised(*messages)
    assert one == other
    assert one["message"] == 'patch: Invalid value: {"a": "<uid1>", "b": 1}: resourceVersion <rv> is odd'
