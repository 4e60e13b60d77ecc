"""Memory of a cache: prints one line with the bytes that a WebApp and its Deployment take together, indexes
and keys included, and the resident memory of the process that holds them. `cache_memory.py [pairs]`"""

from __future__ import annotations

import gc
import json
import random
import sys
from pathlib import Path

from sample_objects import pair

from kubeloop.cache.codec import Candidate, Codec
from kubeloop.cache.store import Store
from kubeloop.model import Deployment
from webapp_operator.types import WebApp


def resident() -> int:
    """Bytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rng = random.Random(1)
    apps, deployments = Codec(WebApp), Codec(Deployment)
    stores = [(apps, Store(apps)), (deployments, Store(deployments))]
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
    print(
        f"cache memory: {(after - before) / pairs:.0f} bytes a pair ({wire / pairs:.0f} on the wire), "
        f"{after / 2**20:.1f} MiB resident with {pairs} + {pairs} objects"
    )


if __name__ == "__main__":
    main()
