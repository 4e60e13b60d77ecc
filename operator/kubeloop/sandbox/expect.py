"""Assertions on objects that wait, without sleeping, and say what was there instead when they fail.

``sandbox.expect("deployment", "hello").to_have_available(3, within=30)`` fails as
``deployment default/hello never had 3 available replicas within 30 s; last status {...}``.

The waiting is done on the sandbox's clock. A clock that stands still (FakeClock) is moved by whoever waits; a
sandbox in steps is settled in between, so that thirty seconds of rollout take no time at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kubeloop.clock import FakeClock
from kubeloop.sandbox.registry import Object, ResourceInfo

if TYPE_CHECKING:
    from kubeloop.sandbox.sandbox import Sandbox
    from kubeloop.sandbox.watcher import Watcher

WITHIN = 30.0
"""Seconds that something gets to come true if the test does not say."""
TICK = 0.25
"""Seconds by which a clock that stands still is moved at a time."""
REAL_PAUSE = 0.005
"""Seconds of real time that threads get to react to each such move."""
SHOWN = 1500
"""How many characters of a status are shown."""

Check = Callable[[Object | None], bool]


class Expectation:
    """What is expected of one object. Each method waits up to `within` seconds, or raises AssertionError."""

    def __init__(
        self,
        sandbox: Sandbox,
        info: ResourceInfo,
        name: str,
        namespace: str,
        drive: Callable[[], object] | None,
    ) -> None:
        self._sandbox = sandbox
        self._info = info
        self._name = name
        self._namespace = namespace if info.namespaced else ""
        self._drive = drive

    def to_exist(self, *, within: float = WITHIN) -> Object:
        """It is there; gives it."""
        return self._found(lambda obj: obj is not None, "was there", within)

    def to_be_gone(self, *, within: float = WITHIN) -> None:
        """It is not there (any more)."""
        self._wait(lambda obj: obj is None, "went away", within)

    def to_have(self, *, within: float = WITHIN, **fields: Any) -> Object:
        """It has these fields: ``status={"readyReplicas": 3}``; mappings need only contain them."""
        wanted = ", ".join(f"{path} {json.dumps(value)}" for path, value in _leaves(fields))
        return self._found(lambda obj: obj is not None and _contains(obj, fields), f"had {wanted}", within)

    def to_have_condition(self, type: str, status: str = "True", *, within: float = WITHIN) -> Object:
        """Its status has this condition."""

        def check(obj: Object | None) -> bool:
            conditions = ((obj or {}).get("status") or {}).get("conditions") or ()
            return any(c.get("type") == type and c.get("status") == status for c in conditions)

        return self._found(check, f"had the condition {type}={status}", within)

    def to_have_available(self, replicas: int, *, within: float = WITHIN) -> Object:
        """That many replicas are available, and its controller has seen the newest spec (Deployments)."""

        def check(obj: Object | None) -> bool:
            if obj is None:
                return False
            status = obj.get("status") or {}
            seen = status.get("observedGeneration", 0) >= obj["metadata"].get("generation", 0)
            return seen and (status.get("availableReplicas") or 0) == replicas

        noun = "replica" if replicas == 1 else "replicas"
        return self._found(check, f"had {replicas} available {noun}", within)

    def to_satisfy(self, check: Callable[[Object], bool], what: str, *, within: float = WITHIN) -> Object:
        """It satisfies `check`; `what` completes "it never …"."""
        return self._found(lambda obj: obj is not None and check(obj), what, within)

    # -- waiting ---------------------------------------------------------------------------------

    def _found(self, check: Check, what: str, within: float) -> Object:
        obj = self._wait(check, what, within)
        assert obj is not None
        return obj

    def _wait(self, check: Check, what: str, within: float) -> Object | None:
        sandbox = self._sandbox
        store = sandbox.backend.store
        deadline = sandbox.clock.monotonic() + within
        watcher = store.list_and_watch(self._info.key, self._namespace or None, self._name)[2]
        try:
            while True:
                if self._drive is not None:
                    self._drive()
                sandbox.settle_if_stepped()
                watcher.take()
                obj = self._look()
                if check(obj):
                    return obj
                left = deadline - sandbox.clock.monotonic()
                if left <= 0:
                    raise AssertionError(self._complaint(what, within, obj))
                self._pass_time(watcher, left)
        finally:
            watcher.close()

    def _pass_time(self, watcher: Watcher, left: float) -> None:
        """Let something happen: an event, or a piece of time."""
        clock = self._sandbox.clock
        if isinstance(clock, FakeClock):
            if not self._sandbox.stepped:
                with watcher.wake:
                    if not watcher.ready():
                        watcher.wake.wait(REAL_PAUSE)
            clock.advance(min(TICK, left))
            return
        with watcher.wake:
            if not watcher.ready():
                # Without a thread that settles, the controllers' own plans are what time is for.
                clock.wait(watcher.wake, min(left, TICK) if self._sandbox.stepped or self._drive else left)

    def _look(self) -> Object | None:
        return self._sandbox.get(self._info.qualified, self._name, self._namespace or None)

    def _complaint(self, what: str, within: float, obj: Object | None) -> str:
        where = f"{self._namespace}/{self._name}" if self._namespace else self._name
        text = f"{self._info.singular_name} {where} never {what} within {within:g} s; "
        if obj is None:
            text += "it does not exist"
        elif "status" in obj or "status" in self._info.subresources:
            text += f"last status {_shown(obj.get('status') or {})}"
        else:
            text += f"last seen as {_shown(obj)}"
        entries = self._sandbox.log.writes(
            resource=self._info.plural, namespace=self._namespace, name=self._name, internal=None
        )
        last = [str(entry) for entry in entries[-3:]]
        return text + ("".join(f"\n  {line}" for line in last) if last else "\n  nobody wrote to it")


def resolve(sandbox: Sandbox, resource: str) -> ResourceInfo:
    """A resource by its plural (with group or not), singular, kind or short name. Raises ValueError."""
    plural, _, group = resource.partition(".")
    for info in sandbox.backend.registry.infos():
        names = (info.plural, info.singular_name, info.kind, *info.short_names)
        if plural in names and group in ("", info.group):
            return info
    known = ", ".join(sorted({info.singular_name for info in sandbox.backend.registry.infos()}))
    raise ValueError(f"the sandbox serves no {resource!r}, but {known}")


def _contains(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(_contains(found.get(k), v) for k, v in wanted.items())
    return bool(found == wanted)


def _leaves(value: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for key, child in value.items():
        path = f"{prefix}{key}"
        found += _leaves(child, f"{path}.") if isinstance(child, Mapping) and child else [(path, child)]
    return found


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
