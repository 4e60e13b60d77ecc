"""The store: one revision for all, history, consistent lists at a revision, watchers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubeloop.sandbox.store import Changed, Compacted, Exists, Store, Watcher, to_json

PODS = ("", "pods")
APPS = ("example.com", "webapps")


def obj(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **more}


def seen(watcher: Watcher) -> list[tuple[str, str, int]]:
    return [(event.type, event.record.name, event.revision) for event in watcher.take()]


def test_every_write_takes_the_next_revision_of_all_resources() -> None:
    store = Store()
    first = store.create(PODS, "a", "x", obj("x"))
    second = store.create(APPS, "a", "y", obj("y"))
    third = store.delete(PODS, first)
    assert second.revision == first.revision + 1
    assert third.revision == second.revision + 1 == store.revision
    assert second.obj["metadata"]["resourceVersion"] == str(second.revision)


def test_a_create_finds_its_key_taken() -> None:
    store = Store()
    store.create(PODS, "a", "x", obj("x"))
    with pytest.raises(Exists):
        store.create(PODS, "a", "x", obj("x"))
    store.create(PODS, "b", "x", obj("x"))


def test_an_update_of_an_outdated_state_is_refused() -> None:
    store = Store()
    old = store.create(PODS, "a", "x", obj("x"))
    store.update(PODS, old, obj("x", spec=1))
    with pytest.raises(Changed):
        store.update(PODS, old, obj("x", spec=2))
    with pytest.raises(Changed):
        store.delete(PODS, old)


def test_objects_are_copied_on_write() -> None:
    store = Store()
    given_object = obj("x")
    record = store.create(PODS, "a", "x", given_object)
    assert "resourceVersion" not in given_object["metadata"]
    newer = store.update(PODS, record, obj("x", spec=1))
    assert record.obj["metadata"]["resourceVersion"] != newer.obj["metadata"]["resourceVersion"]


def test_lists_are_in_the_order_of_the_real_servers_keys() -> None:
    """ "a-b/x" sorts before "a/x", as "-" precedes "/"."""
    store = Store()
    for namespace, name in (("a", "x"), ("a-b", "x"), ("b", "a"), ("a", "a")):
        store.create(PODS, namespace, name, obj(name))
    assert [(r.namespace, r.name) for r in store.current(PODS)[0]] == [
        ("a-b", "x"),
        ("a", "a"),
        ("a", "x"),
        ("b", "a"),
    ]
    assert [r.name for r in store.current(PODS, "a")[0]] == ["a", "x"]


def test_an_old_state_can_be_listed_until_it_is_compacted() -> None:
    store = Store()
    first = store.create(PODS, "a", "x", obj("x"))
    store.create(PODS, "a", "y", obj("y"))
    then = store.revision
    store.update(PODS, first, obj("x", spec=1))
    store.create(PODS, "a", "z", obj("z"))
    assert [(r.name, r.obj.get("spec")) for r in store.list_at(PODS, then)] == [("x", None), ("y", None)]
    store.compact()
    with pytest.raises(Compacted) as caught:
        store.list_at(PODS, then)
    assert caught.value.oldest == store.revision


def test_a_watch_begins_where_it_was_asked_to() -> None:
    store = Store()
    first = store.create(PODS, "a", "x", obj("x"))
    watcher = store.watch(PODS, first.revision)
    store.create(PODS, "a", "y", obj("y"))
    again = store.watch(PODS, 0)
    assert seen(watcher) == [("ADDED", "y", 3)]
    assert seen(again) == [("ADDED", "x", 2), ("ADDED", "y", 3)]


def test_a_watcher_only_hears_of_its_resource_namespace_and_name() -> None:
    store = Store()
    everywhere, here = store.watch(PODS, 1), store.watch(PODS, 1, "a")
    one, other = store.watch(PODS, 1, "a", "x"), store.watch(APPS, 1)
    store.create(PODS, "b", "x", obj("x"))
    assert [w.pending() for w in (everywhere, here, one, other)] == [True, False, False, False]
    store.create(PODS, "a", "y", obj("y"))
    assert [w.pending() for w in (here, one, other)] == [True, False, False]
    store.create(PODS, "a", "x", obj("x"))
    assert [w.pending() for w in (one, other)] == [True, False]


def test_a_watch_from_before_the_history_is_refused() -> None:
    store = Store(history=10)
    for index in range(30):
        store.create(PODS, "a", f"x{index}", obj("x"))
    with pytest.raises(Compacted):
        store.watch(PODS, 2)
    assert seen(store.watch(PODS, store.compacted))[0][2] == store.compacted + 1


def test_a_closed_watcher_is_forgotten() -> None:
    store = Store()
    watcher = store.watch(PODS, 1)
    watcher.close()
    store.create(PODS, "a", "x", obj("x"))
    assert not watcher.pending()
    assert list(store.watchers()) == []
    watcher.close()


def test_progress_is_only_told_when_everything_was_taken() -> None:
    store = Store()
    watcher = store.watch(PODS, 1)
    store.create(APPS, "a", "x", obj("x"))
    assert watcher.progress() == store.revision
    store.create(PODS, "a", "x", obj("x"))
    assert watcher.progress() is None


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    assert to_json({"a": "\ud83d"}).decode() == '{"a":"\ufffd"}'
    assert to_json({"a": "\U0001f600"}).decode() == '{"a":"\U0001f600"}'


steps = st.lists(
    st.tuples(st.sampled_from(["put", "delete"]), st.sampled_from("abc"), st.sampled_from("xyz")), max_size=40
)


@settings(deadline=None, max_examples=60)
@given(steps=steps, history=st.integers(5, 50))
def test_every_kept_revision_lists_what_was_there_then(
    steps: list[tuple[str, str, str]], history: int
) -> None:
    store = Store(history=history)
    states: dict[int, dict[tuple[str, str], Any]] = {store.revision: {}}
    for action, namespace, name in steps:
        record = store.get(PODS, namespace, name)
        if action == "put" and record is None:
            store.create(PODS, namespace, name, obj(name))
        elif action == "put" and record is not None:
            store.update(PODS, record, obj(name))
        elif record is not None:
            store.delete(PODS, record)
        states[store.revision] = {(r.namespace, r.name): r.revision for r in store.current(PODS)[0]}
    for revision, expected in states.items():
        if revision < store.compacted:
            continue
        found = {(r.namespace, r.name): r.revision for r in store.list_at(PODS, revision)}
        assert found == expected
        replayed = dict(expected)
        for event in store.watch(PODS, revision).take():
            key = (event.record.namespace, event.record.name)
            if event.type == "DELETED":
                del replayed[key]
            else:
                replayed[key] = event.revision
        assert replayed == states[store.revision]
