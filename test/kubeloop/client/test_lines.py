"""Cutting a stream into lines."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeloop.client import lines
from kubeloop.client.lines import LineSplitter


@given(st.lists(st.text(alphabet="aä鲸🐋\r", max_size=6), max_size=8), st.integers(1, 7))
def test_lines_are_whole_however_they_arrive(texts: list[str], cut: int) -> None:
    """bug report 2"""
    data = "".join(f"{text}\n" for text in texts).encode()
    splitter = LineSplitter()
    found = [line for start in range(0, len(data), cut) for line in splitter.feed(data[start : start + cut])]
    assert [line.decode() for line in found] == [text for text in texts if text]
    assert splitter.unfinished == 0


def test_many_lines_in_one_segment_take_linear_time() -> None:
    """python-peers W9: 21 MiB took 7.6 s"""
    segment = (b"x" * 2600 + b"\n") * 8000
    splitter = LineSplitter()
    began = time.process_time()
    assert len(splitter.feed(segment)) == 8000
    assert time.process_time() - began < 1.0


def test_a_line_in_many_segments_takes_linear_time() -> None:
    splitter = LineSplitter()
    began = time.process_time()
    for _ in range(100_000):
        splitter.feed(b"0123456789")
    assert len(splitter.feed(b"\n")[0]) == 1_000_000
    assert time.process_time() - began < 2.0


def test_an_endless_line_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 100)
    splitter = LineSplitter()
    splitter.feed(b"x" * 99)
    with pytest.raises(ConnectionError):
        splitter.feed(b"xx")
