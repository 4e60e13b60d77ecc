"""Behaviours 3 to 7: lists and watches of an informer, against the sandbox and its faults."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kubeloop.cache import Added, Deleted, Event, Informer, Modified
from kubeloop.client import Client
from kubeloop.model import DynamicObject, Resource

MAPS = Resource("", "v1", "configmaps", "ConfigMap")


class Watched:
    """An informer of ConfigMaps, with all that its handler and its server saw."""

    def __init__(self, stage: Any, wire: Any, *, streaming: bool = True) -> None:
        self.stage, self.wire = stage, wire
        client = Client(wire, clock=stage.clock)
        self.informer = Informer[DynamicObject](client, MAPS, clock=stage.clock, streaming=streaming)
        self.told: list[tuple[str, str, bool]] = []
        self.held: list[bool] = []
        self.informer.add_handler(self._handle)
        self._mark = 0

    def _handle(self, event: Event[DynamicObject], initial: bool) -> None:
        self.told.append((type(event).__name__, event.object.name, initial))
        self.held.append((event.object.key in self.informer.store) is not isinstance(event, Deleted))

    def start(self) -> Watched:
        self.informer.start()
        self.stage.until(lambda: self.informer.has_synced)
        self._mark = len(self.wire.sent)
        return self

    def put(self, name: str, number: int = 0) -> int:
        """Create or change a ConfigMap; its version."""
        document = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default"},
            "data": {"number": str(number)},
        }
        return int(self.stage.sandbox.apply(document)["metadata"]["resourceVersion"])

    def drop(self, name: str) -> None:
        self.stage.sandbox.delete("configmaps", name, "default")

    @property
    def resumed(self) -> list[str]:
        """From where its watches began since the start, streaming lists left out."""
        watches = [s for s in self.wire.sent[self._mark :] if s.verb == "watch"]
        return [s.query["resourceVersion"] for s in watches if "sendInitialEvents" not in s.query]

    @property
    def lists(self) -> int:
        """Without those of one object, which only ask for the server's version (docs/design/restore.md)."""
        plain = [s for s in self.wire.of("list") if s.query["limit"] != "1"]
        return len(plain) + sum("sendInitialEvents" in s.query for s in self.wire.of("watch"))


@pytest.fixture
def watch(stage: Any, make_wire: Any) -> Iterator[Callable[..., Watched]]:
    made: list[Watched] = []

    def make(**options: Any) -> Watched:
        made.append(Watched(stage, make_wire(), **options))
        return made[-1]

    yield make
    stage.sandbox.faults.clear()
    for each in made:
        each.informer.stop()
        assert each.informer.join(5)
        assert not each.informer.dead


def test_a_watch_that_times_out_goes_on_where_it_was(stage: Any, watch: Any) -> None:
    """Behaviour 3: the server's timeout of a watch is resumed from the last version, without a list."""
    seen = watch().start()
    newest = seen.put("a")
    stage.pass_time(1300, step=5)  # watches last 5 to 10 minutes
    assert len(seen.resumed) >= 2
    assert all(int(version) >= newest for version in seen.resumed)
    assert seen.lists == 1
    asked = [s.at for s in seen.wire.of("watch")][-3:]
    assert all(300 <= later - earlier <= 605 for earlier, later in itertools.pairwise(asked))
    seen.put("b")
    stage.settle()
    assert seen.told == [("Added", "a", False), ("Added", "b", False)]


@pytest.mark.parametrize(
    "effect",
    [
        pytest.param({"status": 429, "retry_after": 1}, id="429"),
        pytest.param({"refuse": True}, id="refused"),
        pytest.param({"status": 500}, id="500"),
        pytest.param({"status": 503}, id="503"),
        pytest.param({"status": 504}, id="504"),
        pytest.param({"reset": True}, id="reset"),
    ],
)
def test_a_server_in_trouble_is_asked_again_for_the_watch_and_not_for_a_list(
    stage: Any, watch: Any, effect: dict[str, Any]
) -> None:
    """Behaviour 3: 429 and refused connections open the watch again from the same version. client-go lists
    anew after any other error; here those of an unwell server are resumed too (go-anchors 5b)."""
    seen = watch().start()
    newest = seen.put("a")
    stage.pass_time(2)
    fault = stage.sandbox.faults.add(verb="watch", resource="configmaps", count=5, **effect)
    stage.cut("configmaps")
    stage.settle()
    seen.put("b")
    stage.until(lambda: len(seen.told) == 2, within=90)

    assert fault.fired == 5
    assert set(seen.resumed) == {str(newest)}
    assert seen.lists == 1


