"""A few seeds of each soak, shorter than the hour of ``make soak``."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from soak import cache, election, webapps, workqueue
from soak.harness import Soak, SoakFailure

from kubeloop.cache.ledger import Ledger
from kubeloop.leader import Fence
from kubeloop.queue import QueueCore

QUICK = [
    (workqueue.soak, 60, 1),
    (workqueue.soak, 60, 2),
    (cache.soak, 20, 1),
    (cache.soak, 20, 3),
    (election.soak, 15, 1),
    (election.soak, 15, 2),
    (webapps.soak, 8, 1),
]


@pytest.mark.parametrize(
    ("soak", "minutes", "seed"), QUICK, ids=[f"{soak.__module__}-{seed}" for soak, _, seed in QUICK]
)
def test_it_keeps_its_promises_whatever_goes_wrong(soak: Soak, minutes: float, seed: int) -> None:
    """R0.11, R0.23, R0.24, D1, D2, D3, D4"""
    result = soak(seed, minutes)
    assert result.worst
    assert result.counts


@pytest.mark.parametrize("soak", [workqueue.soak, cache.soak, election.soak])
def test_a_seed_gives_the_same_history_each_time(soak: Soak) -> None:
    one, two, other = soak(5, 2), soak(5, 2), soak(6, 2)
    assert one.digest == two.digest
    assert one.digest != other.digest


# What nobody would notice is not soaked: each of these breaks one promise.


def fails(soak: Soak, seeds: range = range(1, 6)) -> str:
    """What the first seed that notices says."""
    for seed in seeds:
        try:
            soak(seed, 30)
        except SoakFailure as failure:
            return str(failure)
    return ""


def test_a_queue_that_loses_what_is_added_meanwhile_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def done(self: QueueCore[str], key: str, now: float) -> None:  # noqa: ARG001
        self._processing.discard(key)
        self._entries.pop(key, None)

    monkeypatch.setattr(QueueCore, "done", done)
    found = fails(workqueue.soak)
    assert "nobody takes it" in found
    assert 'make soak ARGS="workqueue --seed' in found


def test_a_queue_that_forgets_backoff_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    retry = QueueCore.retry

    def hasty(self: QueueCore[str], key: str, now: float, delay: float, **more: Any) -> None:
        retry(self, key, now, delay / 2, **more)

    monkeypatch.setattr(QueueCore, "retry", hasty)
    assert "early" in fails(workqueue.soak)


def test_a_fence_that_stays_open_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    extend = Fence.extend
    monkeypatch.setattr(Fence, "extend", lambda self, until: extend(self, until + 15))
    assert "two may write" in fails(election.soak)


def test_a_cache_that_tells_twice_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    change = Ledger.change

    def forgetful(self: Ledger, scope: Any, candidate: Any) -> Any:
        notices = change(self, scope, candidate)
        return notices + notices if candidate.entry.version % 50 == 0 else notices

    monkeypatch.setattr(Ledger, "change", forgetful)
    assert "known as" in fails(cache.soak)


def test_a_cache_that_misses_deletions_in_a_gap_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    replace = Ledger.replace

    def forgetful(self: Ledger, scope: Any, found: Any, spoiled: Any, version: int, began: int) -> Any:
        kept = set(self.entries) - set(found) - set(spoiled)
        before = {key: self.entries[key] for key in kept}
        notices = replace(self, scope, found, spoiled, version, began)
        self.entries.update(before)
        return notices

    monkeypatch.setattr(Ledger, "replace", forgetful)
    assert "store" in fails(cache.soak)


def test_nothing_is_left_behind() -> None:
    before = threading.Thread.start, threading.Condition.wait
    workqueue.soak(1, 1)
    assert (threading.Thread.start, threading.Condition.wait) == before
