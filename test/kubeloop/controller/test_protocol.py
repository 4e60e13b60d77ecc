"""The apply protocol's decisions (D1, D2)."""

from __future__ import annotations

from typing import Any

import pytest

from kubeloop.controller.drift import APPLIED, content_hash, stamp
from kubeloop.controller.protocol import Applied, AppliedMemory, Step, decide, is_settled
from kubeloop.model import Deployment, KubeObject, Service

OWNER = "owner-uid"


def wanted(replicas: int = 3) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "hello",
            "namespace": "default",
            "labels": {"app": "hello"},
            "ownerReferences": [reference()],
        },
        "spec": {"replicas": replicas},
    }


def reference(uid: str = OWNER) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "WebApp", "name": "hello", "uid": uid, "controller": True}


def live(stamped: str | None = None, generation: int = 1, **changes: Any) -> Deployment:
    """The Deployment as the server shows it: defaults filled in, a stranger's label beside ours."""
    annotations = {} if stamped is None else {APPLIED: stamped}
    metadata = {
        "name": "hello",
        "namespace": "default",
        "uid": "u1",
        "resourceVersion": "10",
        "generation": generation,
        "labels": {"app": "hello", "foreign": "yes"},
        "annotations": annotations,
        "ownerReferences": [{**reference(), "blockOwnerDeletion": True}],
        **changes.pop("metadata", {}),
    }
    spec = {"replicas": 3, "paused": False, **changes.pop("spec", {})}
    return Deployment.model_validate({"metadata": metadata, "spec": spec, **changes})


def step(want: dict[str, Any], obj: KubeObject | None, applied: Applied | None = None) -> Step:
    return decide(want, content_hash(want), obj, OWNER, applied)


DIGEST = content_hash(wanted())
OURS = stamp(DIGEST, 1)


def test_what_is_not_there_is_created() -> None:
    assert step(wanted(), None) is Step.CREATE


@pytest.mark.parametrize(
    ("references", "stamped"),
    [
        pytest.param([reference("another")], OURS, id="another owner, even with our stamp"),
        pytest.param([{**reference(), "controller": False}], None, id="an owner that does not control"),
    ],
)
def test_what_is_not_ours_is_left_alone_whatever_it_looks_like(
    references: list[dict[str, Any]], stamped: str | None
) -> None:
    """D2."""
    assert step(wanted(), live(stamped, metadata={"ownerReferences": references})) is Step.FOREIGN


def test_what_has_no_owner_and_was_never_applied_by_us_is_not_ours() -> None:
    """D2: also after `kubectl delete --cascade=orphan` of an earlier owner: its uid is part of the digest."""
    orphan = live(None, metadata={"ownerReferences": []})
    of_another_owner = live(stamp("another", 1), metadata={"ownerReferences": []})

    assert step(wanted(), orphan) is Step.FOREIGN
    assert step(wanted(), of_another_owner) is Step.FOREIGN


def test_what_we_applied_for_this_owner_and_lost_its_reference_is_repaired() -> None:
    """Somebody removed the reference: without it the garbage collector would leave the object behind."""
    assert step(wanted(), live(OURS, metadata={"ownerReferences": []})) is Step.REPAIR
    forgotten = live(None, metadata={"ownerReferences": []})
    assert step(wanted(), forgotten, Applied("u1", DIGEST, 1)) is Step.REPAIR


def test_what_goes_away_is_waited_for() -> None:
    going = live(OURS, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})

    assert step(wanted(), going) is Step.WAIT


def test_after_a_restart_the_stamp_says_that_nothing_drifted() -> None:
    """D1, also when the server or a webhook normalised what we said."""
    normalised = live(OURS, spec={"replicas": "3"})

    assert step(wanted(), normalised) is Step.KEEP


def test_an_object_that_moved_while_we_were_away_is_kept_if_our_fields_are_as_we_want() -> None:
    """A stranger's annotation moves the generation of a Deployment."""
    assert step(wanted(), live(OURS, generation=7)) is Step.KEEP


def test_an_object_that_drifted_while_we_were_away_is_repaired() -> None:
    assert step(wanted(), live(OURS, generation=2, spec={"replicas": 0})) is Step.REPAIR


def test_a_new_wish_is_applied_even_if_the_live_object_happens_to_have_it() -> None:
    """What the old wish had and the new one lacks must be given up by an apply."""
    assert step(wanted(3), live(stamp(content_hash(wanted(2)), 1))) is Step.REPAIR


def test_what_is_remembered_counts_more_than_the_stamp() -> None:
    """The foretold generation was wrong: somebody was faster. What the server answered is what counts."""
    applied = Applied("u1", DIGEST, 5)

    assert step(wanted(), live(OURS, generation=5, spec={"replicas": "3"}), applied) is Step.KEEP
    assert step(wanted(), live(OURS, generation=1, spec={"replicas": "0"}), applied) is Step.REPAIR


def test_what_is_remembered_of_an_earlier_object_of_the_name_does_not_count() -> None:
    applied = Applied("u0", DIGEST, 2)

    assert step(wanted(), live(OURS, generation=2, spec={"replicas": 0}), applied) is Step.REPAIR


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"labels": {"foreign": "yes"}}, id="our label removed"),
        pytest.param({"labels": {"app": "evil"}}, id="our label changed"),
        pytest.param({"annotations": {}}, id="the stamp removed"),
        pytest.param({"annotations": {APPLIED: "garbage"}}, id="the stamp garbled"),
    ],
)
def test_drift_that_moves_no_generation_is_repaired(metadata: dict[str, Any]) -> None:
    assert step(wanted(), live(OURS, metadata=metadata), Applied("u1", DIGEST, 1)) is Step.REPAIR


