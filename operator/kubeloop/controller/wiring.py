"""From a `Controller` and the informers of its kinds to something that runs: queue, engine, workers."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from kubeloop.cache import Added, Deleted, Event, Informer, Modified
from kubeloop.client import ApiError, Client, MergePatch, TransportError
from kubeloop.clock import Clock, SystemClock
from kubeloop.controller.definition import Controller
from kubeloop.controller.engine import Engine
from kubeloop.controller.owners import owner_key
from kubeloop.controller.worker import Report, WorkerPool
from kubeloop.controller.writer import Writer
from kubeloop.model import KubeObject
from kubeloop.observe import fields
from kubeloop.queue import LOW_PRIORITY, WorkQueue

Informers = Mapping[type[KubeObject], "Informer[Any]"]


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
    ) -> None:
        self.controller = controller
        clock = clock or SystemClock()
        logger = logging.getLogger(f"kubeloop.controller.{controller.name}")
        self._logger = logger
        self._client = client
        self._dry_run = dry_run
        main = informers[controller.kind]
        self.queue: WorkQueue[str] = WorkQueue(clock=clock)
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
        )
        self.workers = WorkerPool(
            controller.name,
            self.queue,
            self.engine,
            size=workers or controller.workers,
            logger=logger,
            report=report,
            clock=clock,
        )
        main.add_handler(self._on_main)
        if controller.on_undecodable is not None:
            main.on_undecodable(self._on_undecodable)
        for kind in controller.owned:
            informers[kind].add_handler(self._child_handler(kind))
        for kind, keys in controller.watched:
            informers[kind].add_handler(self._watch_handler(keys))

    def _on_main(self, event: Event[Any], initial: bool) -> None:
        key = event.object.key
        if self._is_echo(event):
            return
        match event:
            case Deleted():
                self.queue.discard(key)
                self.engine.forget(key)
            case Added():
                self.queue.add(key, priority=LOW_PRIORITY if initial else 0)
            case Modified(object=new, old=old):
                # The user changed what is wanted: that may be the cure for what fails.
                asked = new.generation != old.generation or (new.deleting and not old.deleting)
                self.queue.add(key, urgent=asked)

    def _is_echo(self, event: Event[Any]) -> bool:
        """Whether this is just the watch showing what this controller wrote, which nobody need look at."""
        return not isinstance(event, Deleted) and event.own and self.writer.is_echo(event.object)

    def _child_handler(self, kind: type[KubeObject]) -> Any:
        owner = self.controller.kind.resource
        name = kind.resource.kind

        def handle(event: Event[Any], initial: bool) -> None:
            child = event.object
            if self._is_echo(event):
                return
            keys = {owner_key(child, owner), *self.engine.waiters.of(name, child.key)}
            if isinstance(event, Modified):
                keys.add(owner_key(event.old, owner))
            for key in keys:
                if key is not None:
                    self.queue.add(key, priority=LOW_PRIORITY if initial else 0)

        return handle

    def _watch_handler(self, keys: Any) -> Any:
        def handle(event: Event[Any], initial: bool) -> None:
            for key in keys(event.object):
                self.queue.add(key, priority=LOW_PRIORITY if initial else 0)

        return handle

    def _on_undecodable(self, key: str, message: str, metadata: Mapping[str, Any]) -> None:
        """An object of our kind does not decode: say so in its status, once per version of it."""
        make = self.controller.on_undecodable
        status = make(message) if make is not None else None
        if status is None or self._dry_run:
            return
        namespace, _, name = key.rpartition("/")
        try:
            self._client.patch(
                self.controller.kind.resource,
                name,
                namespace or None,
                MergePatch({"status": status}),
                subresource="status",
                field_manager=self.controller.field_manager,
            )
        except (ApiError, TransportError) as error:
            self._logger.warning(
                "could not say in the status that the object is unreadable: %s",
                error,
                extra=fields(ns=namespace, name=name, generation=metadata.get("generation")),
            )
