"""The requests of an election: the core's actions as calls of the API, on a connection of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from kubeloop.client import (
    NO_RETRY,
    ApiError,
    Client,
    Conflict,
    Credentials,
    NotFound,
    Response,
    Stream,
    Transport,
    TransportError,
    WatchStream,
    user_agent,
)
from kubeloop.clock import Clock, StopEvent, SystemClock
from kubeloop.leader.actions import Create, Event, Failed, Read, Refused, Seen, Update, Written
from kubeloop.leader.record import LEASES, decode

WATCH_SECONDS = 300
"""How long one watch for a release lasts at most, as the server is asked to end it."""


class LeaseLock:
    """One Lease, reached over `transport`, which should serve nobody else (a pool of two is enough).

    No request is repeated here: the core decides that, and by when.
    """

    def __init__(
        self,
        transport: Transport,
        namespace: str,
        name: str,
        *,
        credentials: Credentials | None = None,
        clock: Clock | None = None,
        stop: StopEvent | None = None,
        agent: str | None = None,
    ) -> None:
        clock = clock or SystemClock()
        self.namespace = namespace
        self.name = name
        self._bounded = _Bounded(transport, clock.monotonic)
        self._client = Client(
            self._bounded,
            credentials=credentials,
            clock=clock,
            stop=stop,
            user_agent=f"{agent or user_agent()} leader-election",
            retry=NO_RETRY,
        )

    def perform(self, action: Read | Create | Update) -> Event:
        """Make the request, and say what came of it, within about `action.timeout` seconds."""
        self._bounded.begin(action.timeout)
        try:
            match action:
                case Read():
                    return Seen(self._client.get(LEASES, self.name, self.namespace))
                case Create(lease):
                    return Written(self._client.create(LEASES, lease))
                case Update(lease):
                    return Written(self._client.replace(LEASES, lease))
        except NotFound as error:
            if isinstance(action, Read) and not error.kind_missing:
                return Seen(None)
            return Refused() if isinstance(action, Update) else Failed(str(error))
        except Conflict as error:
            return Failed(str(error)) if isinstance(action, Read) else Refused()
        except (ApiError, TransportError) as error:
            return Failed(str(error))

    def watch(self) -> WatchStream:
        """What happens to the Lease from now on, beginning with its present state."""
        return self._client.watch(
            LEASES,
            self.namespace,
            field_selector=f"metadata.name={self.name}",
            timeout_seconds=WATCH_SECONDS,
        )

    def close(self) -> None:
        """Close idle connections."""
        self._client.close()


def tells_of_vacancy(line: bytes) -> bool:
    """Whether a line of the watch says that the Lease may be free now."""
    try:
        event: Any = json.loads(line)
    except ValueError:
        return False
    if not isinstance(event, Mapping) or not isinstance(event.get("object"), Mapping):
        return False
    kind = event.get("type")
    return kind == "DELETED" or (kind in ("ADDED", "MODIFIED") and decode(event["object"]).released)


class _Bounded:
    """A transport that gives all tries of one call (a second one follows a 401) one timeout together."""

    def __init__(self, transport: Transport, seconds: Callable[[], float]) -> None:
        self._transport = transport
        self._seconds = seconds
        self._deadline = 0.0

    def begin(self, timeout: float) -> None:
        self._deadline = self._seconds() + timeout

    def request(
        self, method: str, target: str, *, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Response:
        left = min(timeout, self._deadline - self._seconds())
        if left <= 0:
            raise TimeoutError("no time left for another try")
        return self._transport.request(method, target, headers=headers, body=body, timeout=left)

    def stream(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str],
        connect_timeout: float,
        read_timeout: float,
    ) -> Stream:
        return self._transport.stream(
            method, target, headers=headers, connect_timeout=connect_timeout, read_timeout=read_timeout
        )

    def close(self) -> None:
        self._transport.close()
