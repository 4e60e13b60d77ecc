"""watch: from any kept revision, with bookmarks, initial events, selector transitions and timeouts.

A `WatchBody` is pulled by whoever serves it (a connection's thread, an in-process reader, or a test that
polls it): there is no thread per watch in here, and nothing is computed for a watch that nobody reads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from kubeloop.clock import Clock
from kubeloop.sandbox.pipeline.backend import Backend, Call, in_version
from kubeloop.sandbox.pipeline.encoding import Encoder, Encoding
from kubeloop.sandbox.pipeline.options import ListOptions, parse_revision, revision_failure
from kubeloop.sandbox.pipeline.request import Delivery
from kubeloop.sandbox.pipeline.selectors import Predicate, predicate
from kubeloop.sandbox.registry import Object, ResourceInfo
from kubeloop.sandbox.status import ApiFailure, expired
from kubeloop.sandbox.store import Compacted, Event, Record, Watcher, to_json

BOOKMARK_INTERVAL = 60.0
"""Seconds between bookmarks (the watch cache's defaultBookmarkFrequency)."""
BOOKMARK_BEFORE_END = 2.0
"""A last bookmark is sent this many seconds before the watch times out."""
MIN_TIMEOUT = 1800.0
"""A watch without timeoutSeconds ends after this many seconds, up to twice that (--min-request-timeout)."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"

Encode = Callable[[Event], bytes | None]


class WatchBody:
    """An open watch: lines of JSON. Structurally what the runtime's `Stream` protocol asks for.

    `chunks` and `poll` are for one reader; `close` may be called from any thread and wakes the reader.
    """

    def __init__(
        self,
        clock: Clock,
        watcher: Watcher | None,
        encode: Encode,
        *,
        initial: list[bytes],
        timeout: float,
        bookmark: Callable[[int], bytes] | None,
        content_type: str,
    ) -> None:
        self.status = 200
        self.delivery: Delivery | None = None
        self.headers = {"content-type": content_type, "cache-control": "no-cache, private"}
        self._clock = clock
        self._watcher = watcher
        self._encode = encode
        self._pending = initial
        self._bookmark = bookmark
        self._deadline = clock.monotonic() + timeout
        self._next_bookmark = self._bookmark_time()
        self._ended = False
        self._own_wake = threading.Condition()  # where there is no watcher: the history was too short

    def poll(self) -> list[bytes] | None:
        """What can be sent now, without waiting; None when the watch has ended."""
        watcher = self._watcher
        lines, self._pending = self._pending, []
        if self._ended:
            return lines or None
        if watcher is None:
            self._ended = True
            return lines or None
        for event in watcher.take():
            line = self._encode(event)
            if line is not None:
                lines.append(line)
        now = self._clock.monotonic()
        if self._bookmark is not None and now >= self._next_bookmark:
            self._next_bookmark = self._bookmark_time()
            revision = watcher.progress()
            if revision is not None:
                lines.append(self._bookmark(revision))
        if now >= self._deadline or watcher.closed or watcher.overflowed:
            self.close()
        return lines or (None if self._ended else [])

    def chunks(self) -> Iterator[bytes]:
        """Lines as they come; several that are there at once come as one chunk."""
        while True:
            lines = self.poll()
            if lines is None:
                return
            if lines:
                yield b"".join(lines)
            else:
                self.wait()

    def wait(self) -> None:
        """Wait until there may be something to send."""
        watcher = self._watcher
        if watcher is None:
            return
        with watcher.wake:
            if not watcher.ready():
                due = self._deadline
                if self._bookmark is not None:
                    due = min(due, self._next_bookmark)
                self._clock.wait(watcher.wake, due - self._clock.monotonic())

    def ready(self) -> bool:
        """Whether there is something that need not wait for the clock; hold `wake`."""
        return self._watcher is None or self._watcher.ready()

    @property
    def wake(self) -> threading.Condition:
        """Notified when there may be something to send, and when it is closed."""
        return self._watcher.wake if self._watcher is not None else self._own_wake

    def close(self) -> None:
        """End the watch."""
        self._ended = True
        if self._watcher is not None:
            self._watcher.close()

    def _bookmark_time(self) -> float:
        now = self._clock.monotonic()
        last = self._deadline - BOOKMARK_BEFORE_END
        regular = now + BOOKMARK_INTERVAL
        return last if now < last < regular else regular


def watch(
    backend: Backend, call: Call, encoding: Encoding, options: ListOptions, name: str | None = None
) -> WatchBody:
    """Open a watch; `name` restricts it to one object. Raises 400, 406 and 500 failures."""
    info, store = call.info, backend.store
    namespace = call.target.namespace or None if info.namespaced else None
    matches, selected_name = predicate(options.label_selector, options.field_selector, info)
    name = name or selected_name
    encoder = Encoder(backend, info, encoding, call.request.query)
    try:
        revision = parse_revision(options.resource_version)
    except ValueError as error:
        raise revision_failure(error) from None
    lines = _Lines(info, encoder, matches)
    send_initial = options.send_initial_events
    initial: list[bytes] = []
    watcher: Watcher | None
    # Without a revision (or with 0) a watch begins with the current state, unless that was declined.
    ago = call.request.changes_ago
    if send_initial or (send_initial is None and revision == 0):
        if ago:
            # A server that lags behind begins with the state it knows; all that was since then follows.
            now = max(store.revision - ago, store.oldest(info.key))
            records = [r for r in store.list_at(info.key, now, namespace) if name in (None, r.name)]
            watcher = store.watch(info.key, now, namespace, name)
        else:
            records, now, watcher = store.list_and_watch(info.key, namespace, name)
        initial = [lines.line("ADDED", in_version(r, info), r) for r in records if lines.wanted(r)]
        if options.bookmarks:
            initial.append(lines.bookmark(now, initial_end=True))
    else:
        after = revision or store.revision
        if ago:
            # One from before the history stays there: it is to be refused, and nothing left out in silence.
            after = min(after, max(after - ago, store.oldest(info.key)))
        try:
            watcher = store.watch(info.key, after, namespace, name)
        except Compacted as error:
            watcher = None
            initial = [error_line(expired(f"too old resource version: {error.asked} ({error.oldest})"))]
    return WatchBody(
        backend.clock,
        watcher,
        lines.event,
        initial=initial,
        timeout=options.timeout or MIN_TIMEOUT * (1 + backend.rng.random()),
        bookmark=lines.bookmark if options.bookmarks else None,
        content_type=encoder.content_type,
    )


def error_line(failure: ApiFailure) -> bytes:
    """An ERROR event."""
    return b'{"type":"ERROR","object":%s}\n' % to_json(failure.to_status())


class _Lines:
    """Turns events into the lines of one watch."""

    def __init__(self, info: ResourceInfo, encoder: Encoder, matches: Predicate | None) -> None:
        self._info = info
        self._encoder = encoder
        self._matches = matches

    def wanted(self, record: Record) -> bool:
        return self._matches is None or self._matches(in_version(record, self._info))

    def event(self, event: Event) -> bytes | None:
        """The line for one change: what enters or leaves the selection is ADDED or DELETED."""
        record, previous = event.record, event.previous
        if self._matches is None:
            return self.line(event.type, None, record)
        before = previous is not None and self._matches(in_version(previous, self._info))
        after = event.type != "DELETED" and self._matches(in_version(record, self._info))
        if after:
            return self.line("MODIFIED" if before else "ADDED", None, record)
        if not before or previous is None:
            return None
        if event.type == "DELETED":
            return self.line("DELETED", None, record)
        # It left the selection: the client gets the last state that was in it, at the new revision.
        metadata = {**previous.obj["metadata"], "resourceVersion": str(record.revision)}
        last = {**in_version(previous, self._info), "metadata": metadata}
        return self.line("DELETED", last, None)

    def line(self, kind: str, obj: Object | None, record: Record | None) -> bytes:
        data = self._encoder.record(record) if record is not None else self._encoder.object(obj or {})
        self._encoder.columns_sent = True
        return b'{"type":"%s","object":%s}\n' % (kind.encode(), data.rstrip(b"\n"))

    def bookmark(self, revision: int, initial_end: bool = False) -> bytes:
        metadata: Object = {"resourceVersion": str(revision)}
        if initial_end:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        obj = {"kind": self._info.kind, "apiVersion": self._info.api_version, "metadata": metadata}
        return self.line("BOOKMARK", obj, None)
