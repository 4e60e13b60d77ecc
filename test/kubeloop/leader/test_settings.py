"""Settings are refused with the rule that they break."""

from __future__ import annotations

import math
import socket
from typing import Any

import pytest

from kubeloop.leader import ElectionSettings, new_identity


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"identity": ""}, "identity must not be empty"),
        ({"lease_duration": 10}, "lease duration must be longer than the renew deadline: 10 s is not more"),
        ({"lease_duration": 15.5}, "lease duration must be whole seconds"),
        ({"lease_duration": 2**31}, "lease duration must be whole seconds"),
        (
            {"renew_deadline": 2.4},
            "renew deadline must be longer than 1.2 times the retry period: 2.4 s is not",
        ),
        ({"retry_period": 0}, "retry period must be more than 0 seconds, not 0"),
        ({"renew_deadline": -1}, "renew deadline must be more than 0 seconds, not -1"),
        ({"lease_duration": math.inf}, "lease duration must be more than 0 seconds"),
        ({"retry_period": math.nan}, "retry period must be more than 0 seconds"),
    ],
)
def test_settings_that_do_not_fit_are_refused_with_the_rule(options: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule.replace(".", r"\.")):
        ElectionSettings(**{"identity": "a", **options})


def test_the_defaults_are_client_gos() -> None:
    settings = ElectionSettings("a")
    assert (settings.lease_duration, settings.renew_deadline, settings.retry_period) == (15, 10, 2)
    assert (settings.lease_seconds, settings.request_timeout) == (15, 5)
    assert ElectionSettings("a", 2, 1.5, 0.5).request_timeout == 1


def test_an_identity_is_the_host_and_something_unique() -> None:
    one, other = new_identity(), new_identity()
    assert one != other
    assert one.startswith(f"{socket.gethostname()}_")
