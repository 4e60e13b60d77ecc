"""Log lines: constant messages, fields beside them, severities that collectors know."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from kubeloop.observe import FieldLogger, configure_logging, fields


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)


def test_a_json_line_has_time_severity_message_and_fields() -> None:
    stream = io.StringIO()
    configure_logging(fmt="json", stream=stream)
    log = FieldLogger(logging.getLogger("kubeloop.test"), ns="default", name="hello", reconcile_id="1a2b")
    log.warning("reconcile is stuck", extra=fields(seconds=60.5))
    line = json.loads(stream.getvalue())

    assert line.pop("time").endswith("Z")
    assert line == {
        "severity": "WARNING",
        "logger": "kubeloop.test",
        "message": "reconcile is stuck",
        "ns": "default",
        "name": "hello",
        "reconcile_id": "1a2b",
        "seconds": 60.5,
    }


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_severities_are_those_of_klog(level: str) -> None:
    stream = io.StringIO()
    configure_logging(fmt="json", level="debug", stream=stream)
    getattr(logging.getLogger("kubeloop.test"), level)("a line")

    assert json.loads(stream.getvalue())["severity"] == level.upper()


def test_an_exception_is_part_of_its_line() -> None:
    stream = io.StringIO()
    configure_logging(fmt="json", stream=stream)
    try:
        raise ValueError("no")
    except ValueError:
        logging.getLogger("kubeloop.test").exception("a page could not be made")

    (line,) = stream.getvalue().splitlines()
    assert "ValueError: no" in json.loads(line)["exc_info"]


def test_text_for_people_shows_fields_after_the_message() -> None:
    stream = io.StringIO()
    configure_logging(fmt="text", stream=stream)
    logging.getLogger("kubeloop.test").info("listening", extra=fields(server="health", name="a b"))

    assert stream.getvalue().endswith("INFO  listening  server=health name='a b'\n")


@pytest.mark.parametrize("wrong", [{"level": "loud"}, {"fmt": "xml"}])
def test_an_unknown_level_or_format_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="unknown"):
        configure_logging(**wrong)  # type: ignore[arg-type]