@pytest.mark.parametrize("where", ["when opened", "in the stream"])
@pytest.mark.parametrize("streaming", [True, False], ids=["streaming list", "list"])
def test_an_expired_version_leads_to_one_consistent_list(
    stage: Any, watch: Any, where: str, streaming: bool
) -> None:
    """Behaviour 3: 410 leads to a list. Differs from client-go's at the last version first, from the watch
    cache: ours asks for what is true now, which can neither be too old nor too new (docs/behaviours.md)."""
    seen = watch(streaming=streaming).start()
    seen.put("a")
    seen.put("b")
    stage.settle()
    if where == "in the stream":
        stage.sandbox.faults.add(verb="watch", resource="configmaps", gone_after=0, after=0, count=1)
        stage.pass_time(2)
    else:
        stage.sandbox.faults.add(verb="watch", resource="configmaps", status=410, count=1)
        stage.pass_time(2)
    stage.cut("configmaps")
    began = stage.time
    stage.settle()
    seen.drop("a")
    stage.until(lambda: len(seen.told) == 3, within=3)

    assert seen.lists == 2
    assert seen.told[2] == ("Deleted", "a", False)
    last = [s for s in seen.wire.of("list", since=began) if s.query["limit"] != "1"]
    assert all("resourceVersion" not in s.query for s in last)
    streams = [s for s in seen.wire.of("watch", since=began) if "sendInitialEvents" in s.query]
    assert all(s.query.get("resourceVersion", "") == "" for s in streams)
    assert len(last) + len(streams) == 1


def test_the_versions_of_initial_events_are_no_place_to_resume_from(stage: Any, watch: Any) -> None:
    """Behaviour 4: the ADDED events of a stream that begins with the state come in no order of versions."""
    seen = watch()
    for name in ("z", "m", "a"):  # so the last event of the stream has the oldest version
        seen.put(name)
    stage.make_noise()
    fault = stage.sandbox.faults.add(verb="watch", resource="configmaps", reset_after=3, count=1)
    seen.informer.start()
    stage.settle()
    assert fault.fired == 1
    assert not seen.informer.has_synced
    assert seen.told == []
    stage.until(lambda: seen.informer.has_synced, within=5)

    newest = stage.sandbox.backend.store.revision
    assert all(int(version) >= newest for version in seen.resumed)
    assert sorted(seen.told) == [("Added", name, True) for name in "amz"]
    stage.pass_time(2)
    stage.cut("configmaps")
    stage.settle()
    assert seen.resumed[-1] == str(newest), "the list's own version is"


def test_a_bookmark_moves_the_version_and_tells_no_handler(stage: Any, watch: Any) -> None:
    """Behaviour 4: bookmarks advance the version with no handler call."""
    seen = watch().start()
    seen.put("a")
    stage.settle()
    told, events = len(seen.told), seen.informer.events_told
    stage.make_noise()
    stage.settle()
    newest = stage.sandbox.backend.store.revision
    stage.pass_time(61)
    stage.cut("configmaps")
    stage.settle()

    assert seen.resumed[-1] == str(newest)
    assert seen.informer.store.resource_version >= newest
    assert (len(seen.told), seen.informer.events_told) == (told, events)


