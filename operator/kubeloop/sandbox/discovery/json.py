"""How documents are written."""

from __future__ import annotations

import json
from typing import Any

JSON = "application/json"


def dump(value: Any) -> bytes:
    """Compact JSON with a final line break, as the server writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
