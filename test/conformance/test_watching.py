"""A watch beside a script: events as they come, and the ends of waiting."""

import queue
from collections.abc import Iterator

import pytest
from conformance.watching import Collector, count, last, never


class Lines:
    """A stream that a test feeds; None ends it."""

    status = 200
    headers: dict[str, str] = {}

    def __init__(self) -> None:
        self._queue: queue.Queue[bytes | None] = queue.Queue()

    def feed(self, *chunks: bytes | None) -> None:
        for chunk in chunks:
            self._queue.put(chunk)

    def chunks(self) -> Iterator[bytes]:
        while (chunk := self._queue.get()) is not None:
            yield chunk

    def close(self) -> None:
        self.feed(None)


def nothing() -> None:
    """No time to move."""


@pytest.fixture
def lines() -> Iterator[Lines]:
    stream = Lines()
    yield stream
    stream.close()


def test_lines_cut_anywhere_become_whole_events(lines: Lines) -> None:
    watch = Collector(lines, "test")
    lines.feed(b'{"n":', b'1}\n{"n":2}\n{"n', b'":3}\n')
    assert watch.take(count(2), 5.0, nothing) == [{"n": 1}, {"n": 2}]
    assert watch.take(count(1), 5.0, nothing) == [{"n": 3}]
    watch.close()


def test_the_last_object_ends_a_taking(lines: Lines) -> None:
    watch = Collector(lines, "test")
    names = ("a", "b", "c")
    lines.feed(*(b'{"object":{"metadata":{"name":"%s"}}}\n' % name.encode() for name in names))
    assert len(watch.take(last("b"), 5.0, nothing)) == 2
    assert len(watch.take(last("c"), 5.0, nothing)) == 1
    watch.close()


def test_the_end_of_the_stream_and_the_end_of_patience_end_a_taking(lines: Lines) -> None:
    watch = Collector(lines, "test")
    lines.feed(b'{"n":1}\n')
    looks: list[int] = []
    assert watch.take(count(2), 0.1, lambda: looks.append(1)) == [{"n": 1}]
    assert looks, "time is moved while nothing comes"
    lines.feed(b'{"n":2}\n{"n":3}', None)
    assert watch.take(never, 5.0, nothing) == [{"n": 2}, {"n": 3}]
    assert watch.ended
    watch.close()
