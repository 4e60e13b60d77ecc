"""Errors say what was asked, what the server said, and no secret."""

from __future__ import annotations

import json
import pickle

import pytest

from kubeloop.client import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    InternalError,
    Invalid,
    MissingKeyError,
    NotFound,
    ServerTimeout,
    ServiceUnavailable,
    TooManyRequests,
    TransportError,
    Unauthorized,
)
from kubeloop.client.errors import MAX_MESSAGE, MAX_RETRY_AFTER, api_error


def status(code: int, reason: str = "", **more: object) -> bytes:
    given = {"kind": "Status", "code": code, "reason": reason, "message": "because", **more}
    return json.dumps(given).encode()


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", BadRequest),
        (401, "Unauthorized", Unauthorized),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (409, "Conflict", Conflict),
        (409, "AlreadyExists", AlreadyExists),
        (410, "Expired", Expired),
        (410, "Gone", Expired),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", TooManyRequests),
        (500, "InternalError", InternalError),
        (500, "ServerTimeout", ServerTimeout),
        (503, "ServiceUnavailable", ServiceUnavailable),
        (504, "Timeout", ServerTimeout),
        (418, "Teapot", ApiError),
    ],
)
def test_each_answer_has_its_type(code: int, reason: str, kind: type[ApiError]) -> None:
    """R0.12, R0.26"""
    error = api_error("patch", "things default/a", code, status(code, reason))
    assert type(error) is kind
    assert str(error) == f"patch things default/a: {code} {reason}: because"


def test_a_page_of_html_is_an_error_too() -> None:
    error = api_error("get", "things a", 502, b"<html>\n  <h1>Bad   Gateway</h1>\xff" + b"x" * 100_000)
    assert str(error).startswith("get things a: 502 Unknown: <html> <h1>Bad Gateway</h1>")
    assert len(str(error)) < MAX_MESSAGE + 200


def test_a_message_of_many_pages_is_cut() -> None:
    error = api_error("create", "things a", 422, status(422, "Invalid", message="y" * 1_000_000))
    assert len(str(error)) < MAX_MESSAGE + 200
    assert "1000000 characters" in str(error)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("2", 2.0),
        ("1000000000000", MAX_RETRY_AFTER),
        ("1e400", MAX_RETRY_AFTER),
        ("nan", None),
        ("-5", None),
        ("0", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        ("9" * 400, MAX_RETRY_AFTER),
    ],
)
def test_retry_after_never_overflows(header: str, seconds: float | None) -> None:
    """kube-rs/kube#1772"""
    assert api_error("get", "x", 429, status(429), {"retry-after": header}).retry_after == seconds


def test_retry_after_may_stand_in_the_status() -> None:
    body = status(429, "TooManyRequests", details={"retryAfterSeconds": 3})
    assert api_error("get", "x", 429, body).retry_after == 3
    assert api_error("get", "x", 429, status(429, details="odd")).retry_after is None


def test_causes_are_at_hand() -> None:
    cause = {"reason": "FieldValueInvalid", "message": "no", "field": "spec.image"}
    error = api_error("apply", "x", 422, status(422, "Invalid", details={"causes": [cause, "odd"]}))
    assert error.causes == (cause,)
    assert api_error("apply", "x", 422, b"").causes == ()


def test_a_missing_object_and_a_missing_type_are_told_apart() -> None:
    body = status(404, "NotFound", details={"name": "a", "kind": "things"})
    missing = api_error("get", "things a", 404, body)
    assert isinstance(missing, NotFound)
    assert not missing.kind_missing
    unknown = api_error("get", "things a", 404, b"404 page not found\n")
    assert isinstance(unknown, NotFound)
    assert unknown.kind_missing


def test_a_version_from_the_future_is_recognised() -> None:
    for body in (
        status(504, "Timeout", message="Too large resource version: 9, current: 5"),
        status(504, "Timeout", details={"causes": [{"reason": "ResourceVersionTooLarge"}]}),
    ):
        error = api_error("watch", "things", 504, body)
        assert isinstance(error, ServerTimeout)
        assert error.resource_version_too_large


def test_errors_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(api_error("get", "things a", 404, status(404, "NotFound"))))
    assert isinstance(error, NotFound)
    assert error.code == 404


def test_a_missing_key_is_an_error_of_its_own() -> None:
    """R0.12"""
    error = MissingKeyError(".metadata.namespace")
    assert error.key == ".metadata.namespace"
    assert str(error) == "missing key .metadata.namespace"


def test_a_transport_error_is_never_silent() -> None:
    assert str(TransportError("get", "things a", TimeoutError())) == "get things a: TimeoutError"
