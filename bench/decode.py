"""Decoding: prints one line for each kind with the CPU time from JSON to an object of its class.

The notes say what an event of a watch costs until it is packed for the cache, and a read that has to decode.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import cycle
from typing import Any

from harness import AtMost, best_cpu, report
from sample_objects import pair

from kubeloop.cache.codec import Candidate, Codec
from kubeloop.cache.lines import split_event
from kubeloop.cache.store import Store
from kubeloop.model import Deployment
from webapp_operator.types import WebApp

TIMES = 400
PAIRS = 1000
TARGET_US = 25.0


def micros(action: Callable[[], object]) -> float:
    """CPU us."""

    def batch() -> int:
        for _ in range(TIMES):
            action()
        return TIMES

    return best_cpu(batch) * 1e6


def measure(kind: Any, raw: list[bytes]) -> None:
    """One kind's line."""
    codec: Codec[Any] = Codec(kind)
    store = Store(codec)
    for candidate in map(codec.candidate, raw):
        assert isinstance(candidate, Candidate), candidate
        store.change(None, candidate)
    line = b'{"type":"MODIFIED","object":' + raw[7] + b"}"
    keys = cycle(store.keys()[: PAIRS // 4])  # the oldest: the store does not keep them decoded
    decode = micros(lambda: kind.model_validate_json(raw[7]))
    event = micros(lambda: codec.candidate(split_event(line)[1]))
    get = micros(lambda: store.get(next(keys)))
    note = f"{len(raw[7]):,} bytes; a watch's event until packed {event:.1f} us, store.get {get:.1f} us"
    report(f"decode a {kind.__name__}", decode, "us CPU", AtMost(TARGET_US), note=note)


def main() -> None:
    rng = random.Random(1)
    pairs = [pair(number, rng) for number in range(PAIRS)]
    for index, kind in enumerate((WebApp, Deployment)):
        measure(kind, [json.dumps(both[index], separators=(",", ":")).encode() for both in pairs])


if __name__ == "__main__":
    main()
