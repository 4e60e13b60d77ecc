"""One pass over one object: the finalizer protocol around the user's functions, and what came of it.

The engine neither waits nor starts threads: `process` is called with a key and returns an `Outcome`.
Workers call it; a test, or a single-threaded simulation, may call it just as well.
"""

from __future__ import annotations

import enum
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Generic, Protocol, TypeVar

from kubeloop.client import ApiError, Client, Conflict, Invalid, JsonPatch, NotFound, TransportError
from kubeloop.clock import Clock
from kubeloop.controller.children import ChildApplier
from kubeloop.controller.context import Context, EventSink, Shared
from kubeloop.controller.finalizer import Phase, add_patch, phase_of, remove_patch
from kubeloop.controller.owners import Waiters
from kubeloop.controller.protocol import AppliedMemory
from kubeloop.controller.result import RESYNC, Blocked, KeptChanging, Result, TerminalError
from kubeloop.controller.statusmemory import StatusMemory
from kubeloop.controller.writer import CacheOfKind, Change, Writer
from kubeloop.model import KubeObject, Model
from kubeloop.observe import FieldLogger, fields

K = TypeVar("K", bound=KubeObject)

MAX_TRIES = 5
"""How often a finalizer patch is tried against an object that keeps changing under it."""


BUSY = frozenset({429, 502, 503, 504})
"""Answers that say nothing about the request, but that the server has trouble of its own."""


class Reconcile(Protocol[K]):
    """The user's function: bring the world in line with the object. See `kubeloop.controller.result`."""

    def __call__(self, app: K, ctx: Context[K], /) -> Result: ...


class Cleanup(Protocol[K]):
    """The user's function for an object that is being deleted; when it returns, the object may go."""

    def __call__(self, app: K, ctx: Context[K], /) -> None: ...


OnError = Callable[[K, Exception], "Model | Mapping[str, Any] | None"]
"""Turns what a reconcile raised into the status to show, or None to leave the status alone."""


