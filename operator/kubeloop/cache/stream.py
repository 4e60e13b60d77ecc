"""`events`: an informer as a plain iterator, for programs that want nothing more."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from typing import Any, TypeVar, overload

from kubeloop.cache.event import Event
from kubeloop.cache.informer import Informer
from kubeloop.client import Client
from kubeloop.clock import StopEvent
from kubeloop.model import DynamicObject, KubeObject, Resource

Typed = TypeVar("Typed", bound=KubeObject)

BACKLOG = 1024
"""Events that wait for a slow consumer; then the watch is not read on, and the server holds the rest."""


class _Pipe:
    """From the informer's thread to the consumer's."""

    def __init__(self) -> None:
        self._condition = threading.Condition()  # guards both
        self._events: deque[Event[Any]] = deque()
        self._closed = False

    def put(self, event: Event[Any], _initial: bool) -> None:
        with self._condition:
            while len(self._events) >= BACKLOG and not self._closed:
                self._condition.wait()
            self._events.append(event)
            self._condition.notify_all()

    def take(self, stop: StopEvent, informer: Informer[Any]) -> Event[Any] | None:
        """The next event; None when stopped."""
        with self._condition, stop.waking(self._condition), informer.ended.waking(self._condition):
            while not stop.is_set():
                if self._events:
                    self._condition.notify_all()
                    return self._events.popleft()
                if informer.ended.is_set():
                    raise RuntimeError(f"the watch of {informer.resource} has ended by itself")
                self._condition.wait()
            return None

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._condition.notify_all()


@overload
def events(
    client: Client,
    kind: type[Typed],
    namespace: str | None = ...,
    stop: StopEvent | None = ...,
    **options: Any,
) -> Iterator[Event[Typed]]: ...
@overload
def events(
    client: Client, kind: Resource, namespace: str | None = ..., stop: StopEvent | None = ..., **options: Any
) -> Iterator[Event[DynamicObject]]: ...
def events(
    client: Client, kind: Any, namespace: str | None = None, stop: StopEvent | None = None, **options: Any
) -> Iterator[Event[Any]]:
    """Added for everything that exists, then every change as it happens, one at a time and in order.

    Lost connections are taken up again without losing or repeating anything (changes between two connections
    may be seen as one). Ends when `stop` is set, or the iterator is closed. `options` are the informer's.
    """
    never = StopEvent()
    informer = Informer(client, kind, namespace, **options)
    pipe = _Pipe()
    informer.add_handler(pipe.put)
    informer.start()
    try:
        while (event := pipe.take(stop or never, informer)) is not None:
            yield event
    finally:
        pipe.close()
        informer.stop()
        informer.join(1.0)
