"""Whether and when to try a request again: a decision without clock, thread or I/O."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from kubeloop.backoff import Backoff, as_told
from kubeloop.client.errors import ApiError, CredentialsError, TransportError
from kubeloop.client.transport import StaleConnection

REJECTED = frozenset({429})
"""The server said no before doing anything: any request may be repeated."""

UNCERTAIN = frozenset({502, 503, 504})
"""The request may or may not have been carried out: only what is repeatable may be repeated."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most `attempts` tries of one request.

    Waits are exponential with jitter, or what the server's Retry-After says. If that is more than
    `longest_wait` seconds, the caller has to wait: a worker has other keys to see to, and its queue has a
    backoff of its own.
    """

    attempts: int = 4
    backoff: Backoff = field(default=Backoff(base=0.1, cap=5.0))
    longest_wait: float = 10.0

    def delay(
        self, attempt: int, error: ApiError | TransportError, *, repeatable: bool, rng: random.Random
    ) -> float | None:
        """Seconds to wait after the `attempt`-th try (from 1) failed with `error`; None to give up."""
        if attempt >= self.attempts or not self._may_repeat(error, repeatable):
            return None
        if attempt == 1 and isinstance(error.__cause__, StaleConnection):
            return 0.0  # says nothing about the server, which just tidied up idle connections
        if isinstance(error, ApiError) and error.retry_after is not None:
            if error.retry_after > self.longest_wait:
                return None
            return max(as_told(error.retry_after, rng), self.backoff.base)
        return min(self.backoff.delay(attempt, rng), self.longest_wait)

    @staticmethod
    def _may_repeat(error: ApiError | TransportError, repeatable: bool) -> bool:
        if isinstance(error, CredentialsError):
            return False  # the credential source has its own pace
        if isinstance(error, TransportError):
            if isinstance(error.__cause__, TimeoutError):
                return False  # it has cost half a minute; four of them would keep a worker for two
            return repeatable or not error.sent
        if error.code in REJECTED:
            return True
        # A 500 is only worth it when the server says so: the same request meets the same bug.
        return repeatable and (
            error.code in UNCERTAIN or (error.code >= 500 and error.retry_after is not None)
        )


NO_RETRY = RetryPolicy(attempts=1)
"""For callers with a schedule of their own: reflectors, leader election."""
