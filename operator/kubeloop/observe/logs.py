"""Logging set up once, at start: JSON for machines, readable text for people.

Every line has a constant message and its variables as fields, so that lines can be counted and filtered
without parsing prose. Fields go into a record under one attribute, because the standard library forbids
fields of the names it uses itself, and ``name`` is what everybody calls an object's name.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any, TextIO

LOG_FORMATS = ("json", "text")
LOG_LEVELS = ("debug", "info", "warning", "error")

# Attributes that every LogRecord has; whatever else is on a record was given by the caller as a field.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

_SHORT = {"WARNING": "WARN", "CRITICAL": "FATAL"}
_COLOURS = {logging.DEBUG: "2", logging.INFO: "36", logging.WARNING: "33", logging.ERROR: "31"}


def configure_logging(*, level: str = "info", fmt: str = "text", stream: TextIO | None = None) -> None:
    """Send the process' logs to `stream` (stderr) in the format `fmt` from `level` up.

    Raises ValueError for an unknown level or format.
    """
    if level not in LOG_LEVELS or fmt not in LOG_FORMATS:
        raise ValueError(f"unknown log level {level!r} or format {fmt!r}")
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_json_formatter() if fmt == "json" else TextFormatter(colours=stream.isatty()))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # urllib3 says at debug what our own client says better, and could print tokens in URLs of proxies.
    logging.getLogger("urllib3").setLevel(logging.WARNING)
    logging.captureWarnings(True)


def fields(**values: Any) -> dict[str, Any]:
    """Fields for one line: ``logger.info("reconciled WebApp", extra=fields(ns="default", name="hello"))``."""
    return {"fields": values}


class FieldLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger that adds the same fields to each of its lines."""

    def __init__(self, logger: logging.Logger, **values: Any) -> None:
        super().__init__(logger, values)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Merge the fields of the line into ours."""
        extra = dict(kwargs.get("extra") or {})
        extra["fields"] = {**(self.extra or {}), **extra.get("fields", {})}
        return msg, {**kwargs, "extra": extra}


def _json_formatter() -> logging.Formatter:
    # Imported here: text logs, and everything that only imports this module, need not pay for it.
    from pythonjsonlogger.json import JsonFormatter

    class Formatter(JsonFormatter):
        def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802
            return _time(record).isoformat(timespec="milliseconds").replace("+00:00", "Z")

        def process_log_record(self, log_data: dict[str, Any]) -> dict[str, Any]:
            given = log_data.pop("fields", None) or {}
            return super().process_log_record({**log_data, **given})

    return Formatter(
        "%(asctime)s %(levelname)s %(name)s %(message)s",
        rename_fields={"asctime": "time", "levelname": "severity", "name": "logger"},
        json_ensure_ascii=False,
    )


class TextFormatter(logging.Formatter):
    """``12:00:01.234 INFO  controller  reconciled WebApp  ns=default name=hello``, coloured on a terminal."""

    def __init__(self, *, colours: bool) -> None:
        super().__init__()
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        """The line for `record`, with a traceback below it if it carries one."""
        time = _time(record).strftime("%H:%M:%S.%f")[:-3]
        level = f"{_SHORT.get(record.levelname, record.levelname):<5}"
        message = record.getMessage()
        rest = " ".join(f"{key}={_text(value)}" for key, value in fields_of(record).items())
        if self._colours:
            time, rest = f"\x1b[2m{time}\x1b[0m", f"\x1b[2m{rest}\x1b[0m" if rest else ""
            level = f"\x1b[{_COLOURS.get(record.levelno, '0')}m{level}\x1b[0m"
        line = f"{time} {level} {message}" + (f"  {rest}" if rest else "")
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """The fields that the caller gave beside the message, in the order given."""
    own = {key: value for key, value in vars(record).items() if key not in _STANDARD}
    return {**own.pop("fields", {}), **own}


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _text(value: Any) -> str:
    text = str(value)
    return repr(text) if not text or any(c.isspace() or c in "\"'=" for c in text) else text
