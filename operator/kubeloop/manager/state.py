"""The state of a manager as plain data: what ``/statusz`` shows, and gives as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kubeloop.manager.history import History, Past
from kubeloop.model import format_time

if TYPE_CHECKING:
    from kubeloop.cache import Informer
    from kubeloop.controller import RunningController
    from kubeloop.manager.manager import Manager

SLOWEST, SHOWN = 10, 50
"""Slow objects, and failing ones, that are shown."""


class ManagerState:
    """Looks at one manager. `about` is shown at the top: the program's name and version, the server."""

    def __init__(self, manager: Manager, about: Mapping[str, str]) -> None:
        self._manager = manager
        self._about = dict(about)
        self._started = manager.clock.now()
        self._began = manager.clock.monotonic()

    def read(self) -> dict[str, Any]:
        """Everything, as JSON can hold it."""
        manager, now = self._manager, self._manager.clock.monotonic()
        return {
            "about": self._about,
            "started": format_time(self._started),
            "uptimeSeconds": round(now - self._began, 1),
            "stopping": manager.stopping,
            "leader": self._leader(),
            "informers": [row for each in manager.informers.values() for row in _informer(each)],
            "controllers": [
                _controller(each, manager.histories[each.controller.name], now)
                for each in manager.controllers
            ],
        }

    def _leader(self) -> dict[str, Any]:
        elector = self._manager.elector
        if elector is None:
            return {"election": False, "leads": True, "text": "no election: this process always works"}
        view = elector.view
        return {
            "election": True,
            "leads": elector.may_write(),
            "identity": view.identity,
            "holder": view.holder,
            "transitions": view.transitions,
            "text": elector.describe(),
        }


def _informer(informer: Informer[Any]) -> list[dict[str, Any]]:
    return [
        {
            "kind": informer.kind_name,
            "resource": str(informer.resource),
            "namespace": scope.namespace,
            "phase": scope.phase,
            "synced": scope.synced,
            "alive": scope.alive,
            "silenceSeconds": None if scope.silence is None else round(scope.silence, 1),
            "error": scope.error,
            "objects": len(informer.store),
            "undecodable": len(informer.undecodable),
        }
        for scope in informer.scopes
    ]


def _controller(running: RunningController, history: History, now: float) -> dict[str, Any]:
    stats = running.queue.stats()
    recent = history.recent()
    slowest: dict[str, Past] = {}
    for past in sorted(recent, key=lambda past: past.seconds):
        slowest[past.key] = past  # the slowest of each object comes last
    troubles = history.troubles()
    return {
        "name": running.controller.name,
        "workers": running.workers.size,
        "stuck": running.workers.stuck,
        "busy": [
            {"object": key, "seconds": round(seconds, 3)}
            for key, seconds in sorted(running.queue.busy().items(), key=lambda item: -item[1])
        ],
        "queue": {
            "ready": sum(stats.ready.values()),
            "delayed": stats.delayed,
            "failing": stats.failing,
            "adds": stats.adds,
        },
        "slowest": [
            _past(past, now) for past in sorted(slowest.values(), key=lambda past: -past.seconds)[:SLOWEST]
        ],
        "failing": [
            {
                "object": trouble.key,
                "end": trouble.end.value,
                "error": trouble.error,
                "since": format_time(trouble.since),
                "times": trouble.times,
            }
            for trouble in troubles[:SHOWN]
        ],
        "failingInAll": len(troubles),
        "recent": [_past(past, now) for past in recent],
    }


def _past(past: Past, now: float) -> dict[str, Any]:
    return {
        "object": past.key,
        "secondsAgo": round(now - past.at, 1),
        "seconds": round(past.seconds, 6),
        "end": past.end.value,
        "writes": past.writes,
    }
