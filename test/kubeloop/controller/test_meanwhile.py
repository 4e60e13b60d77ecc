"""Questions that wait for the end of a pass."""

from __future__ import annotations

import pytest

from kubeloop.controller import meanwhile
from kubeloop.controller.meanwhile import Meanwhile


def test_a_question_waits_for_the_end_of_the_pass_and_is_asked_once() -> None:
    asked: list[str] = []
    open_questions: Meanwhile[str] = Meanwhile()
    open_questions.begin("a")
    assert open_questions.hold("a", lambda: asked.append("first"))
    assert open_questions.hold("a", lambda: asked.append("second"))
    assert asked == []
    open_questions.end("a")
    open_questions.end("a")
    assert asked == ["first", "second"]


def test_without_a_pass_over_that_very_key_nothing_is_held() -> None:
    open_questions: Meanwhile[str] = Meanwhile()
    open_questions.begin("a")
    assert not open_questions.hold("b", lambda: None)
    open_questions.end("a")
    assert not open_questions.hold("a", lambda: None)


def test_a_question_of_an_earlier_pass_is_none_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(meanwhile, "LIMIT", 2)
    open_questions: Meanwhile[str] = Meanwhile()
    for number in range(2):
        open_questions.begin("a")
        assert open_questions.hold("a", lambda number=number: asked.append(number))  # type: ignore[misc]
        open_questions.end("a")
    assert asked == [0, 1]


def test_in_a_storm_of_events_what_is_too_much_is_asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meanwhile, "LIMIT", 2)
    open_questions: Meanwhile[str] = Meanwhile()
    open_questions.begin("a")
    assert [open_questions.hold("a", lambda: None) for _ in range(3)] == [True, True, False]
