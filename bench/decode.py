"""Decoding and caching: prints one line each with CPU µs an operation, the best of several rounds."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from typing import Any

from sample_objects import pair

from kubeloop.cache.codec import Candidate, Codec
from kubeloop.cache.lines import split_event
from kubeloop.cache.store import Store
from kubeloop.model import Deployment
from webapp_operator.types import WebApp

ROUNDS, TIMES = 15, 400


def best(action: Callable[[], object]) -> float:
    """CPU µs."""
    for _ in range(TIMES):
        action()
    rounds = []
    for _ in range(ROUNDS):
        began = time.thread_time()
        for _ in range(TIMES):
            action()
        rounds.append((time.thread_time() - began) / TIMES)
    return min(rounds) * 1e6


def measure(kind: type[WebApp] | type[Deployment], raw: list[bytes]) -> None:
    """One kind's lines."""
    codec: Codec[Any] = Codec(kind)
    store = Store(codec)
    candidates = [codec.candidate(one) for one in raw]
    for candidate in candidates:
        assert isinstance(candidate, Candidate), candidate
        store.change(None, candidate)
    line = b'{"type":"MODIFIED","object":' + raw[7] + b"}"
    name, key = kind.__name__, store.keys()[7]
    for what, action in (
        (f"decode a {name} of {len(raw[7])} bytes", lambda: kind.model_validate_json(raw[7])),
        (f"take a {name} event in: split, decode, pack", lambda: codec.candidate(split_event(line)[1])),
        (f"store.get of a {name}: unpack, decode", lambda: store.get(key)),
    ):
        print(f"{what}: {best(action):.1f} us")


def main() -> None:
    rng = random.Random(1)
    pairs = [pair(number, rng) for number in range(200)]
    for index, kind in enumerate((WebApp, Deployment)):
        measure(kind, [json.dumps(both[index], separators=(",", ":")).encode() for both in pairs])


if __name__ == "__main__":
    main()
