"""The store as its readers and writers see it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kubeloop.cache import NAMESPACE, OWNER, Store
from kubeloop.cache.codec import Candidate, Codec, raw_item
from kubeloop.model import DynamicObject, Resource


@pytest.fixture
def store(codec: Codec[Any]) -> Store[Any]:
    return Store(codec)


@pytest.fixture
def put(store: Store[Any], codec: Codec[Any], tools: Any) -> Any:
    """What the watch brings."""

    def put(name: str, version: int, **more: Any) -> None:
        candidate = codec.candidate(raw_item(tools.thing(name, version, **more)))
        assert isinstance(candidate, Candidate), candidate
        store.change(None, candidate)

    return put


def owned_by(uid: str) -> list[dict[str, Any]]:
    reference = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "o", "uid": uid, "controller": True}
    return [reference]


def test_objects_are_found_by_key_and_by_index(store: Store[Any], put: Any) -> None:
    put("a", 5, size=3, ownerReferences=owned_by("o1"))
    put("b", 6, namespace="other", ownerReferences=owned_by("o1"))
    put("c", 7)
    assert store.get("ns/a").spec.size == 3
    assert store.get("ns/nothing") is None
    assert sorted(store.keys()) == ["ns/a", "ns/c", "other/b"]
    assert sorted(thing.name for thing in store.list()) == ["a", "b", "c"]
    assert sorted(thing.name for thing in store.by_index(OWNER, "o1")) == ["a", "b"]
    assert store.keys_by_index(NAMESPACE, "other") == ["other/b"]
    assert store.by_index(OWNER, "nobody") == []
    assert (len(store), "ns/a" in store, store.version_of("ns/a"), store.resource_version) == (3, True, 5, 7)
    with pytest.raises(KeyError):
        store.by_index("colour", "red")


def test_nothing_that_a_reader_does_reaches_the_store() -> None:
    """go-anchors 6.10"""
    codec: Codec[DynamicObject] = Codec(Resource("", "v1", "configmaps", "ConfigMap"))
    store = Store(codec)
    store.write_through({"metadata": {"name": "a", "resourceVersion": "5"}, "data": {"k": "v"}})
    found = store.get("a")
    assert found is not None
    with pytest.raises(TypeError):
        found["data"]["k"] = "changed"
    found.to_wire()["data"]["k"] = "changed"
    again = store.get("a")
    assert again is not None
    assert again["data"]["k"] == "v"


def test_what_changed_last_is_at_hand_and_never_older_than_the_store(
    store: Store[Any], tools: Any, codec: Codec[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubeloop.cache.store.HOT", 2)
    reads: list[int] = []
    read = codec.read
    monkeypatch.setattr(codec, "read", lambda entry: reads.append(entry.version) or read(entry))
    for version, name in enumerate("abc", 5):
        store.write_through(tools.thing(name, version, size=version))
    assert [store.get(f"ns/{name}").spec.size for name in "abc"] == [5, 6, 7]
    assert reads == [5]  # only the oldest had to be decoded anew
    store.write_through(tools.thing("c", 8, size=8))
    assert store.get("ns/c").spec.size == 8
    store.forget("ns/c", uid="uid-c")
    assert store.get("ns/c") is None


def test_the_echo_of_an_own_write_is_not_decoded_again(store: Store[Any], tools: Any) -> None:
    raw = raw_item(tools.thing("a", 5, size=4))
    mine = store.write_through(raw + b"\n")
    echo = store.candidate(raw)
    assert isinstance(echo, Candidate)
    assert echo.object is mine
    again = store.candidate(raw)  # no echo: that has come
    assert isinstance(again, Candidate)
    assert again.object == mine
    assert again.object is not mine


def test_echoes_that_never_come_are_forgotten(
    store: Store[Any], tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubeloop.cache.store.ECHOES", 2)
    writes = [raw_item(tools.thing(name, version, size=1)) for version, name in enumerate("abc", 5)]
    mine = [store.write_through(raw) for raw in writes]
    seen = [store.candidate(raw) for raw in writes]
    objects = [found.object for found in seen if isinstance(found, Candidate)]
    assert [found is own for found, own in zip(objects, mine, strict=True)] == [False, True, True]


def test_managed_fields_are_not_kept(store: Store[Any], tools: Any, codec: Codec[Any]) -> None:
    thing = tools.thing("a", 5, managedFields=[{"manager": "x" * 10_000}])
    store.write_through(thing)
    entry = store._ledger.entries["ns/a"]
    assert b"managedFields" not in codec._packer.unpack(entry.packed)
    assert thing["metadata"]["managedFields"]  # what was given is not changed


def test_a_users_index_covers_what_is_there_and_what_comes(store: Store[Any], put: Any) -> None:
    put("a", 5, size=1)
    store.add_index("size", lambda thing: [str(thing.spec.size), "any"])
    put("b", 6, size=2)
    put("a", 7, size=2)
    assert sorted(store.keys_by_index("size", "2")) == ["ns/a", "ns/b"]
    assert store.keys_by_index("size", "1") == []
    store.forget("ns/a", uid="uid-a")
    assert store.keys_by_index("size", "any") == ["ns/b"]
    with pytest.raises(ValueError, match="already"):
        store.add_index("size", lambda _: [])


def test_a_failing_index_function_harms_nothing_else(store: Store[Any], put: Any) -> None:
    """go-anchors 6.10: client-go panics"""
    store.add_index("inverse", lambda thing: [str(6 // thing.spec.size)])
    store.add_index("size", lambda thing: [str(thing.spec.size)])
    put("a", 5, size=2)
    put("a", 6, size=0)
    put("b", 7, size=3)
    assert store.keys_by_index("inverse", "3") == []
    assert store.keys_by_index("inverse", "2") == ["ns/b"]
    assert store.keys_by_index("size", "0") == ["ns/a"]
    assert store.index_errors == 1


def test_an_own_write_may_be_given_as_bytes_or_mapping_and_rubbish_is_ignored(
    store: Store[Any], tools: Any
) -> None:
    store.write_through(raw_item(tools.thing("a", 5, size=4)))
    assert store.get("ns/a").spec.size == 4
    store.write_through(tools.thing("a", 6, size=5))
    assert store.get("ns/a").spec.size == 5
    store.write_through(tools.thing("a", 7, size="huge"))
    store.write_through(b"rubbish")
    assert store.version_of("ns/a") == 6


@pytest.mark.parametrize(
    ("said", "gone"),
    [
        ({"uid": "uid-a"}, True),
        ({"uid": "another"}, False),
        ({"resource_version": 5}, True),
        ({"resource_version": 9}, True),
        ({"resource_version": 4}, False),
    ],
)
def test_an_own_delete_takes_out_only_what_was_deleted(
    store: Store[Any], put: Any, said: Any, gone: bool
) -> None:
    put("a", 5)
    store.forget("ns/a", **said)
    assert ("ns/a" not in store) is gone


def test_readers_never_see_a_half_done_change(store: Store[Any], put: Any) -> None:
    """Each query is answered from one moment: an owner's objects are always the same number."""
    for number in range(4):
        put(f"t{number}", number + 1, ownerReferences=owned_by("o0"))
    stop = threading.Event()
    odd: list[int] = []

    def read() -> None:
        while not stop.is_set():
            found = sum(len(store.by_index(OWNER, f"o{owner}")) for owner in range(2))
            if found > 8:
                odd.append(found)
            for thing in store.list():
                if thing.controller_owner() is None:
                    odd.append(-1)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for version in range(10, 210):
        put(f"t{version % 4}", version, ownerReferences=owned_by(f"o{version % 2}"))
    stop.set()
    for reader in readers:
        reader.join()
    assert odd == []