def test_deletions_that_were_missed_are_told_after_a_relist(stage: Any, watch: Any) -> None:
    """Behaviour 5: a relist tells a deletion for every key that is gone, with the last known object, when the
    store is up to date, and before what is new.

    Differs from client-go, where a new object under an old name comes as an update: here as a deletion and an
    addition, so that nobody has to compare UIDs (kubeloop/cache/ledger.py).
    """
    seen = watch().start()
    for name in ("gone1", "gone2", "same", "anew", "changed"):
        seen.put(name)
    stage.pass_time(2)
    before = {thing.name: thing.uid for thing in seen.informer.store.list()}
    objects: dict[tuple[str, str], Any] = {}
    seen.informer.add_handler(
        lambda event, _: objects.update({(type(event).__name__, event.object.name): event})
    )
    del seen.told[:], seen.held[:]
    with stage.sandbox.faults.add(path="/api/v1", refuse=True):
        stage.cut("configmaps")
        stage.settle()
        for name in ("gone1", "gone2", "anew"):
            seen.drop(name)
        seen.put("anew", 7)
        seen.put("changed", 8)
        seen.put("added")
        stage.make_noise()
        stage.sandbox.compact()
    stage.until(lambda: ("Added", "added", False) in seen.told, within=60)

    kinds = [kind for kind, name, _ in seen.told]
    assert kinds == ["Deleted"] * 3 + [kind for kind in kinds if kind != "Deleted"]
    assert {(kind, name) for kind, name, _ in seen.told} == {
        ("Deleted", "gone1"),
        ("Deleted", "gone2"),
        ("Deleted", "anew"),
        ("Added", "anew"),
        ("Modified", "changed"),
        ("Added", "added"),
    }
    deleted = objects["Deleted", "gone1"]
    assert isinstance(deleted, Deleted)
    assert deleted.object["data"]["number"] == "0"
    assert objects["Deleted", "anew"].object.uid == before["anew"]
    fresh, changed = objects["Added", "anew"], objects["Modified", "changed"]
    assert isinstance(fresh, Added)
    assert fresh.object.uid != before["anew"]
    assert isinstance(changed, Modified)
    assert (changed.old["data"]["number"], changed.object["data"]["number"]) == ("0", "8")
    # "anew" is in the store again when its deletion is told: the store is as the list has it.
    assert [held for held, (_, name, _) in zip(seen.held, seen.told, strict=True) if name != "anew"].count(
        False
    ) == 0


def test_a_streaming_list_that_does_not_end_is_given_up(stage: Any, watch: Any) -> None:
    """Behaviour 6: the bookmark that ends a streaming list has a deadline, then a list is made (client-go
    waits for ever, kubernetes/kubernetes#140890)."""
    seen = watch()
    for name in ("a", "b", "c"):
        seen.put(name)
    fault = stage.sandbox.faults.add(verb="watch", resource="configmaps", silence_after=3)
    seen.informer.start()
    took = stage.until(lambda: seen.informer.has_synced, within=30)

    assert 9 <= took <= 15
    assert len(seen.wire.of("list")) == 1
    assert sorted(name for _, name, _ in seen.told) == ["a", "b", "c"]
    fault.remove()


@pytest.mark.parametrize(
    ("status", "within"), [(400, 0.0), (406, 0.0), (422, 0.0), (500, 2.0), (501, 2.0), (503, 2.0)]
)
def test_where_streaming_lists_are_not_supported_a_list_follows(
    stage: Any, watch: Any, status: int, within: float
) -> None:
    """Behaviour 6: errors of a server that does not know streaming lists fall back to a list at once; those
    of one that may just be unwell after the first backoff."""
    seen = watch()
    seen.put("a")
    stage.sandbox.faults.add(verb="watch", resource="configmaps", status=status)
    seen.informer.start()
    took = stage.until(lambda: seen.informer.has_synced, within=30, step=0.05)

    assert took <= within
    assert len(seen.wire.of("list")) == 1
    stage.sandbox.faults.clear()
    seen.put("b")
    stage.until(lambda: ("Added", "b", False) in seen.told, within=35)


@pytest.mark.parametrize("events", [0, 1])
def test_a_watch_on_which_nothing_comes_is_ended(stage: Any, watch: Any, events: int) -> None:
    """Behaviour 7: a half-open connection ends by a read deadline, as the peer has vanished without a word.

    Bookmarks come every minute, so 150 s of silence are enough. A watch on which nothing ever came is
    followed by a list: that is how a server restored from a backup looks.
    """
    seen = watch().start()
    stage.pass_time(2)
    stage.sandbox.faults.add(verb="watch", resource="configmaps", silence_after=events, count=1)
    stage.cut("configmaps")
    stage.settle()
    for number in range(events):
        seen.put("heard", number)
        stage.settle()
    began = stage.time
    seen.put("missed")
    told = stage.until(lambda: ("Added", "missed", False) in seen.told, within=200, step=1)

    assert 149 <= told <= 160
    assert stage.time - began <= 160
    assert seen.lists == (1 if events else 2)
