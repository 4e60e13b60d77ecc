"""The API server's warnings (RFC 7234 `Warning: 299` headers): each is logged once."""

from __future__ import annotations

import logging
import re
import threading

from cachetools import LRUCache

_log = logging.getLogger("kubeloop.client")

# warn-code SP warn-agent SP warn-text, several separated by commas; the text is a quoted string.
_WARNING = re.compile(r'299 [^ ]+ "((?:[^"\\]|\\.)*)"')
_REMEMBERED = 1024


class Warnings:
    """Remembers which warnings were logged already. Thread-safe, bounded."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _seen: LRUCache reorders on reads
        self._seen: LRUCache[str, bool] = LRUCache(_REMEMBERED)

    def log(self, header: str, target: str) -> None:
        """Log what the header of an answer about `target` says and was not said before."""
        for match in _WARNING.finditer(header):
            text = re.sub(r"\\(.)", r"\1", match[1])[:1024]
            with self._lock:
                fresh = text not in self._seen
                self._seen[text] = True
            if fresh:
                _log.warning("the API server warns", extra={"fields": {"warning": text, "target": target}})