def test_kinds_without_a_generation_are_compared_field_by_field() -> None:
    want = {**wanted(), "kind": "Service", "spec": {"ports": [{"name": "http", "port": 80}]}}
    metadata = {
        "name": "hello",
        "namespace": "default",
        "uid": "u1",
        "labels": {"app": "hello"},
        "annotations": {APPLIED: stamp(content_hash(want), 1)},
        "ownerReferences": [reference()],
    }
    as_wanted = {"clusterIP": "10.0.0.1", "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}
    drifted = {"clusterIP": "10.0.0.1", "ports": [{"name": "http", "port": 81, "protocol": "TCP"}]}

    assert step(want, Service.model_validate({"metadata": metadata, "spec": as_wanted})) is Step.KEEP
    assert step(want, Service.model_validate({"metadata": metadata, "spec": drifted})) is Step.REPAIR


def test_the_memory_is_bounded() -> None:
    memory = AppliedMemory(size=10)
    for n in range(100):
        memory.put("Deployment", f"ns/{n}", Applied("u", "d", 1))

    assert sum(memory.get("Deployment", f"ns/{n}") is not None for n in range(100)) == 10


def test_the_memory_tells_kinds_and_keys_apart_and_forgets_when_told() -> None:
    memory = AppliedMemory()
    for kind, key in [("Deployment", "ns/a"), ("Deployment", "ns/b"), ("Service", "ns/a")]:
        memory.put(kind, key, Applied(f"{kind} {key}", "d", 1))
    memory.drop("Deployment", "ns/a")
    memory.drop("Deployment", "ns/never")

    assert memory.get("Deployment", "ns/a") is None
    assert memory.get("Deployment", "ns/b") == Applied("Deployment ns/b", "d", 1)
    assert memory.get("Service", "ns/a") == Applied("Service ns/a", "d", 1)


def test_what_goes_away_without_an_owner_is_not_ours_any_more() -> None:
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": []}

    assert step(wanted(), live(OURS, metadata=going)) is Step.FOREIGN


def test_somebody_elses_object_that_goes_away_is_not_waited_for() -> None:
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": [reference("another")]}

    assert step(wanted(), live(OURS, metadata=going)) is Step.FOREIGN


@pytest.mark.parametrize(
    "applied",
    [Applied("u0", DIGEST, 1), Applied("u1", "another", 1)],
    ids=["another object of that name", "another content"],
)
def test_an_orphan_is_only_ours_if_this_very_object_was_applied_with_this_very_content(
    applied: Applied,
) -> None:
    assert step(wanted(), live(None, metadata={"ownerReferences": []}), applied) is Step.FOREIGN


def test_what_is_remembered_of_other_content_makes_neither_generation_count() -> None:
    """Nobody knows then which generation is ours, so the fields decide."""
    applied = Applied("u1", "another", 1)

    assert step(wanted(), live(OURS), applied) is Step.KEEP
    assert step(wanted(), live(OURS, spec={"replicas": 0}), applied) is Step.REPAIR


def test_a_generation_of_zero_is_none_at_all() -> None:
    """Kinds without one: the fields decide, whatever is remembered."""
    drifted = live(stamp(DIGEST, 0), generation=0, spec={"replicas": 0})

    assert step(wanted(), drifted) is Step.REPAIR
    assert step(wanted(), drifted, Applied("u1", DIGEST, 0)) is Step.REPAIR


def test_an_annotation_of_ours_that_was_changed_or_removed_is_repaired() -> None:
    want = wanted()
    want["metadata"]["annotations"] = {"note": "a"}
    ours = stamp(content_hash(want), 1)

    for note, expected in [
        ({"note": "a", "b": "c"}, Step.KEEP),
        ({"note": "b"}, Step.REPAIR),
        ({}, Step.REPAIR),
    ]:
        assert step(want, live(metadata={"annotations": {APPLIED: ours, **note}})) is expected


def test_an_owner_reference_that_was_changed_is_repaired_and_others_beside_it_are_not_minded() -> None:
    another = {**reference("another"), "controller": False}
    renamed = {**reference(), "name": "hi"}

    assert step(wanted(), live(OURS, metadata={"ownerReferences": [another, reference()]})) is Step.KEEP
    assert step(wanted(), live(OURS, metadata={"ownerReferences": [another, renamed]})) is Step.REPAIR


def test_a_wish_that_names_several_owners_needs_them_all() -> None:
    want = wanted()
    another = {**reference("another"), "controller": False}
    want["metadata"]["ownerReferences"] = [reference(), another]
    ours = stamp(content_hash(want), 1)

    assert step(want, live(ours, metadata={"ownerReferences": [another, reference()]})) is Step.KEEP
    assert step(want, live(ours)) is Step.REPAIR


def test_a_wish_may_do_without_labels_owners_and_even_metadata() -> None:
    """What it does not mention is not compared, and neither is what the server alone says."""
    want = {"apiVersion": "apps/v2", "kind": "Another", "spec": {"replicas": 3}}
    ours = stamp(content_hash(want), 1)

    assert is_settled(want, content_hash(want), live(ours, generation=7), None)
    assert is_settled({**want, "metadata": {}}, content_hash(want), live(ours, generation=7), None)
    named = {**want, "metadata": {"name": "hello", "labels": {"app": "hello"}}}
    assert is_settled(named, content_hash(want), live(ours, generation=7), None)


def test_what_others_add_to_the_metadata_is_not_minded() -> None:
    """A finalizer, for one: of the metadata only labels, annotations and owners are ours to keep."""
    want = wanted()
    want["metadata"]["finalizers"] = ["example.com/ours"]
    metadata = {"finalizers": ["example.com/ours", "example.com/theirs"]}

    assert step(want, live(stamp(content_hash(want), 1), generation=7, metadata=metadata)) is Step.KEEP
