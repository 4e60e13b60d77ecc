"""One full pass over everything, for debugging and for scripts: what was done, object by object (D8).

The pass runs on the same informers, queue and workers as the operator does, and ends when nothing has been
due for a moment: what the first reconcile of an object sets in motion (its Deployment's first news) belongs
to the pass, the next resync does not.
"""

from __future__ import annotations

import difflib
import enum
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import yaml

from kubeloop.clock import StopEvent
from kubeloop.controller import Change, End, Outcome, Verb
from kubeloop.manager.manager import SHUTDOWN_TIMEOUT, Manager

SYNC_TIMEOUT = 30.0
"""Seconds to wait for the caches. An operator waits for ever for a missing CRD; a script must not."""

QUIET = 2.0
"""Seconds without work after which a pass that wrote something is over: the first news of what it made
belong to it. A pass that wrote nothing has no news to wait for."""

PASS_TIMEOUT = 600.0
"""Seconds that a pass may take in all."""


class Word(enum.Enum):
    """What became of one object."""

    UNCHANGED = "unchanged"
    CREATED = "created"
    CHANGED = "changed"
    CLEANED = "cleaned up"
    BLOCKED = "blocked"
    INVALID = "invalid"
    FAILED = "failed"

    @property
    def converged(self) -> bool:
        """Whether the object is as it should be."""
        return self not in (Word.BLOCKED, Word.INVALID, Word.FAILED)


@dataclass(slots=True)
class Row:
    """One object of the pass."""

    key: str
    word: Word = Word.UNCHANGED
    detail: str = ""
    changes: list[Change] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Take in one more reconcile of the object; the last one decides whether it converged."""
        self.changes += outcome.changes
        match outcome.end:
            case End.FAILED:
                self.word, self.detail = Word.FAILED, str(outcome.error)
            case End.BLOCKED:
                self.word, self.detail = Word.BLOCKED, str(outcome.error)
            case End.TERMINAL:
                self.word, self.detail = Word.INVALID, str(outcome.error)
            case End.GONE:
                self.word = Word.CLEANED if self.changes else Word.UNCHANGED
                self.detail = _say(self.changes)
            case End.DONE:
                self.word, self.detail = _word_of(self.changes), _say(self.changes)


@dataclass(slots=True)
class Pass:
    """The result of a pass."""

    rows: list[Row]
    problems: list[str] = field(default_factory=list)
    """What kept the pass from being whole, in words: caches that could not be read, a time-out, a stop."""

    @property
    def converged(self) -> bool:
        """Whether the pass was whole and every object is as it should be."""
        return not self.problems and all(row.word.converged for row in self.rows)

    def diff(self) -> Iterator[str]:
        """The changes of a dry run as lines of a unified diff, object by object."""
        for row in self.rows:
            for change in row.changes:
                name = f"{change.kind}/{change.key}" + (
                    f"/{change.subresource}" if change.subresource else ""
                )
                yield from difflib.unified_diff(
                    _lines(change.before),
                    _lines(change.after),
                    f"live/{name}",
                    f"wanted/{name}",
                    lineterm="",
                )


class Recorder:
    """Collects outcomes from the workers; give `record` to the manager as its report."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _rows
        self._rows: dict[str, Row] = {}

    def record(self, key: str, outcome: Outcome) -> None:
        """One reconcile has ended."""
        with self._lock:
            self._rows.setdefault(key, Row(key)).add(outcome)

    def wrote(self) -> bool:
        """Whether any reconcile so far wrote, or failed and will be tried again."""
        with self._lock:
            return any(row.changes or row.word is Word.FAILED for row in self._rows.values())

    def rows(self) -> list[Row]:
        """The rows so far, by key."""
        with self._lock:
            return [self._rows[key] for key in sorted(self._rows)]


def run_once(manager: Manager, recorder: Recorder, stop: StopEvent) -> Pass:
    """Run one pass with `manager`, whose report is ``recorder.record``; stops the manager at the end."""
    problems = []
    manager.start()
    try:
        if not manager.wait_synced(stop, SYNC_TIMEOUT):
            problems += ["interrupted"] if stop.is_set() else manager.waiting_for()
        else:
            manager.start_workers()
            if not _finish(manager, recorder):
                problems.append(f"not finished after {PASS_TIMEOUT:.0f} s")
            if stop.is_set():
                problems.append("interrupted")
    finally:
        manager.stop(SHUTDOWN_TIMEOUT)
    return Pass(recorder.rows(), problems)


def _finish(manager: Manager, recorder: Recorder) -> bool:
    """Wait for the end of the pass; whether it came in time."""
    for quiet in (0.0, QUIET):
        for running in manager.controllers:
            if not running.queue.wait_quiet(quiet, PASS_TIMEOUT):
                return False
        if not recorder.wrote():
            break
    return True


def _word_of(changes: Iterable[Change]) -> Word:
    verbs = {change.verb for change in changes if change.subresource != "status"}
    if Verb.CREATED in verbs:
        return Word.CREATED
    return Word.CHANGED if verbs or any(changes) else Word.UNCHANGED


def _say(changes: Iterable[Change]) -> str:
    said = dict.fromkeys(
        "status" if change.subresource == "status" else f"{change.kind} {change.verb.value}"
        for change in changes
    )
    return ", ".join(said)


def _lines(obj: dict[str, object] | None) -> list[str]:
    if obj is None:
        return []
    shown = dict(obj)
    metadata = dict(shown.get("metadata") or {})  # type: ignore[call-overload]
    for noise in ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"):
        metadata.pop(noise, None)
    shown["metadata"] = metadata
    text: str = yaml.safe_dump(shown, sort_keys=True, allow_unicode=True)
    return text.splitlines()
