"""The schedule of retries (R0.13)."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeloop.backoff import Backoff, PerKeyBackoff


@given(st.integers(1, 10**9), st.floats(0, 1), st.integers())
def test_a_delay_never_exceeds_the_cap_nor_overflows(failures: int, jitter: float, seed: int) -> None:
    """go-anchors 6.14."""
    delay = Backoff(0.005, 1000.0, jitter=jitter).delay(failures, random.Random(seed))

    assert 0 <= delay <= 1000.0


@given(st.integers(1, 60), st.integers())
def test_jitter_spreads_downwards_from_the_exponential_delay(failures: int, seed: int) -> None:
    full = min(60.0, 0.1 * 2 ** (failures - 1))
    delay = Backoff(0.1, 60.0, jitter=0.5).delay(failures, random.Random(seed))

    assert full / 2 <= delay <= full


def test_two_keys_that_fail_together_do_not_retry_together() -> None:
    backoff: PerKeyBackoff[str] = PerKeyBackoff(Backoff(10.0, 60.0), random.Random(1))

    assert backoff.failed("a") != backoff.failed("b")


def test_a_key_that_succeeded_starts_afresh_and_is_not_remembered() -> None:
    backoff: PerKeyBackoff[str] = PerKeyBackoff(Backoff(1.0, 60.0, jitter=0.0))
    backoff.failed("a")
    assert backoff.failed("a") == 2.0
    backoff.forget("a")

    assert len(backoff) == 0
    assert backoff.failures("a") == 0
    assert backoff.failed("a") == 1.0


@pytest.mark.parametrize(
    ("base", "cap", "factor", "jitter"), [(0, 1, 2, 0), (2, 1, 2, 0), (1, 2, 0.5, 0), (1, 2, 2, 1.5)]
)
def test_impossible_settings_are_refused(base: float, cap: float, factor: float, jitter: float) -> None:
    with pytest.raises(ValueError, match="impossible backoff"):
        Backoff(base, cap, factor, jitter)
