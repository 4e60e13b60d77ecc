"""/healthz and /readyz as controller-runtime prints them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kubeloop.manager.health import Health


def fails() -> str:
    return "WebApp: cannot list webapps.example.com"


def raises() -> str:
    raise RuntimeError("oops")


@pytest.fixture
def browser(serve: Callable[[Any], Any]) -> Any:
    routes = Health("/healthz", {"a": lambda: "", "z": lambda: ""}).routes()
    routes.add(Health("/readyz", {"caches": fails, "other": lambda: ""}).routes())
    return serve(routes)


def test_all_well_is_ok(browser: Any) -> None:
    for path in ("/healthz", "/healthz/", "/healthz/a", "/healthz/ping"):
        assert (browser.get(path).status, browser.get(path).text) == (200, "ok")


def test_verbose_lists_the_checks(browser: Any) -> None:
    assert browser.get("/healthz?verbose").text == "[+]a ok\n[+]ping ok\n[+]z ok\nhealthz check passed\n"


def test_a_failing_check_fails_the_whole_and_withholds_its_reason(browser: Any) -> None:
    got = browser.get("/readyz")

    assert got.status == 500
    assert got.text == ("[-]caches failed: reason withheld\n[+]other ok\n[+]ping ok\nhealthz check failed\n")


def test_verbose_and_the_checks_own_path_tell_the_reason(browser: Any) -> None:
    assert (
        "[-]caches failed: WebApp: cannot list webapps.example.com\n" in browser.get("/readyz?verbose").text
    )
    own = browser.get("/readyz/caches")
    assert (own.status, own.text) == (500, f"internal server error: {fails()}\n")


def test_checks_can_be_excluded(browser: Any) -> None:
    got = browser.get("/readyz?exclude=caches&exclude=nothing&verbose")

    assert got.status == 200
    assert got.text == (
        "[+]caches excluded: ok\n[+]other ok\n[+]ping ok\n"
        'warn: some health checks cannot be excluded: no matches for "nothing"\n'
        "healthz check passed\n"
    )


def test_a_check_that_does_not_exist_is_not_found(browser: Any) -> None:
    assert browser.get("/healthz/nothing").status == 404


def test_a_check_that_raises_has_failed(serve: Callable[[Any], Any]) -> None:
    browser = serve(Health("/healthz", {"bad": raises}).routes())

    assert browser.get("/healthz").status == 500
    assert "oops" not in browser.get("/healthz?verbose").text