class End(enum.Enum):
    """How a pass ended."""

    DONE = "done"
    GONE = "gone"
    """The object is no longer there, or no longer ours to look after."""
    BLOCKED = "blocked"
    TERMINAL = "terminal"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one pass over one object."""

    end: End
    requeue_after: timedelta | None = None
    error: Exception | None = None
    changes: list[Change] = field(default_factory=list)
    again: bool = False
    """Somebody changed the object meanwhile in a way that this pass did not see."""
    seconds: float = 0.0
    """How long the pass took."""
    reconcile_id: str = ""
    """What the log lines of this pass bear."""
    spared: int = 0
    """Applies and status writes that were asked for and needed no request."""


class Engine(Generic[K]):
    """Passes of one controller. `process` may be called from many threads, but never twice at a time for one
    key; the queue sees to that."""

    def __init__(
        self,
        kind: type[K],
        reconcile: Reconcile[K],
        *,
        cleanup: Cleanup[K] | None,
        finalizer: str | None,
        on_error: OnError[K] | None,
        writer: Writer,
        clock: Clock,
        store: CacheOfKind[K],
        children: Mapping[type[KubeObject], CacheOfKind[Any]],
        logger: logging.Logger,
        unreadable: Callable[[str], None] | None = None,
        events: EventSink | None = None,
    ) -> None:
        """`unreadable` is called with the key of an object that is not in the cache; it may say that this is
        only because it cannot be read, by raising `TerminalError`."""
        self.kind = kind
        self._reconcile = reconcile
        self._cleanup = cleanup
        self._finalizer = finalizer
        self._on_error = on_error
        self._writer = writer
        self._store = store
        self._logger = logger
        self._unreadable = unreadable
        self.waiters = Waiters()
        self._memory = AppliedMemory()
        self._statuses = StatusMemory(writer.client, kind.resource, clock)
        self._shared = Shared(
            writer,
            store,
            {
                child.resource.kind: (child, cache, ChildApplier(child, cache, writer, self._memory, clock))
                for child, cache in children.items()
            },
            self.waiters,
            self._statuses,
            events,
        )

    @property
    def client(self) -> Client:
        return self._writer.client

    def process(self, key: str) -> Outcome:
        """One pass over the object `key` as the cache has it now. Never raises for what user code does."""
        started = time.perf_counter()
        self.waiters.forget(key)
        app = self._store.get(key)
        if app is None:
            self.forget(key)
            return self._missing(key, started)
        reconcile_id = os.urandom(4).hex()
        log = FieldLogger(self._logger, ns=app.namespace or "", name=app.name, reconcile_id=reconcile_id)
        ctx = Context(self._shared, app, log)
        failure: Exception | None = None
        try:
            result = self._pass(ctx)
        except Exception as error:  # noqa: BLE001 - whatever user code raises must not end the worker
            end, after, failure = self._failed(ctx, error)
        else:
            if result is None:
                self.forget(key)
            end = End.GONE if result is None else End.DONE
            after = result.requeue_after if result else None
        return Outcome(
            end,
            after,
            failure,
            ctx.changes,
            again=ctx.overtaken,
            seconds=time.perf_counter() - started,
            spared=ctx.spared,
            reconcile_id=reconcile_id,
        )

    def forget(self, key: str) -> None:
        """The object `key` is gone: drop what is remembered of it."""
        self.waiters.forget(key)
        self._statuses.forget(key)

    def _missing(self, key: str, started: float) -> Outcome:
        end: End = End.GONE
        error: Exception | None = None
        if self._unreadable is not None:
            try:
                self._unreadable(key)
            except TerminalError as unreadable:
                end, error = End.TERMINAL, unreadable
            except Exception as failure:  # noqa: BLE001 - whatever it is, it is retried like any other
                end, error = End.FAILED, failure
        return Outcome(end, error=error, seconds=time.perf_counter() - started)

    def _pass(self, ctx: Context[K]) -> Result | None:
        app = ctx.object
        phase = phase_of(app.metadata.finalizers, self._finalizer, deleting=app.deleting)
        if phase is Phase.ADD:
            phase = self._change_finalizers(ctx, Phase.ADD)
        if phase is Phase.CLEANUP:
            if self._cleanup is not None and not ctx.dry_run:
                self._cleanup(ctx.object, ctx)
            self._change_finalizers(ctx, Phase.CLEANUP)
            return None
        if phase is Phase.GONE:
            return None
        return self._reconcile(ctx.object, ctx)

    def _change_finalizers(self, ctx: Context[K], wanted: Phase) -> Phase:
        """Add (`Phase.ADD`) or remove (`Phase.CLEANUP`) our finalizer; returns the phase after that.

        The patch only goes through if the list is as we know it. If it is not, look and decide again.
        """
        finalizer = self._finalizer
        if finalizer is None:
            raise AssertionError("only controllers with a finalizer get here")
        make = add_patch if wanted is Phase.ADD else remove_patch
        for _ in range(MAX_TRIES):
            app = ctx.object
            patch = JsonPatch(make(app.uid, app.metadata.finalizers, finalizer))
            try:
                ctx.object = self._writer.patch(app, patch, store=self._store, changes=ctx.changes)
            except NotFound:
                return Phase.GONE
            except (Invalid, Conflict) as error:
                fresh = self._look(app)
                if fresh is None or fresh.uid != app.uid:
                    return Phase.GONE
                if fresh.metadata.resource_version == app.metadata.resource_version:
                    raise  # it is as we know it, so the server means something else
                ctx.log.debug(
                    "object changed under a finalizer patch, looking again", extra=fields(error=str(error))
                )
                ctx.object = fresh
            phase = phase_of(ctx.object.metadata.finalizers, finalizer, deleting=ctx.object.deleting)
            if phase is not wanted:
                return phase
        raise KeptChanging(
            f"{self.kind.resource.kind} {ctx.object.key} kept changing under a finalizer patch"
        )

    def _look(self, app: K) -> K | None:
        try:
            found = self.client.get(app.resource, app.name, app.namespace)
        except NotFound:
            return None
        self._store.write_through(found)
        return self.kind.model_validate(found)

    def _failed(self, ctx: Context[K], error: Exception) -> tuple[End, timedelta | None, Exception | None]:
        """How a pass that raised has ended, when to look again, and what is to be reported."""
        after: timedelta | None = None
        if isinstance(error, Blocked):
            end, after = End.BLOCKED, error.look_again
        elif isinstance(error, TerminalError):
            end = End.TERMINAL
        elif isinstance(error, Invalid):
            # The server says that what we ask for is wrong. It will say so again until the spec, or
            # something outside, changes; asking at the pace of a resync is enough.
            end, after = End.TERMINAL, RESYNC
        elif isinstance(error, NotFound) and self._is_gone(ctx.object, error):
            return End.GONE, None, None
        else:
            end = End.FAILED
        self._show(ctx, error)
        return end, after, error

    def _is_gone(self, app: K, error: ApiError) -> bool:
        """Whether a 404 only says that the object itself was deleted meanwhile."""
        details = error.status.get("details") or {}
        return details.get("name") == app.name and details.get("kind") in (
            app.resource.plural,
            app.resource.kind,
        )

    def _show(self, ctx: Context[K], error: Exception) -> None:
        """Put the error into the object's status, if the application knows how to say it there."""
        # A server that did not answer, or is too busy, would not answer this either, and a worker would wait
        # for it again.
        if self._on_error is None or ctx.object.deleting or isinstance(error, TransportError):
            return
        if isinstance(error, ApiError) and error.code in BUSY:
            return
        try:
            status = self._on_error(ctx.object, error)
            if status is not None:
                ctx.set_status(status)
        except Exception as second:  # noqa: BLE001 - the first error is the one to report and to retry for
            ctx.log.warning("could not write the error into the status: %s", second)
