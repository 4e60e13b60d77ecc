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

from pydantic_core import to_json

from kubeloop.model import KubeObject

APPLIED = "kubeloop.dev/applied"
"""Annotation of an applied object: ``<hash of the content>:<generation the apply led to>``.

It lets a restarted operator see that nothing drifted, without a write. The generation is foretold:
1 for an object that is created, one more than before for one that is changed. Where the foretelling
failed (somebody was faster), the fields themselves are compared.
"""

# What tells the items of the API's lists of maps apart, best first; all of an entry's keys must be equal.
# `key` and `type` are not here: they stand in lists that the server replaces as a whole (tolerations, the
# expressions of a selector, the metrics of an autoscaler), and may stand there twice.
_ITEM_KEYS: tuple[tuple[str, ...], ...] = (
    ("name",),
    ("uid",),
    ("containerPort", "protocol"),
    ("port", "protocol"),
    ("mountPath",),
    ("devicePath",),
    ("ip",),
)

_WHOLE = frozenset({"subjects", "selector", "matchLabels", "nodeSelector"})
"""Fields with lists of named items that the server replaces as a whole: one item more is drift (and in a
RoleBinding, a right)."""

_GENERATION_DIGITS = 19
"""As many as an int64 has."""


_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode
_SCALARS = frozenset((str, int, float, bool, type(None)))


def fingerprint(manifest: Mapping[str, Any]) -> bytes:
    """Equal only for equal content that is also in the same order: what one builder makes again and again. A
    quarter of the price of `content_hash`, but worth nothing to another process."""
    return hashlib.blake2b(to_json(manifest), digest_size=10).digest()


def content_hash(manifest: Mapping[str, Any]) -> str:
    """A short digest of the wanted content, independent of the order of keys."""
    return hashlib.blake2b(_canonical(manifest).encode(), digest_size=10).hexdigest()


def stamp(digest: str, generation: int) -> str:
    """The value of the `APPLIED` annotation."""
    return f"{digest}:{generation}"


def read_stamp(value: str | None) -> tuple[str, int] | None:
    """Digest and generation from an `APPLIED` annotation; None if there is none that makes sense."""
    digest, _, generation = (value or "").partition(":")
    # Anybody can edit an annotation, also into more digits than `int` is willing to read.
    number = generation.isascii() and generation.isdigit() and len(generation) <= _GENERATION_DIGITS
    return (digest, int(generation)) if number else None


def applied_generation(obj: KubeObject) -> int | None:
    """The generation that our last apply of this object led to; None if we never applied it. What others
    change later, be it an annotation, moves the generation on."""
    stamped = read_stamp(obj.annotations.get(APPLIED))
    return stamped[1] if stamped is not None else None


def covers(wanted: Any, live: Any) -> bool:
    """Whether `live` has everything that `wanted` says; what `wanted` does not mention is ignored.

    Lists of maps that carry an identifying key are matched item by item, as server-side apply merges
    them; any other list, and one in which that key does not tell all items apart, must be equal as a whole.
    May say no where the server only wrote the same value in another way (``1000m`` for ``1``): then an apply
    changes nothing. Never says yes wrongly.
    """
    kind = type(wanted)
    if kind in _SCALARS:
        return kind is type(live) and bool(wanted == live)
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(
            k in live and covers(v, live[k]) and (k not in _WHOLE or _as_many(v, live[k]))
            for k, v in wanted.items()
        )
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        return isinstance(live, Sequence) and not isinstance(live, str) and _covers_list(wanted, live)
    return isinstance(wanted, type(live)) and bool(wanted == live)  # a member of a StrEnum is its value


def _covers_list(wanted: Sequence[Any], live: Sequence[Any]) -> bool:
    for keys in _ITEM_KEYS if wanted and isinstance(wanted[0], Mapping) else ():
        if keys[0] in wanted[0]:
            mine, there = _by_identity(wanted, keys), _by_identity(live, keys)
            if mine is not None and there is not None and len(mine) == len(wanted):
                return all(which in there and covers(item, there[which]) for which, item in mine.items())
    return len(wanted) == len(live) and all(covers(w, have) for w, have in zip(wanted, live, strict=True))


def _by_identity(
    items: Sequence[Any], keys: tuple[str, ...]
) -> dict[tuple[str | int, ...], Mapping[str, Any]] | None:
    """The items that have an identity, by it; None if two have the same."""
    found: dict[tuple[str | int, ...], Mapping[str, Any]] = {}
    for item in items:
        if isinstance(item, Mapping):
            # The protocol of a port is part of its identity and defaults to TCP.
            which = tuple(item.get(key, "TCP" if key == "protocol" else None) for key in keys)
            if all(isinstance(part, str | int) for part in which):
                if which in found:
                    return None
                found[which] = item
    return found


def _as_many(wanted: Any, live: Any) -> bool:
    return not isinstance(wanted, Sequence | Mapping) or len(wanted) == len(live)
