"""Events: which are written, and that nothing waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from kubeloop.client import Forbidden, NotFound, TransportError
from kubeloop.clock import FakeClock
from kubeloop.model import Deployment
from kubeloop.observe.events import (
    BURST,
    QUEUE_SIZE,
    REFILL,
    SERIES_END,
    TOTAL_BURST,
    Again,
    Create,
    EventAggregator,
    EventRecorder,
    Happening,
)


def happening(name: str = "hello", note: str = "a note", reason: str = "Created") -> Happening:
    return Happening("example.com/v1", "WebApp", "default", name, f"uid-{name}", reason, note, False, "Apply")


class TestAggregation:
    def test_the_first_is_created_the_second_makes_a_series_then_it_is_told_when_it_has_doubled(self) -> None:
        """A person must not read `x2` about what has happened a hundred times."""
        aggregator = EventAggregator()
        first, *more = (aggregator.decide(happening(), float(n)) for n in range(100))

        assert isinstance(first, Create)
        assert [each for each in more if each] == [Again(first.name, n) for n in (2, 4, 8, 16, 32, 64)]

    def test_a_series_is_refreshed_now_and_then(self) -> None:
        aggregator = EventAggregator()
        told = [aggregator.decide(happening(), n * SERIES_END) for n in range(30)]
        counts = [each.count for each in told if isinstance(each, Again)]

        # After 8 it is every half hour: sooner than the next doubling.
        assert counts == [2, 4, 8, 13, 18, 23, 28]

    def test_after_a_pause_it_is_a_new_event(self) -> None:
        aggregator = EventAggregator()
        first = aggregator.decide(happening(), 0.0)
        later = aggregator.decide(happening(), SERIES_END + 1)

        assert isinstance(first, Create)
        assert isinstance(later, Create)
        assert first.name != later.name

    def test_a_different_note_is_a_different_event(self) -> None:
        """client-go's newer recorder loses it."""
        aggregator = EventAggregator()
        aggregator.decide(happening(note="one"), 0.0)

        assert isinstance(aggregator.decide(happening(note="two"), 1.0), Create)

    def test_one_object_gets_a_bounded_number_whatever_happens(self) -> None:
        """kubernetes#47366: a failure whose text changes each time, for an hour."""
        aggregator = EventAggregator()
        written = [aggregator.decide(happening(note=f"try {n}"), float(n)) for n in range(3600)]

        assert sum(each is not None for each in written) <= BURST + 3600 / REFILL
        assert isinstance(aggregator.decide(happening("other"), 3600.0), Create)

    def test_a_name_is_a_legal_name_for_every_object(self) -> None:
        for name in ("a" * 253, "a" * 229 + ".b"):
            decision = EventAggregator().decide(happening(name), 0.0)
            assert isinstance(decision, Create)
            assert len(decision.name) <= 253
            assert ".." not in decision.name


class FakeClient:
    """Takes events; `hold` makes it hang, `error` fail."""

    def __init__(self) -> None:
        self.created: list[Mapping[str, Any]] = []
        self.patched: list[tuple[str, Mapping[str, Any]]] = []
        self.error: Exception | None = None
        self.hold = threading.Event()
        self.hold.set()

    def create(self, _resource: Any, obj: Mapping[str, Any]) -> Mapping[str, Any]:
        self.hold.wait(10)
        if self.error is not None:
            raise self.error
        self.created.append(obj)
        return obj

    def patch(self, _resource: Any, name: str, _namespace: str, patch: Any) -> None:
        if self.error is not None:
            raise self.error
        self.patched.append((name, patch.document))


def deployment(name: str = "hello") -> Deployment:
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": "7"}
    return Deployment.model_validate(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {}}
    )


APP = deployment()


@pytest.fixture
def client() -> FakeClient:
    return FakeClient()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def recorder(client: FakeClient, clock: FakeClock) -> Iterator[EventRecorder]:
    made = EventRecorder(client, "example.com/test", "pod-1", clock=clock)  # type: ignore[arg-type]
    made.start()
    yield made
    client.hold.set()
    made.stop()
    assert made.join(5)


def outcomes(recorder: EventRecorder) -> dict[str, float]:
    return {labels[0]: count for labels, count in recorder.read() if count}


def wait_for(holds: Callable[[], object]) -> None:
    pause = threading.Event()
    for _ in range(500):
        if holds():
            return
        pause.wait(0.01)
    pytest.fail("waited in vain")


def test_an_event_says_what_happened_to_whom(recorder: EventRecorder, client: FakeClient) -> None:
    recorder.emit(APP, "Repaired", "Repaired Deployment hello", action="Apply")
    wait_for(lambda: client.created)
    (event,) = client.created

    assert event["regarding"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "namespace": "shop",
        "name": "hello",
        "uid": "uid-hello",
    }
    assert event["metadata"]["namespace"] == "shop"
    assert event["metadata"]["name"].startswith("hello.")
    assert event["eventTime"] == "2026-01-01T00:00:00.000000Z"
    assert (event["type"], event["reason"], event["action"]) == ("Normal", "Repaired", "Apply")
    assert (event["reportingController"], event["reportingInstance"]) == ("example.com/test", "pod-1")


