"""A log of every request, to be asked by tests: who did what, and did it change anything.

``mark = sandbox.log.mark(); ...; assert sandbox.log.writes(since=mark) == []`` is how "a settled object costs
no write" is proved.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import Any

CAPACITY = 100_000
"""How many entries are kept; the oldest go first."""
WRITE_VERBS = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, slots=True)
class Entry:
    """One request. `verb` is as an audit log says it; `wrote` is whether the store changed.

    `internal` requests come from the sandbox's own controllers. A watch is logged when it starts.
    `status` is the HTTP status code, `time` the sandbox's clock, `number` counts up. `fault` says what a
    rule of `faults` did instead of answering; a request that got no answer at all has the status 0.
    `content_type` is the request's: what tells the kinds of patch apart.
    """

    number: int
    time: datetime
    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    subresource: str
    user: str
    user_agent: str
    manager: str
    status: int
    wrote: bool
    internal: bool
    path: str
    fault: str = ""
    content_type: str = ""

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}".strip("/")
        what = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        wrote = " wrote" if self.wrote else ""
        answer = f"{self.status}{wrote} ({self.user_agent})"
        return f"#{self.number} {self.verb} {what or self.path} {where} -> {answer}"


class RequestLog:
    """A bounded list of entries, oldest first. Thread-safe."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._lock = threading.Lock()  # guards _entries and _count together
        self._entries: deque[Entry] = deque(maxlen=capacity)
        self._count = 0

    def number(self) -> int:
        """The next entry's number."""
        with self._lock:
            self._count += 1
            return self._count

    def add(self, entry: Entry) -> None:
        """Append an entry."""
        self._entries.append(entry)

    def mark(self) -> int:
        """A point in time to ask `since`."""
        with self._lock:
            return self._count

    def entries(
        self,
        *,
        since: int = 0,
        verb: str | None = None,
        resource: str | None = None,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str | None = None,
        user_agent: str | None = None,
        manager: str | None = None,
        status: int | None = None,
        internal: bool | None = False,
    ) -> list[Entry]:
        """The matching entries, oldest first.

        `since` is a `mark`; `user_agent` is a prefix. `internal` says whether the requests of the
        sandbox's own controllers are wanted: False none of them, True only them, None all.
        """
        wanted = {
            "verb": verb,
            "resource": resource,
            "namespace": namespace,
            "name": name,
            "subresource": subresource,
            "manager": manager,
            "status": status,
            "internal": internal,
        }
        checks = [(key, value) for key, value in wanted.items() if value is not None]
        with self._lock:
            entries = list(self._entries)
        return [
            entry
            for entry in entries
            if entry.number > since
            and all(getattr(entry, key) == value for key, value in checks)
            and (user_agent is None or entry.user_agent.startswith(user_agent))
        ]

    def writes(
        self,
        *,
        since: int = 0,
        resource: str | None = None,
        namespace: str | None = None,
        name: str | None = None,
        user_agent: str | None = None,
        manager: str | None = None,
        only_effective: bool = False,
        internal: bool | None = False,
    ) -> list[Entry]:
        """The write requests (`only_effective`: those that changed the store); see `entries`."""
        found = self.entries(
            since=since,
            resource=resource,
            namespace=namespace,
            name=name,
            user_agent=user_agent,
            manager=manager,
            internal=internal,
        )
        return [e for e in found if e.verb in WRITE_VERBS and (e.wrote or not only_effective)]

    def expect_no_writes(self, *, since: int = 0, **wanted: Any) -> None:
        """Raise an AssertionError that lists them if there were any writes; arguments as in `writes`."""
        found = self.writes(since=since, **wanted)
        if found:
            raise AssertionError(
                f"{len(found)} writes where none were expected:\n"
                + "\n".join(f"  {entry}" for entry in found)
            )

    def __len__(self) -> int:
        return len(self._entries)
