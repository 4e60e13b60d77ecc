"""Whether to try again, and when."""

from __future__ import annotations

import random

import pytest

from kubeloop.backoff import Backoff
from kubeloop.client import NO_RETRY, ApiError, CredentialsError, RetryPolicy, TransportError
from kubeloop.client.errors import api_error
from kubeloop.client.transport import StaleConnection

POLICY = RetryPolicy()


def answer(code: int, retry_after: str = "") -> ApiError:
    return api_error("x", "y", code, b"", {"retry-after": retry_after} if retry_after else {})


def delay(error: ApiError | TransportError, attempt: int = 1, *, repeatable: bool = True) -> float | None:
    return POLICY.delay(attempt, error, repeatable=repeatable, rng=random.Random(1))


@pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 409, 410, 422, 500, 501])
def test_what_would_be_the_same_again_is_not_repeated(code: int) -> None:
    assert delay(answer(code)) is None


@pytest.mark.parametrize("code", [502, 503, 504])
def test_an_uncertain_outcome_is_repeated_only_if_that_does_no_harm(code: int) -> None:
    assert delay(answer(code)) is not None
    assert delay(answer(code, "1"), repeatable=False) is None


def test_429_is_always_repeated() -> None:
    """Nothing was done."""
    assert delay(answer(429), repeatable=False) is not None


def test_500_is_repeated_if_the_server_says_so() -> None:
    assert delay(answer(500, "1")) is not None


@pytest.mark.parametrize("attempt", [1, 3])
def test_retry_after_is_the_answer_to_when(attempt: int) -> None:
    """Not sooner, and no later for the tries that failed before."""
    policy = RetryPolicy(backoff=Backoff(base=1, cap=10, factor=10, jitter=0))
    waits = [
        policy.delay(attempt, answer(429, "2"), repeatable=True, rng=random.Random(n)) or 0 for n in range(50)
    ]
    assert 2 <= min(waits) < max(waits) <= 2.5


def test_a_retry_after_that_is_too_long_is_left_to_the_caller() -> None:
    """Coming back sooner than told would be refused again, and a worker must not be kept."""
    assert delay(answer(429, "10")) is not None
    assert delay(answer(429, "11")) is None
    assert delay(answer(503, "1000000000000")) is None


def test_a_lost_connection_is_repeated_only_if_that_does_no_harm() -> None:
    lost = TransportError("x", "y", "reset")
    assert delay(lost) is not None
    assert delay(lost, repeatable=False) is None
    assert delay(TransportError("x", "y", "refused", sent=False), repeatable=False) is not None


def test_a_timeout_is_left_to_the_caller() -> None:
    """It has waited long enough: eight objects whose requests hang must not keep all workers for minutes."""
    late = TransportError("x", "y", "timed out")
    late.__cause__ = TimeoutError("timed out")
    assert delay(late) is None


def test_an_idle_connection_that_was_closed_is_replaced_at_once() -> None:
    stale = TransportError("x", "y", "closed")
    stale.__cause__ = StaleConnection()
    assert delay(stale) == 0
    assert delay(stale, repeatable=False) is None
    assert delay(stale, 2) != 0


def test_credentials_have_a_pace_of_their_own() -> None:
    assert delay(CredentialsError("x", "y", "plugin failed")) is None


def test_it_gives_up_in_the_end_and_waits_differ() -> None:
    waits = [POLICY.delay(1, answer(503), repeatable=True, rng=random.Random(seed)) for seed in range(20)]
    assert len(set(waits)) == 20
    assert delay(answer(503), POLICY.attempts) is None
    assert NO_RETRY.delay(1, answer(429), repeatable=True, rng=random.Random(1)) is None