def test_emitting_never_waits_and_never_raises(recorder: EventRecorder, client: FakeClient) -> None:
    """kubernetes#47366: failing Event writes must not fail a reconcile; nor may slow ones slow it."""
    client.hold.clear()
    for n in range(QUEUE_SIZE + 100):
        recorder.emit(APP, "Failed", f"try {n}")

    assert outcomes(recorder)["dropped"] >= 99


@pytest.mark.parametrize(
    "error", [TransportError("create", "events", ConnectionError("gone")), RuntimeError("not elected")]
)
def test_a_failing_write_is_counted_and_the_next_one_is_tried(
    recorder: EventRecorder, client: FakeClient, error: Exception
) -> None:
    client.error = error
    recorder.emit(APP, "Created", "one")
    wait_for(lambda: outcomes(recorder) == {"failed": 1})
    client.error = None
    recorder.emit(APP, "Created", "one")

    wait_for(lambda: outcomes(recorder) == {"failed": 1, "written": 1})
    assert len(client.created) == 1


def refused(reason: str = "") -> Forbidden:
    details = {"causes": [{"reason": reason}]} if reason else {}
    return Forbidden("create", "events", 403, {"code": 403, "reason": "Forbidden", "details": details})


def test_a_server_that_refuses_is_complained_about_once_until_it_takes_one_again(
    recorder: EventRecorder, client: FakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    """Without the right to write Events an operator works, and says so; not with each of them."""
    client.error = refused()
    for n in range(1, 6):
        recorder.emit(APP, "Created", f"try {n}")
        wait_for(lambda n=n: outcomes(recorder).get("failed") == n)
    assert [record.message for record in caplog.records] == ["events cannot be written, going on without"]
    client.error = None
    recorder.emit(APP, "Created", "works")
    wait_for(lambda: outcomes(recorder).get("written") == 1)
    client.error = refused()
    recorder.emit(APP, "Created", "refused again")

    wait_for(lambda: len(caplog.records) == 2)


@pytest.mark.parametrize("error", [refused("NamespaceTerminating"), RuntimeError("not elected")])
def test_what_is_nobodys_fault_is_no_complaint(
    recorder: EventRecorder, client: FakeClient, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """A namespace that is being deleted, and a process that lost its lease."""
    client.error = error
    recorder.emit(APP, "Created", "one")
    wait_for(lambda: outcomes(recorder) == {"failed": 1})

    assert caplog.records == []


def test_a_series_whose_event_has_expired_begins_anew(recorder: EventRecorder, client: FakeClient) -> None:
    recorder.emit(APP, "Created", "one")
    wait_for(lambda: client.created)
    client.error = NotFound("patch", "events", 404, {"code": 404, "reason": "NotFound"})
    recorder.emit(APP, "Created", "one")
    wait_for(lambda: outcomes(recorder) == {"written": 1, "failed": 1})
    client.error = None
    recorder.emit(APP, "Created", "one")

    wait_for(lambda: len(client.created) == 2)


def test_a_flood_over_many_objects_is_spread_over_time(
    recorder: EventRecorder, client: FakeClient, clock: FakeClock
) -> None:
    """Thousands of new objects at once must not double the load on the server."""
    for n in range(TOTAL_BURST + 10):
        recorder.emit(deployment(f"app-{n}"), "Failed", "Failed", warning=True)
    wait_for(lambda: len(client.created) == TOTAL_BURST)
    clock.advance(1.0)

    wait_for(lambda: len(client.created) == TOTAL_BURST + 5)


def test_in_a_flood_what_is_no_warning_is_dropped_and_leaves_no_trickle(
    recorder: EventRecorder, client: FakeClient, clock: FakeClock
) -> None:
    for n in range(TOTAL_BURST + 10):
        recorder.emit(deployment(f"app-{n}"), "Created", "Created it")
    wait_for(lambda: outcomes(recorder) == {"written": TOTAL_BURST, "dropped": 10})
    clock.advance(60.0)
    recorder.emit(deployment("later"), "Created", "Created it")

    wait_for(lambda: len(client.created) == TOTAL_BURST + 1)


def test_a_note_is_cut_to_what_the_server_takes(recorder: EventRecorder, client: FakeClient) -> None:
    recorder.emit(APP, "Failed", "ü" * 2000)
    wait_for(lambda: client.created)

    note = client.created[0]["note"]
    assert len(note.encode()) <= 1024
    assert note.endswith("...")


def test_what_waits_at_the_end_is_still_written_if_it_may_be(client: FakeClient, clock: FakeClock) -> None:
    recorder = EventRecorder(client, "example.com/test", "pod-1", clock=clock)  # type: ignore[arg-type]
    recorder.emit(APP, "Created", "one")
    recorder.start()
    recorder.stop()
    assert recorder.join(5)
    recorder.emit(APP, "Created", "too late")

    assert len(client.created) == 1
    assert outcomes(recorder) == {"written": 1, "dropped": 1}
