"""Memory of a cache: prints one line with the bytes that a WebApp and its Deployment take together, indexes
and keys included. `cache_memory.py [pairs]`"""

from __future__ import annotations

import gc
import json
import random
import sys
from typing import Any

from harness import AtMost, report
from operating import resident
from sample_objects import pair

from kubeloop.cache.codec import Candidate, Codec
from kubeloop.cache.store import Store
from kubeloop.model import Deployment
from webapp_operator.types import WebApp

PAIRS = 10_000
TARGET_BYTES = 3000


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    rng = random.Random(1)
    apps: Codec[Any] = Codec(WebApp)
    deployments: Codec[Any] = Codec(Deployment)
    stores: list[tuple[Codec[Any], Store[Any]]] = [(apps, Store(apps)), (deployments, Store(deployments))]
    for codec, store in stores:  # whatever is built on first use
        found = codec.candidate(json.dumps(pair(0, rng)[codec is deployments]).encode())
        assert isinstance(found, Candidate), found
        store.change(None, found)
    gc.collect()
    before = resident()
    wire = 0
    for number in range(1, pairs + 1):
        for (codec, store), content in zip(stores, pair(number, rng), strict=True):
            raw = json.dumps(content, separators=(",", ":")).encode()
            wire += len(raw)
            found = codec.candidate(raw)
            assert isinstance(found, Candidate), found
            content["metadata"]["resourceVersion"] = "0"
            found.entry.version = number
            store.change(None, found)
    gc.collect()
    after = resident()
    note = f"{wire / pairs:,.0f} on the wire; {after / 1e6:.1f} MB resident with {pairs:,} pairs"
    report(
        "WebApp and Deployment in the cache",
        (after - before) / pairs,
        "bytes",
        AtMost(TARGET_BYTES),
        note=note,
        form=",.0f",
    )


if __name__ == "__main__":
    main()
