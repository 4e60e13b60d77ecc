"""What a controller is: a kind, the user's functions, and which other kinds wake it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, Self, TypeVar

from kubeloop.controller.engine import Cleanup, OnError, Reconcile
from kubeloop.model import KubeObject

K = TypeVar("K", bound=KubeObject)

DEFAULT_WORKERS = 4
"""Reconciles at a time. controller-runtime's default is 1, kube-rs' is unlimited; both hurt."""

OnUndecodable = Callable[[str], "dict[str, Any] | None"]
"""Turns what is wrong with an object that does not decode into the status to show."""


class Controller(Generic[K]):
    """Declares how objects of one kind are reconciled.

        Controller(WebApp, reconcile, field_manager="webapp-operator").owns(Deployment)

    `reconcile(app, ctx)` is called with the object as it is now, whatever has happened (level-triggered): at
    the start, when it or something it owns changes, after a failure, and as often as its `Result` says. It
    must be idempotent. How it may end: `kubeloop.controller.result`. With a `finalizer`, `cleanup(app, ctx)`
    is called when the object is being deleted, and only its success lets the object go. `on_error(app,
    error)` may turn what a reconcile raised into a status.

    An object that its class cannot read is neither reconciled nor cleaned up; `on_undecodable(message)` may
    give it a status. With a `cleanup_reads_spec` of False, because the cleanup has nothing to learn from the
    object, it can at least be deleted: the finalizer is taken off without a cleanup.
    """

    def __init__(
        self,
        kind: type[K],
        reconcile: Reconcile[K],
        *,
        cleanup: Cleanup[K] | None = None,
        finalizer: str | None = None,
        field_manager: str,
        on_error: OnError[K] | None = None,
        on_undecodable: OnUndecodable | None = None,
        cleanup_reads_spec: bool = True,
        workers: int = DEFAULT_WORKERS,
        name: str | None = None,
    ) -> None:
        if cleanup is not None and finalizer is None:
            raise ValueError("cleanup needs a finalizer: without one the object is gone before it could run")
        if finalizer is not None and "/" not in finalizer:
            raise ValueError(f"finalizer {finalizer!r} must be qualified, e.g. example.com/{finalizer}")
        if not 0 < len(field_manager) <= 128:
            raise ValueError("field_manager must have 1 to 128 characters")
        if workers < 1:
            raise ValueError(f"workers must be at least 1, not {workers}")
        self.kind = kind
        self.reconcile = reconcile
        self.cleanup = cleanup
        self.finalizer = finalizer
        self.field_manager = field_manager
        self.on_error = on_error
        self.on_undecodable = on_undecodable
        self.cleanup_reads_spec = cleanup_reads_spec
        self.workers = workers
        self.name = name or kind.resource.kind.lower()
        self.owned: list[type[KubeObject]] = []
        self.watched: list[tuple[type[KubeObject], Callable[[Any], Iterable[str]]]] = []

    def owns(self, kind: type[KubeObject]) -> Self:
        """Objects of `kind` are made by reconciles; a change to one wakes its controller owner.

        With `metadata_only(kind)` they are cached without their content, which `Context.apply` would need.
        """
        known = next((each for each in self.owned if each.resource == kind.resource), None)
        if known is not None and known is not kind:
            raise ValueError(f"{kind.resource} is owned already, as {known.__name__}")
        if known is None:
            self.owned.append(kind)
        return self

    @property
    def kinds(self) -> list[type[KubeObject]]:
        """Every kind that it needs an informer of."""
        return [self.kind, *self.owned, *(kind for kind, _ in self.watched)]

    def watches(self, kind: type[KubeObject], keys: Callable[[Any], Iterable[str]]) -> Self:
        """A change to an object of `kind` wakes the objects whose keys (namespace/name) `keys` gives.

        With `metadata_only(kind)`, `keys` is given their metadata only.
        """
        self.watched.append((kind, keys))
        return self
