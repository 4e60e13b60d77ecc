"""Durations in Go's notation."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kubeloop.model import Duration, Model
from kubeloop.model.duration import format_duration, parse_duration


class Holder(Model):
    pause: Duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("10s", 10), ("1h30m", 5400), ("1.5h", 5400), ("-2m", -120), ("300ms", 0.3), ("5us", 5e-6),
     ("5µs", 5e-6), ("1500ns", 2e-6), ("+1m0.5s", 60.5), (".5s", 0.5), ("1.s", 1)],
)  # fmt: skip
def test_go_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "1", "s", "1 s", "1d", "1h-1m", "--1s", "1s\n", "99999999999h"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        parse_duration(text)
    with pytest.raises(ValidationError):
        Holder(pause=text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(), "0s"),
        (timedelta(hours=1, minutes=30), "1h30m0s"),
        (timedelta(minutes=1), "1m0s"),
        (timedelta(seconds=1.5), "1.5s"),
        (timedelta(milliseconds=300), "300ms"),
        (timedelta(microseconds=1500), "1.5ms"),
        (timedelta(microseconds=7), "7µs"),
        (timedelta(days=-1), "-24h0m0s"),
    ],
)
def test_durations_print_as_go_prints_them(duration: timedelta, text: str) -> None:
    assert format_duration(duration) == text


@given(st.timedeltas())
def test_every_duration_survives_the_wire(duration: timedelta) -> None:
    held = Holder(pause=duration)

    assert Holder.model_validate(held.to_wire()) == held
