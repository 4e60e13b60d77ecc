"""The rules of a sandbox: which of them a request meets."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Any

from kubeloop.sandbox.faults.effects import Effect


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as rules see it. `user` and `created` are looked up only when a rule asks."""

    verb: str
    group: str
    resource: str
    kind: str
    subresource: str
    namespace: str
    name: str
    user_agent: str
    path: str
    user: Callable[[], str]
    body: bytes = b""

    def object_name(self) -> str:
        """The name in the path, for a create that in the body."""
        if self.name or self.verb != "create":
            return self.name
        try:
            return str((json.loads(self.body).get("metadata") or {}).get("name", ""))
        except (ValueError, AttributeError):
            return ""  # a body that only the server itself will judge


class Fault:
    """One rule. As a context manager it is removed at the end."""

    def __init__(
        self,
        owner: Faults,
        number: int,
        effect: Effect,
        wanted: dict[str, Any],
        *,
        after: int,
        count: int | None,
        probability: float,
        seed: int | str,
    ) -> None:
        self.number = number
        self.effect = effect
        self.fired = 0
        """How often it has happened."""
        self.matched = 0
        """How many requests it was for, whether or not it happened to them."""
        self._owner = owner
        self._wanted = wanted
        self._after = after
        self._count = count
        self._probability = probability
        self._rng = random.Random(seed)

    def remove(self) -> None:
        """It happens no more. Harmless if it is removed already."""
        self._owner.remove(self)

    def __enter__(self) -> Fault:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def __str__(self) -> str:
        which = " ".join(f"{key}={value}" for key, value in self._wanted.items())
        return f"fault {self.number} ({which or 'every request'}: {self.effect}) fired {self.fired} times"

    def describe(self) -> dict[str, Any]:
        """As JSON, for the admin endpoint."""
        default = {f.name: f.default for f in fields(Effect)}
        effect = {k: getattr(self.effect, k) for k in default if getattr(self.effect, k) != default[k]}
        counts = {"fired": self.fired, "matched": self.matched, "left": self.left}
        return {"number": self.number, **self._wanted, **effect, **counts}

    @property
    def left(self) -> int | None:
        """How often it can still happen; None: without end."""
        return None if self._count is None else max(0, self._count - self.fired)

    def _matches(self, asked: Asked) -> bool:
        for key, wanted in self._wanted.items():
            match key:
                case "user":
                    found = asked.user() == wanted
                case "user_agent":
                    found = asked.user_agent.startswith(wanted)
                case "path":
                    found = asked.path.startswith(wanted)
                case "name":
                    found = asked.object_name() == wanted
                case "verb":
                    found = asked.verb in ((wanted,) if isinstance(wanted, str) else wanted)
                case "resource":
                    plural, _, subresource = wanted.partition("/")
                    found = plural in (asked.resource, f"{asked.resource}.{asked.group}")
                    found = found and subresource in ("*", asked.subresource)
                case _:
                    found = getattr(asked, key) == wanted
            if not found:
                return False
        return True

    def _draw(self, asked: Asked) -> bool:
        """Whether it happens to this request; counts it. Caller holds the owner's lock."""
        if self.left == 0 or not self._matches(asked):
            return False
        self.matched += 1
        if self.matched <= self._after:
            return False
        # Drawn also when certain: a changed probability must not shift the rest of the sequence.
        happens = self._rng.random() < self._probability
        self.fired += happens
        return happens


class Faults:
    """All rules of one sandbox. Thread-safe. `seed` is where the randomness of each rule comes from."""

    def __init__(self, seed: int | None = None) -> None:
        self._seed = seed or 0
        self._lock = threading.Lock()  # guards the rules and their counters
        self._rules: list[Fault] = []
        self._numbers = 0
        self.changed = threading.Condition()
        """What requests that are held up wait on; notified when the sandbox stops."""

    def add(
        self,
        *,
        verb: str | Iterable[str] | None = None,
        resource: str | None = None,
        kind: str | None = None,
        namespace: str | None = None,
        name: str | None = None,
        user: str | None = None,
        user_agent: str | None = None,
        path: str | None = None,
        after: int = 0,
        count: int | None = None,
        probability: float = 1.0,
        seed: int | None = None,
        **effect: Any,
    ) -> Fault:
        """Add a rule; it holds until it is removed or has happened `count` times.

        `verb` is one or several as RBAC names them (get, list, watch, create, update, patch, delete,
        deletecollection); `resource` a plural, with group (``webapps.example.com``) or not, with subresource
        (``webapps/status``; ``webapps/*`` is the object and all of them); `user_agent` and `path` are
        prefixes. The first `after` matching requests are spared. `effect` are fields of `Effect`.
        Raises ValueError, and TypeError for what is no effect.
        """
        if not 0.0 <= probability <= 1.0:
            raise ValueError(f"probability {probability} is not between 0 and 1")
        wanted = {
            "verb": verb if verb is None or isinstance(verb, str) else tuple(verb),
            "resource": resource,
            "kind": kind,
            "namespace": namespace,
            "name": name,
            "user": user,
            "user_agent": user_agent,
            "path": path,
        }
        made = Effect(**effect)
        with self._lock:
            self._numbers += 1
            fault = Fault(
                self,
                self._numbers,
                made,
                {key: value for key, value in wanted.items() if value is not None},
                after=after,
                count=count,
                probability=probability,
                seed=seed if seed is not None else f"{self._seed}/{self._numbers}",
            )
            self._rules.append(fault)
        return fault

    def remove(self, fault: Fault) -> None:
        """Remove one rule."""
        with self._lock:
            self._rules = [rule for rule in self._rules if rule is not fault]

    def clear(self) -> None:
        """Remove all rules."""
        with self._lock:
            self._rules = []

    def wake(self) -> None:
        """Have those who wait look again."""
        with self.changed:
            self.changed.notify_all()

    def __iter__(self) -> Iterator[Fault]:
        return iter(list(self._rules))

    def __len__(self) -> int:
        return len(self._rules)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def draw(self, asked: Asked) -> Effect | None:
        """What happens to a request: the effects of all rules that it meets, None if there are none."""
        with self._lock:
            effects = [rule.effect for rule in self._rules if rule._draw(asked)]
        if not effects:
            return None
        total = effects[0]
        for effect in effects[1:]:
            total += effect
        return total
