"""Ages as kubectl prints them (apimachinery: duration.HumanDuration)."""

from __future__ import annotations

from datetime import UTC, datetime

UNKNOWN = "<unknown>"
_DAY = 24


def human(seconds: float) -> str:
    """``45s``, ``5m30s``, ``3h``, ``2d4h``, ``1y20d``: ever coarser."""
    total = int(seconds)
    if total < -1:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    if total < 120:
        return f"{total}s"
    minutes, hours = total // 60, total // 3600
    if minutes < 10:
        rest = total % 60
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        rest = minutes % 60
        return f"{hours}h{rest}m" if rest else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    days = hours // _DAY
    if hours < _DAY * 8:
        rest = hours % _DAY
        return f"{days}d{rest}h" if rest else f"{days}d"
    if hours < _DAY * 365 * 2:
        return f"{days}d"
    years, rest = divmod(days, 365)
    if hours < _DAY * 365 * 8:
        return f"{years}y{rest}d" if rest else f"{years}y"
    return f"{years}y"


def parse(text: object) -> datetime | None:
    """An RFC 3339 time; None when it is not one."""
    if not isinstance(text, str) or not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def since(text: object, now: datetime) -> str:
    """How long ago a timestamp was, ``<unknown>`` without one."""
    moment = parse(text)
    return UNKNOWN if moment is None else human((now - moment).total_seconds())