def test_a_transform_is_applied_once_to_what_comes_in(tools: Any) -> None:
    """go-anchors 5b: client-go applies it twice"""
    codec = Codec(tools.Thing, lambda thing: thing.replace(spec=thing.spec.replace(size=thing.spec.size + 1)))
    candidate = codec.candidate(raw_item(tools.thing("a", 5, size=1)))
    assert isinstance(candidate, Candidate)
    assert candidate.object.spec.size == 2
    candidate.lighten()
    assert candidate.object.spec.size == 2


def test_a_kind_must_be_one() -> None:
    with pytest.raises((TypeError, AttributeError)):
        Codec(dict)  # type: ignore[type-var]


def test_of_a_list_as_many_are_at_hand_as_of_anything_else(
    store: Store[Any], tools: Any, codec: Codec[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubeloop.cache.store.HOT", 2)
    found = [codec.candidate(raw_item(tools.thing(name, 5, size=1))) for name in "abc"]
    candidates = {each.key: each for each in found if isinstance(each, Candidate)}
    candidates["ns/a"].lighten()
    store.replace(None, candidates, {}, 5, store.begin_list())
    monkeypatch.setattr(codec, "read", lambda entry: pytest.fail(f"{entry} is decoded again"))
    assert [store.get(key).name for key in ("ns/b", "ns/c")] == ["b", "c"]
