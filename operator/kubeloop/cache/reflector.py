"""`Reflector`: keeps one scope of a store like the server, by doing what `ReflectorCore` says."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kubeloop.cache.codec import Candidate, Codec, Undecodable, raw_item
from kubeloop.cache.core import (
    READ_TIMEOUT,
    Action,
    Check,
    ListPage,
    Phase,
    ReflectorCore,
    Verdict,
    Wait,
    Watch,
)
from kubeloop.cache.failure import Failure, Kind, classify
from kubeloop.cache.ledger import Notice, Scope
from kubeloop.cache.lines import NotAnEvent, read_bookmark, read_error, split_event
from kubeloop.cache.store import HOT, Store
from kubeloop.client import NO_RETRY, ApiError, Client, TransportError, WatchStream
from kubeloop.client.cancel import Cancel
from kubeloop.clock import Clock
from kubeloop.model import ApiObject
from kubeloop.thread import ThreadOwner

K = TypeVar("K", bound=ApiObject)

_log = logging.getLogger("kubeloop.cache")


@dataclass(frozen=True, slots=True)
class Selectors:
    """Which objects of the kind; as the API spells selectors."""

    label: str | None = None
    field: str | None = None


class Sink:
    """Where a reflector's findings go. `delivery` is held while the store changes and the news is told, so
    that all handlers hear of changes in the order in which they happened."""

    delivery: AbstractContextManager[Any]

    def tell(self, notices: list[Notice], *, initial: bool) -> None:
        raise NotImplementedError

    def synced(self, scope: Scope) -> None:
        """The first list of a scope was told to the end."""
        raise NotImplementedError

    def report_bad(self, scope: Scope, bad: Mapping[str, Undecodable], *, whole: bool) -> None:
        """Objects that cannot be read; `whole` if that is all of the scope."""
        raise NotImplementedError

    def report_good(self, key: str) -> None:
        """An object that can be read, or is gone."""
        raise NotImplementedError

    def crashed(self) -> None:
        """The thread has ended by a bug of ours; `Reflector.crash` says which."""
        raise NotImplementedError


class Reflector(ThreadOwner, Generic[K]):
    """One thread, one list and watch. `stop` ends its current wait, request or watch."""

    def __init__(
        self,
        client: Client,
        codec: Codec[K],
        store: Store[K],
        sink: Sink,
        *,
        scope: Scope,
        selectors: Selectors,
        clock: Clock,
        streaming: bool = True,
        rng: random.Random | None = None,
    ) -> None:
        what = f"{codec.resource.plural}-metadata" if codec.metadata_only else codec.resource.plural
        super().__init__(f"informer-{what}-{scope}" if scope else f"informer-{what}", clock)
        self.core = ReflectorCore(streaming=streaming, rng=rng)
        self.scope = scope
        self._client = client
        self._codec = codec
        self._store = store
        self._sink = sink
        self._selectors = selectors
        # Guarded by _condition.
        self._hurried = False
        self._cancel: Cancel | None = None
        self._found: dict[str, Candidate[K]] = {}
        self._spoiled: dict[str, Undecodable] = {}
        self._began = 0
        self._first = True
        self._shown: Kind | None = None  # the trouble that was logged
        self.lists = 0
        self.watches = 0
        self.crash: BaseException | None = None
        """What ended the thread, if it was not `stop`: a bug of ours, and a reason to fail liveness."""

    def hurry(self) -> None:
        """Try again now, if waiting to."""
        with self._condition:
            self._hurried = True
            self._condition.notify_all()

    def _interrupt(self) -> None:
        with self._condition:
            cancel = self._cancel
        if cancel is not None:
            cancel.cancel()

    def _run(self) -> None:
        try:
            while self.step():
                pass
        except BaseException as error:
            self.crash = error
            self._sink.crashed()
            _log.critical("an informer's thread has ended", exc_info=True, extra=self._fields())
            raise

    def step(self) -> bool:
        """Do the next thing; False once stopped."""
        action: Action = self.core.next_action(self._clock.monotonic())
        match action:
            case Wait():
                self._wait(action.seconds)
            case ListPage():
                self._list(action)
            case Watch():
                self._watch(action)
            case Check():
                self._check()
        self._show_trouble()
        return not self._stopping

    def _wait(self, seconds: float) -> None:
        deadline = self._clock.monotonic() + seconds
        with self._condition:
            while not (self._stopping or self._hurried):
                left = deadline - self._clock.monotonic()
                if left <= 0:
                    break
                self._clock.wait(self._condition, left)
            if self._hurried:
                self._hurried = False
                self.core.hurry()

    # Lists

    def _list(self, action: ListPage) -> None:
        if not action.continue_:
            self.lists += 1
            self._begin()
        cancel = self._cancellable()
        try:
            page = self._client.list_page(
                self._codec.resource,
                self.scope,
                limit=action.limit,
                continue_=action.continue_ or None,
                label_selector=self._selectors.label,
                field_selector=self._selectors.field,
                metadata_only=self._codec.metadata_only,
                retry=NO_RETRY,
                cancel=cancel,
            )
        except (ApiError, TransportError) as error:
            if not self._stopping and self.core.on_list_failed(classify(error), self._now()) is Verdict.AGAIN:
                self._begin()
            return
        for item in page.items:
            self._collect(self._codec.candidate(raw_item(item)))
        self._conclude(
            self.core.on_page(page.resource_version, page.continue_, self._now()), page.resource_version
        )

    def _check(self) -> None:
        cancel = self._cancellable()
        try:
            page = self._client.list_page(
                self._codec.resource, self.scope, limit=1, metadata_only=True, retry=NO_RETRY, cancel=cancel
            )
        except (ApiError, TransportError) as error:
            if not self._stopping:
                self.core.on_check_failed(classify(error), self._now())
            return
        self.core.on_checked(page.resource_version, self._now())

    def _begin(self) -> None:
        self._found = {}
        self._spoiled = {}
        self._began = self._store.begin_list()

    def _collect(self, found: Candidate[K] | Undecodable | None) -> None:
        match found:
            case Candidate():
                if len(self._found) >= HOT:
                    found.lighten()
                self._found[found.key] = found
            case Undecodable():
                self._spoiled[found.key] = found
            case None:
                _log.error("the server lists something that is no object", extra=self._fields())

    def _conclude(self, verdict: Verdict | None, version: str) -> None:
        if verdict is Verdict.AGAIN:
            self._begin()
        if verdict is not Verdict.TAKE:
            return
        found, spoiled = self._found, self._spoiled
        self._found, self._spoiled = {}, {}
        with self._sink.delivery:
            notices = self._store.replace(self.scope, found, spoiled, int(version), self._began)
            del found
            self._sink.report_bad(self.scope, spoiled, whole=True)
            self._sink.tell(notices, initial=self._first)
        if self._first:
            self._first = False
            self._sink.synced(self.scope)

    # Watches

    def _watch(self, action: Watch) -> None:
        self.watches += 1
        if action.initial:
            self.lists += 1
            self._begin()
        stream = self._client.watch(
            self._codec.resource,
            self.scope,
            resource_version=action.version,
            timeout_seconds=action.timeout_seconds,
            initial_events=action.initial,
            label_selector=self._selectors.label,
            field_selector=self._selectors.field,
            metadata_only=self._codec.metadata_only,
            read_timeout=action.read_timeout,
        )
        self._cancellable().attach(stream)
        opened = False
        failure: Failure | None = None
        try:
            stream.open()
            opened = True
            self.core.on_open(self._now())
            for line in stream:
                if not self._on_line(line, stream):
                    return
                if self.core.overdue(self._now()):
                    failure = Failure(Kind.SILENT, "the bookmark that ends a streaming list does not come")
                    break
        except (ApiError, TransportError) as error:
            failure = classify(error, in_stream=opened)
        except NotAnEvent as error:
            failure = Failure(Kind.BROKEN, str(error))
        finally:
            stream.close()
        if not self._stopping:
            self.core.on_watch_ended(failure, self._now())

    def _on_line(self, line: bytes, stream: WatchStream) -> bool:
        """Take in one event; False if the watch must not go on. Raises `ApiError` for an ERROR event and
        `NotAnEvent` for anything else than an event."""
        kind, raw = split_event(line)
        match kind:
            case "ADDED" | "MODIFIED":
                self._on_object(self._store.candidate(raw))
            case "DELETED":
                self._on_deleted(self._store.candidate(raw))
            case "BOOKMARK":
                return self._on_bookmark(*read_bookmark(raw), stream)
            case "ERROR":
                raise read_error(raw, str(self._codec.resource))
        return True

    def _on_object(self, found: Candidate[K] | Undecodable | None) -> None:
        if found is None:
            raise NotAnEvent("an event with something that is no object")
        good = isinstance(found, Candidate)
        version = found.entry.version if isinstance(found, Candidate) else found.version
        if not self.core.on_event(str(version), self._now()):
            self._collect(found)
            return
        with self._sink.delivery:
            if isinstance(found, Candidate):
                notices = self._store.change(self.scope, found)
            else:
                notices = self._store.spoil(self.scope, found)
                self._sink.report_bad(self.scope, {found.key: found}, whole=False)
            if good:
                self._sink.report_good(found.key)
            self._sink.tell(notices, initial=False)

    def _on_deleted(self, found: Candidate[K] | Undecodable | None) -> None:
        if found is None:
            raise NotAnEvent("an event with something that is no object")
        final = found if isinstance(found, Candidate) else None
        uid, version = (
            (found.entry.uid, found.entry.version)
            if isinstance(found, Candidate)
            else (found.uid, found.version)
        )
        if not self.core.on_event(str(version), self._now()):
            self._found.pop(found.key, None)
            self._spoiled.pop(found.key, None)
            return
        with self._sink.delivery:
            notices = self._store.remove(self.scope, found.key, uid, version, final)
            self._sink.report_good(found.key)
            self._sink.tell(notices, initial=False)

    def _on_bookmark(self, version: str, ends: bool, stream: WatchStream) -> bool:
        streaming = self.core.phase is Phase.STREAMING
        verdict = self.core.on_bookmark(version, ends, self._now())
        if verdict is None:
            if not streaming:
                with self._sink.delivery:
                    self._sink.tell(self._store.observe(self.scope, int(version)), initial=False)
            return True
        self._conclude(verdict, version)
        # The same stream goes on as the watch, with a watch's patience. Where that cannot be changed, a new
        # one is opened.
        return verdict is Verdict.TAKE and stream.set_read_timeout(READ_TIMEOUT)

    def _cancellable(self) -> Cancel:
        cancel = Cancel()
        with self._condition:
            self._cancel = cancel
            if self._stopping:
                cancel.cancel()
        return cancel

    def _show_trouble(self) -> None:
        """Each kind of trouble is logged once, and its end."""
        failure = self.core.failure
        kind = failure.kind if failure else None
        if kind is self._shown or self._stopping:
            return
        if failure is not None:
            level = logging.INFO if failure.kind is Kind.EXPIRED else logging.WARNING
            _log.log(level, _MESSAGES[failure.kind], extra=self._fields(error=failure.text))
        elif self._shown is not Kind.EXPIRED:
            _log.info("the informer is well again", extra=self._fields())
        self._shown = kind

    def _fields(self, **more: object) -> dict[str, Any]:
        return {"fields": {"resource": self._codec.name, "ns": self.scope or "all namespaces", **more}}

    def _now(self) -> float:
        return self._clock.monotonic()


_MESSAGES = {
    Kind.UNREACHABLE: "the API server cannot be reached, trying again",
    Kind.SILENT: "a watch was silent for too long, opening it anew",
    Kind.BUSY: "the API server is busy, trying again",
    Kind.EXPIRED: "the watch expired, listing anew",
    Kind.AHEAD: "the API server does not know our resourceVersion, listing anew",
    Kind.MISSING: "waiting for a resource type that does not exist (is its CRD installed?)",
    Kind.FORBIDDEN: "waiting for a permission to list and watch",
    Kind.REFUSED: "the API server refuses to list or watch",
    Kind.BROKEN: "a watch broke, opening it anew",
}
