"""Report 18: what telemetry costs."""

from __future__ import annotations

import gc
from collections import Counter
from typing import Any

import pytest

import kubeloop.cache.store

NAMESPACES = [f"zone{number:02}" for number in range(20)]
FEW, MANY = 20, 100


def series(page: str) -> set[str]:
    return {line.rpartition(" ")[0] for line in page.splitlines() if line and not line.startswith("#")}


def test_objects_come_and_go_and_metrics_and_memory_stay(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """kubernetes-sigs/controller-runtime#1423: object names in labels make five million series, until the
    process is killed for its memory (kubernetes/kubernetes#68918).

    Also with every kind of answer: refusals, conflicts, lost connections.
    """
    for bound in ("HOT", "ECHOES"):  # objects that a cache keeps decoded, also of those that are gone
        monkeypatch.setattr(kubeloop.cache.store, bound, MANY // 10)
    for name in NAMESPACES:
        stage.sandbox.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    operator = stage.operate(workers=4)

    def come_and_go(start: int, count: int) -> None:
        faults = stage.sandbox.faults
        for number in range(start, start + count, len(NAMESPACES)):
            for offset, namespace in enumerate(NAMESPACES):
                stage.make(f"unique-{number + offset}-name", namespace, replicas=0)
            with faults.add(user_agent="operator", verb="patch", status=409, probability=0.05):
                stage.pass_time(1, step=0.5)
            with faults.add(user_agent="operator", verb="patch", reset=True, probability=0.05):
                stage.pass_time(1, step=0.5)
            for offset, namespace in enumerate(NAMESPACES):
                name = f"unique-{number + offset}-name"
                stage.sandbox.delete("webapps.example.com", name, namespace)
            stage.pass_time(1, step=0.5)
        stage.until(lambda: not stage.sandbox.list("webapps.example.com"), within=120)
        stage.until(lambda: not stage.sandbox.list("deployments.apps"), within=120)

    come_and_go(0, FEW)
    before = series(operator.metrics())
    come_and_go(1000, MANY)
    page = operator.metrics()

    assert "unique-" not in page
    assert "zone" not in page
    assert series(page) - before <= {
        f'rest_client_requests_total{{code="{code}",host="api.test",method="{method}"}}'
        for code in ("<error>", "200", "201", "403", "404", "409", "422")
        for method in ("GET", "PATCH", "POST", "DELETE")
    }
    assert len(page) < 60_000
    # Nothing of those that are gone is kept, but by caches that have a bound.
    stats = operator.controller.queue.stats()
    assert (sum(stats.ready.values()), stats.failing, stats.busy) == (0, 0, [])
    assert len(operator.controller.queue) == 0
    assert all(len(informer.store) == 0 for informer in operator.manager.informers.values())
    assert operator.entries(verb="patch", resource="deployments"), "nothing was done"
    assert unbounded() == {}


def unbounded() -> dict[str, int]:
    """Containers of the runtime with an entry for most of the objects that are gone, by who holds them."""
    gc.collect()
    found: Counter[str] = Counter()
    for holder in gc.get_objects():
        module = str(type(holder).__module__)
        if not module.startswith("kubeloop.") or module.startswith("kubeloop.sandbox"):
            continue
        for name in (*getattr(holder, "__dict__", ()), *getattr(type(holder), "__slots__", ())):
            value = getattr(holder, name, None)
            if isinstance(value, dict | set | list) and len(value) > MANY // 2:
                found[f"{module}.{type(holder).__name__}.{name}"] = max(len(value), 0)
    return dict(found)
