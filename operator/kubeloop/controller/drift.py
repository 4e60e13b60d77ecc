"""Did what we want change, or did somebody change what is there? Pure comparisons, no requests.

"Nothing drifted" means: the wanted content is the one last applied (its hash), and the live object
is as the server left it after that apply: same ``metadata.generation``, our labels, annotations and
owner intact. The generation makes this exact, and immune to the server's defaults, normalised
quantities and mutating webhooks (D1).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

APPLIED = "kubeloop.dev/applied"
"""Annotation of an applied object: ``<hash of the content>:<generation the apply led to>``.

It lets a restarted operator see that nothing drifted, without a write. The generation is foretold:
1 for an object that is created, one more than before for one that is changed. Where the foretelling
failed (somebody was faster), the fields themselves are compared.
"""

# What tells the items of the API's lists of maps apart, best first; all of an entry's keys must be equal.
_ITEM_KEYS: tuple[tuple[str, ...], ...] = (
    ("name",),
    ("uid",),
    ("containerPort", "protocol"),
    ("port", "protocol"),
    ("mountPath",),
    ("devicePath",),
    ("type",),
    ("key",),
    ("ip",),
)


def content_hash(manifest: Mapping[str, Any]) -> str:
    """A short digest of the wanted content, independent of the order of keys."""
    canonical = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.blake2b(canonical.encode(), digest_size=10).hexdigest()


def stamp(digest: str, generation: int) -> str:
    """The value of the `APPLIED` annotation."""
    return f"{digest}:{generation}"


def read_stamp(value: str | None) -> tuple[str, int] | None:
    """Digest and generation from an `APPLIED` annotation; None if there is none that makes sense."""
    digest, separator, generation = (value or "").partition(":")
    return (digest, int(generation)) if separator and generation.isascii() and generation.isdigit() else None


def covers(wanted: Any, live: Any) -> bool:
    """Whether `live` has everything that `wanted` says; what `wanted` does not mention is ignored.

    Lists of maps that carry an identifying key are matched item by item, as server-side apply merges
    them; any other list must be equal as a whole. May say no where the server only wrote the same
    value in another way (``1000m`` for ``1``): then an apply changes nothing. Never says yes wrongly.
    """
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(k in live and covers(v, live[k]) for k, v in wanted.items())
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        return isinstance(live, Sequence) and not isinstance(live, str) and _covers_list(wanted, live)
    return type(wanted) is type(live) and bool(wanted == live)


def _covers_list(wanted: Sequence[Any], live: Sequence[Any]) -> bool:
    keys = _item_keys(wanted)
    if keys is None:
        return len(wanted) == len(live) and all(covers(w, have) for w, have in zip(wanted, live, strict=True))
    have = {_identity(item, keys): item for item in live if isinstance(item, Mapping)}
    return all(covers(item, have.get(_identity(item, keys))) for item in wanted)


def _item_keys(items: Sequence[Any]) -> tuple[str, ...] | None:
    if not items or not all(isinstance(item, Mapping) for item in items):
        return None
    return next((keys for keys in _ITEM_KEYS if all(keys[0] in item for item in items)), None)


def _identity(item: Mapping[str, Any], keys: tuple[str, ...]) -> tuple[Any, ...]:
    # The protocol of a port is part of its identity and defaults to TCP.
    return tuple(item.get(key, "TCP" if key == "protocol" else None) for key in keys)
