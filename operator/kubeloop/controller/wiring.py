"""From a `Controller` and the informers of its kinds to something that runs: queue, engine, workers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kubeloop.cache import Added, Deleted, Event, Informer, Modified
from kubeloop.client import Client, JsonPatch, MergePatch, NotFound
from kubeloop.clock import Clock, SystemClock
from kubeloop.controller.context import EventSink
from kubeloop.controller.definition import Controller
from kubeloop.controller.engine import Engine
from kubeloop.controller.finalizer import remove_patch
from kubeloop.controller.meanwhile import Meanwhile
from kubeloop.controller.owners import owner_key
from kubeloop.controller.result import TerminalError
from kubeloop.controller.worker import Report, WorkerPool
from kubeloop.controller.writer import Writer
from kubeloop.model import KubeObject
from kubeloop.queue import LOW_PRIORITY, QueueObserver, WorkQueue

if TYPE_CHECKING:
    from kubeloop.observe.tracing import Tracing

Informers = Mapping[type[KubeObject], "Informer[Any]"]


@dataclass(slots=True)
class _Unreadable:
    uid: str
    generation: int | None
    message: str
    deleting: bool
    finalizers: tuple[str, ...]
    told: bool = field(default=False, compare=False)


class RunningController:
    """One controller with its queue and workers. The informers belong to whoever made them."""

    def __init__(
        self,
        controller: Controller[Any],
        client: Client,
        informers: Informers,
        *,
        clock: Clock | None = None,
        dry_run: bool = False,
        workers: int | None = None,
        report: Report | None = None,
        queue_observer: QueueObserver | None = None,
        on_stuck: Callable[[], None] | None = None,
        events: EventSink | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self.controller = controller
        clock = clock or SystemClock()
        logger = logging.getLogger(f"kubeloop.controller.{controller.name}")
        self._client = client
        self._dry_run = dry_run
        main = informers[controller.kind]
        self._main = main
        self._informers = [informers[kind] for kind in controller.kinds]
        self._by_namespace = len(main.scopes) > 1
        self._opened: set[str | None] = set()  # namespaces that were queued when they had become whole
        self._unreadable: dict[str, _Unreadable] = {}  # by key; single operations only, so no lock
        self.queue: WorkQueue[str] = WorkQueue(clock=clock, observer=queue_observer)
        self._meanwhile: Meanwhile[str] = Meanwhile()
        self.writer = Writer(client, controller.field_manager, dry_run=dry_run)
        self.engine: Engine[Any] = Engine(
            controller.kind,
            controller.reconcile,
            cleanup=controller.cleanup,
            finalizer=controller.finalizer,
            on_error=controller.on_error,
            writer=self.writer,
            clock=clock,
            store=main.store,
            children={kind: informers[kind].store for kind in controller.owned},
            logger=logger,
            unreadable=self._explain_unreadable,
            events=events,
        )
        self.workers = WorkerPool(
            controller.name,
            self.queue,
            self.engine,
            size=workers or controller.workers,
            logger=logger,
            report=report,
            on_stuck=on_stuck,
            tracing=tracing,
            clock=clock,
            meanwhile=self._meanwhile,
        )
        main.add_handler(self._on_main)
        main.on_undecodable(self._on_undecodable)
        for kind in controller.owned:
            informers[kind].add_handler(self._child_handler(kind))
        for kind, keys in controller.watched:
            informers[kind].add_handler(self._watch_handler(keys))
        if self._by_namespace:
            for informer in self._informers:
                informer.on_synced(self._on_synced)

    @property
    def may_begin(self) -> bool:
        """Whether the caches are filled as far as any work needs them.

        Where namespaces are watched one by one, those of one namespace are enough: another that may not be
        watched must not stop it (kube-rs/kube#1132).
        """
        scopes = [scope.namespace for scope in self._main.scopes] if self._by_namespace else [None]
        return any(self._is_whole(namespace) for namespace in scopes)

    def _is_whole(self, namespace: str | None) -> bool:
        """Whether all of a namespace (None: all there is) is in the caches. In one that is not, a child that
        is not known yet would look like one that is missing."""
        return all(informer.has_synced_in(namespace) for informer in self._informers)

    def _add(self, key: str, *, priority: int = 0, urgent: bool = False) -> None:
        """Queue `key`, but not while its namespace is not whole: then `_on_synced` will, as by then the
        object is in the cache."""
        if not self._by_namespace or self._is_whole(key.rpartition("/")[0] or None):
            self.queue.add(key, priority=priority, urgent=urgent)

    def _on_synced(self, _: str | None) -> None:
        for scope in self._main.scopes:
            if scope.namespace in self._opened or not self._is_whole(scope.namespace):
                continue
            self._opened.add(scope.namespace)
            for key in [*self._main.store.keys(), *list(self._unreadable)]:
                if key.startswith(f"{scope.namespace}/"):
                    self.queue.add(key, priority=LOW_PRIORITY)

    def _on_main(self, event: Event[Any], initial: bool) -> None:
        obj, key = event.object, event.object.key
        self._unreadable.pop(key, None)
        match event:
            case Deleted():
                self.queue.discard(key)
                self.engine.forget(key)
            case Added():
                # Never an echo, also at a version that we wrote: a Deleted before it has dropped the key.
                self._add(key, priority=LOW_PRIORITY if initial else 0)
            case Modified(object=new, old=old):
                # The user changed what is wanted: that may be the cure for what fails.
                asked = new.generation != old.generation or (new.deleting and not old.deleting)
                self._unless_echo(obj, key, urgent=asked)

    def _unless_echo(self, changed: KubeObject, key: str, priority: int = 0, *, urgent: bool = False) -> None:
        """Queue `key`, unless the change is just what this controller itself wrote. While `key` is worked on
        that cannot be known yet: the watch may be faster than the answer."""

        def judge() -> None:
            if not self.writer.is_echo(changed):
                self._add(key, priority=priority, urgent=urgent)

        if not self._meanwhile.hold(key, judge):
            judge()

    def _child_handler(self, kind: type[KubeObject]) -> Any:
        owner = self.controller.kind.resource
        name = kind.resource.kind

        def handle(event: Event[Any], initial: bool) -> None:
            child = event.object
            keys = {owner_key(child, owner), *self.engine.waiters.of(name, child.key)}
            if isinstance(event, Modified):
                keys.add(owner_key(event.old, owner))
            priority = LOW_PRIORITY if initial else 0
            for key in keys:
                if key is None:
                    continue
                if isinstance(event, Deleted):
                    self._add(key, priority=priority)
                else:
                    self._unless_echo(child, key, priority)

        return handle

    def _watch_handler(self, keys: Any) -> Any:
        def handle(event: Event[Any], initial: bool) -> None:
            for key in keys(event.object):
                self._add(key, priority=LOW_PRIORITY if initial else 0)

        return handle

    def _on_undecodable(self, key: str, message: str, metadata: Mapping[str, Any]) -> None:
        """An object of our kind does not decode. A worker will say so in its status: informers also run on
        standbys, which write nothing."""
        # By generation: saying so makes a new version of the object, which is no news.
        what = _Unreadable(
            str(metadata.get("uid")),
            metadata.get("generation"),
            message,
            metadata.get("deletionTimestamp") is not None,
            tuple(metadata.get("finalizers") or ()),
        )
        if self._unreadable.get(key) != what:
            self._unreadable[key] = what
            self._add(key, urgent=True)

    def _explain_unreadable(self, key: str) -> None:
        """Raises `TerminalError` if the object `key` is there but cannot be read, having said so in its
        status, once per generation of it."""
        what = self._unreadable.get(key)
        if what is None:
            return
        finalizer = self.controller.finalizer
        if what.deleting and finalizer in what.finalizers and not self.controller.cleanup_reads_spec:
            self._let_go(key, what)
            return
        make = self.controller.on_undecodable
        status = make(what.message) if make is not None and not what.told else None
        if status is not None and not self._dry_run:
            if not self._patch_unreadable(key, MergePatch({"status": status}), subresource="status"):
                return
            what.told = True
        raise TerminalError(f"cannot be read: {what.message}")

    def _let_go(self, key: str, what: _Unreadable) -> None:
        """Take our finalizer off an unreadable object that is being deleted: else it, its namespace and its
        CRD would stay for ever. Its children go with it, by the garbage collector."""
        if not self._dry_run:
            patch = JsonPatch(remove_patch(what.uid, what.finalizers, str(self.controller.finalizer)))
            self._patch_unreadable(key, patch)

    def _patch_unreadable(
        self, key: str, patch: MergePatch | JsonPatch, subresource: str | None = None
    ) -> bool:
        """Patch an object of which only the key is known; False if it is gone."""
        namespace, _, name = key.rpartition("/")
        try:
            self._client.patch(
                self.controller.kind.resource,
                name,
                namespace or None,
                patch,
                subresource=subresource,
                field_manager=self.controller.field_manager,
            )
        except NotFound:
            return False
        return True
