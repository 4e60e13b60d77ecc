"""Whether an object is the one we created, although the answer to our request was lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_our_creation(sent: Mapping[str, Any], live: Mapping[str, Any], field_manager: str | None) -> bool:
    """True only if there is no doubt: made by our field manager, by a create, holding all that was sent, and
    not changed in its desired state since. Without a field manager nothing can be proved."""
    if not field_manager:
        return False
    metadata = live.get("metadata") or {}
    if metadata.get("deletionTimestamp") or metadata.get("generation", 1) != 1:
        return False
    entries = [entry for entry in metadata.get("managedFields") or () if not entry.get("subresource")]
    if [(entry.get("manager"), entry.get("operation")) for entry in entries] != [(field_manager, "Update")]:
        return False
    return _covers({key: value for key, value in sent.items() if key != "status"}, live)


def _covers(sent: Any, live: Any) -> bool:
    """Whether `live` has everything of `sent`; the server may have added to objects, not to lists."""
    if isinstance(sent, Mapping):
        return isinstance(live, Mapping) and all(
            value is None or (key in live and _covers(value, live[key])) for key, value in sent.items()
        )
    if isinstance(sent, list | tuple):
        return (
            isinstance(live, list)
            and len(sent) == len(live)
            and all(_covers(one, other) for one, other in zip(sent, live, strict=True))
        )
    return bool(sent == live)
