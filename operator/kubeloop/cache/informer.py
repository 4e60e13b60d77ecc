"""`Informer`: a store that follows the server, and handlers that hear of every change."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kubeloop.cache.codec import Codec, Undecodable
from kubeloop.cache.event import Added, Deleted, Event, Modified
from kubeloop.cache.ledger import Notice, Scope
from kubeloop.cache.reflector import Reflector, Selectors, Sink
from kubeloop.cache.store import Store
from kubeloop.client import Client
from kubeloop.clock import Clock, StopEvent, SystemClock
from kubeloop.model import ApiObject, Resource

K = TypeVar("K", bound=ApiObject)

_log = logging.getLogger("kubeloop.cache")

Handler = Callable[[Event[Any], bool], None]
BadHandler = Callable[[str, str, Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class ScopeState:
    """How one namespace (None: all) of an informer is doing."""

    namespace: str | None
    phase: str
    synced: bool
    alive: bool
    error: str | None
    """What keeps it from working, with verb and resource; None while all is well."""
    silence: float | None
    """Seconds since the server last said anything, bookmarks included; None if it never did."""

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.phase}{where}" + (f": {self.error}" if self.error else "")


class Informer(Sink, Generic[K]):
    """Keeps a `Store` of one kind; one reflector thread for each namespace.

    Handlers run on those threads, one at a time, in the order of changes and after the store has them. They
    must be quick (map an object to a key and queue it); one that raises is logged and counted, and disturbs
    neither the others nor the informer.

    `kind` is a class of objects; `metadata_only(kind)` for nothing but their metadata; or a Resource, as
    `Informer[DynamicObject](client, resource)`.
    Without `namespace` and `namespaces` all namespaces are watched. `transform` is applied to each object
    that comes in, once.
    """

    def __init__(
        self,
        client: Client,
        kind: type[K] | Resource,
        namespace: str | None = None,
        *,
        namespaces: Sequence[str] = (),
        label_selector: str | None = None,
        field_selector: str | None = None,
        transform: Callable[[Any], Any] | None = None,
        clock: Clock | None = None,
        streaming: bool = True,
        rng: random.Random | None = None,
    ) -> None:
        self._codec: Codec[K] = Codec(kind, transform)
        self._clock: Clock = clock or SystemClock()
        self.delivery = threading.RLock()
        # Guarded by delivery: _handlers, _bad_handlers, _bad, and the order of what handlers are told.
        self._handlers: list[Handler] = []
        self._bad_handlers: list[BadHandler] = []
        self._bad: dict[str, tuple[Scope, Undecodable]] = {}
        self._synced_condition = threading.Condition()
        self._synced: set[Scope] = set()  # guarded by _synced_condition
        self._on_synced: list[Callable[[Scope], None]] = []
        self.ended = StopEvent()
        """Set when a thread ended without being asked to, see `dead`."""
        self.handler_errors = 0
        self.events_told = 0
        self.undecodable_seen = 0
        scopes = _scopes(self.resource, namespace, namespaces)
        self.store: Store[K] = Store(self._codec, scopes)
        selectors = Selectors(label_selector, field_selector)
        self._reflectors = [
            Reflector(
                client,
                self._codec,
                self.store,
                self,
                scope=scope,
                selectors=selectors,
                clock=self._clock,
                streaming=streaming,
                rng=rng,
            )
            for scope in scopes
        ]

    @property
    def resource(self) -> Resource:
        """What is watched."""
        return self._codec.resource

    @property
    def name(self) -> str:
        """The resource, and whether it is only metadata: one for each informer of a manager."""
        return self._codec.name

    @property
    def kind_name(self) -> str:
        """The kind for people: `WebApp`, `Secret (metadata)`, or the resource if its kind is not known."""
        kind = self.resource.kind
        return (f"{kind} (metadata)" if self._codec.metadata_only else kind) or self.name

    # Handlers

    def add_handler(self, handler: Handler) -> None:
        """`handler(event, initial)` for every change from now on.

        First it is told of everything that is known, as Added with `initial` true; what happens meanwhile
        comes after that, once. It is also true for what the first list of a namespace brings.
        """
        with self.delivery:
            for entry in self.store.known().values():
                self._call(handler, Added(self._codec.read(entry)), True)
            self._handlers.append(handler)

    def on_undecodable(self, handler: BadHandler) -> None:
        """`handler(key, message, metadata)` for each object that its class cannot read, once per version.

        Runs like other handlers. Those that are known already are told at once.
        """
        with self.delivery:
            for _, bad in list(self._bad.values()):
                self._call_bad(handler, bad)
            self._bad_handlers.append(handler)

    @property
    def undecodable(self) -> dict[str, str]:
        """The objects that cannot be read at present, and why. They are not in the store."""
        with self.delivery:
            return {key: bad.message for key, (_, bad) in self._bad.items()}

    def on_synced(self, handler: Callable[[Scope], None]) -> None:
        """`handler(namespace)` once the first list of a namespace (None: of all) was handled to its end. Only
        before `start`."""
        self._on_synced.append(handler)

    # Life

    def start(self) -> None:
        """Start the threads, once."""
        for reflector in self._reflectors:
            reflector.start()

    def stop(self) -> None:
        """Ask the threads to end; they do so at once, whatever they are waiting for."""
        for reflector in self._reflectors:
            reflector.stop()
        with self._synced_condition:
            self._synced_condition.notify_all()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the threads' end for `timeout` seconds in all; whether they have ended."""
        deadline = None if timeout is None else self._clock.monotonic() + timeout
        ended = True
        for reflector in self._reflectors:
            left = None if deadline is None else max(deadline - self._clock.monotonic(), 0.0)
            ended &= reflector.join(left)
        return ended

    def hurry(self) -> None:
        """Whatever was waited for (a CRD, a permission, the server) may be there now: try at once."""
        for reflector in self._reflectors:
            reflector.hurry()

    # State

    @property
    def has_synced(self) -> bool:
        """Whether everything that existed at the start is in the store and all handlers have handled it."""
        return len(self._synced) == len(self._reflectors)

    def has_synced_in(self, namespace: str | None) -> bool:
        """The same of one namespace only; of None: of all that is watched."""
        return namespace in self._synced or self.has_synced

    def wait_synced(self, timeout: float | None = None, stop: StopEvent | None = None) -> bool:
        """Wait until `has_synced`; False after `timeout` seconds, or when `stop` is set."""
        deadline = None if timeout is None else self._clock.monotonic() + timeout
        stop = stop or StopEvent()
        with self._synced_condition, stop.waking(self._synced_condition):
            while not self.has_synced:
                left = None if deadline is None else deadline - self._clock.monotonic()
                if (left is not None and left <= 0) or stop.is_set():
                    return False
                self._clock.wait(self._synced_condition, left)
        return True

    @property
    def scopes(self) -> list[ScopeState]:
        """The state of each namespace."""
        now = self._clock.monotonic()
        return [
            ScopeState(
                namespace=reflector.scope,
                phase=reflector.core.phase.value,
                synced=reflector.scope in self._synced,
                alive=reflector.alive,
                error=reflector.core.failure.text if reflector.core.failure else None,
                silence=None if reflector.core.heard is None else now - reflector.core.heard,
            )
            for reflector in self._reflectors
        ]

    @property
    def state(self) -> str:
        """What it is doing or waiting for, in words; the troubled namespaces if there are any."""
        states = self.scopes
        troubled = [state for state in states if state.error] or [
            state for state in states if not state.synced
        ]
        return "; ".join(str(state) for state in troubled or states[:1])

    @property
    def lists(self) -> int:
        """Lists begun, streaming ones included; after the first of a scope, each is a relist."""
        return sum(reflector.lists for reflector in self._reflectors)

    @property
    def watches(self) -> int:
        """How many watches were begun."""
        return sum(reflector.watches for reflector in self._reflectors)

    @property
    def dead(self) -> bool:
        """Whether a thread ended without being asked to: the process should be restarted."""
        return self.ended.is_set()

    # What reflectors tell (see `Sink`)

    def crashed(self) -> None:
        """One of the threads has ended without being asked to."""
        self.ended.set()

    def tell(self, notices: list[Notice], *, initial: bool) -> None:
        """Called with `delivery` held."""
        for notice in notices:
            event = self._event(notice)
            self.events_told += 1
            for handler in self._handlers:
                self._call(handler, event, initial)

    def synced(self, scope: Scope) -> None:
        """The first list of a scope was told to the end."""
        with self._synced_condition:
            self._synced.add(scope)
            self._synced_condition.notify_all()
        for handler in self._on_synced:
            handler(scope)

    def report_bad(self, scope: Scope, bad: Mapping[str, Undecodable], *, whole: bool) -> None:
        """Called with `delivery` held."""
        if whole:
            for key in [key for key, (owner, _) in self._bad.items() if owner == scope and key not in bad]:
                del self._bad[key]
        for key, report in bad.items():
            known = self._bad.get(key)
            self._bad[key] = (scope, report)
            if known is not None and (known[1].uid, known[1].version) == (report.uid, report.version):
                continue
            self.undecodable_seen += 1
            _log.warning(
                "an object cannot be read",
                extra={"fields": {"resource": self.name, "key": key, "error": report.message}},
            )
            for handler in self._bad_handlers:
                self._call_bad(handler, report)

    def report_good(self, key: str) -> None:
        """Called with `delivery` held."""
        self._bad.pop(key, None)

    def _event(self, notice: Notice) -> Event[K]:
        _, old, new, decoded, own = notice
        if new is None:
            if old is None:
                raise AssertionError("a notice is about something")
            return Deleted(decoded if decoded is not None else self._codec.read(old), own)
        current = decoded if decoded is not None else self._codec.read(new)
        if old is None:
            return Added(current, own)
        before = old
        return Modified(current, lambda: self._codec.read(before), own)

    def _call(self, handler: Handler, event: Event[K], initial: bool) -> None:
        try:
            handler(event, initial)
        except Exception:  # noqa: BLE001 - the user's code: whatever it raises must not end the informer
            self._handler_failed(event.object.key)

    def _call_bad(self, handler: BadHandler, bad: Undecodable) -> None:
        try:
            handler(bad.key, bad.message, bad.metadata)
        except Exception:  # noqa: BLE001 - as above
            self._handler_failed(bad.key)

    def _handler_failed(self, key: str) -> None:
        self.handler_errors += 1
        _log.exception("an event handler failed", extra={"fields": {"resource": self.name, "key": key}})


def _scopes(resource: Resource, namespace: str | None, namespaces: Iterable[str]) -> list[Scope]:
    """The namespaces to watch one by one, or [None] for all of them."""
    if not resource.namespaced:
        return [None]
    listed = dict.fromkeys([*([namespace] if namespace else []), *namespaces])
    return list(listed) or [None]
