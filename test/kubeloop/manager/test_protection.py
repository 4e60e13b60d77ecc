"""Who may see the metrics (go-anchors 4.6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kubeloop.client import TransportError
from kubeloop.clock import FakeClock
from kubeloop.manager.http import Reply, Request
from kubeloop.manager.protection import ALLOWED_SECONDS, DENIED_SECONDS, WHO_SECONDS, Guard


class Reviews:
    """The API server: knows users by token, and who may see what."""

    def __init__(self) -> None:
        self.users = {
            "good": {"username": "prometheus", "groups": ["scrapers"]},
            "other": {"username": "eve"},
        }
        self.allowed = {("prometheus", "/metrics", "get")}
        self.asked: list[str] = []
        self.down = False

    def create(self, resource: Any, review: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append(resource.kind)
        if self.down:
            raise TransportError("create", resource.plural, ConnectionError("refused"))
        spec = review["spec"]
        if resource.kind == "TokenReview":
            user = self.users.get(spec["token"])
            return {"status": {"authenticated": user is not None, "user": user or {}}}
        attributes = spec["nonResourceAttributes"]
        question = (spec["user"], attributes["path"], attributes["verb"])
        return {"status": {"allowed": question in self.allowed}}


@pytest.fixture
def reviews() -> Reviews:
    return Reviews()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def guard(reviews: Reviews, clock: FakeClock) -> Guard:
    return Guard(reviews, clock=clock)  # type: ignore[arg-type]


def ask(guard: Guard, authorization: str | None, path: str = "/metrics", method: str = "GET") -> int:
    headers = {} if authorization is None else {"authorization": authorization}
    return guard.protect(lambda _: Reply.text("secret"))(Request(method, path, {}, headers)).status


@pytest.mark.parametrize("authorization", [None, "", "Bearer", "Bearer ", "Basic Z29vZA==", "good"])
def test_without_a_token_nobody_is_asked(guard: Guard, reviews: Reviews, authorization: str | None) -> None:
    assert ask(guard, authorization) == 401
    assert reviews.asked == []


def test_a_token_of_somebody_who_may_opens_the_page(guard: Guard) -> None:
    assert ask(guard, "Bearer good") == 200
    assert ask(guard, "bearer good", method="HEAD") == 200


def test_an_unknown_token_is_401_and_one_without_rights_403(guard: Guard) -> None:
    assert ask(guard, "Bearer wrong") == 401
    assert ask(guard, "Bearer other") == 403
    assert ask(guard, "Bearer good", "/statusz") == 403


def test_answers_are_remembered_for_a_while(guard: Guard, reviews: Reviews, clock: FakeClock) -> None:
    for _ in range(5):
        ask(guard, "Bearer good")
        ask(guard, "Bearer wrong")
    assert reviews.asked == ["TokenReview", "SubjectAccessReview", "TokenReview"]
    clock.advance(WHO_SECONDS + 1)
    ask(guard, "Bearer good")

    assert reviews.asked[3:] == ["TokenReview"]


def test_a_refusal_is_forgotten_sooner_than_a_permission(
    guard: Guard, reviews: Reviews, clock: FakeClock
) -> None:
    ask(guard, "Bearer good")
    ask(guard, "Bearer other")
    reviews.allowed = {("eve", "/metrics", "get")}
    clock.advance(DENIED_SECONDS + 1)
    assert (ask(guard, "Bearer good"), ask(guard, "Bearer other")) == (200, 200)
    clock.advance(ALLOWED_SECONDS)

    assert ask(guard, "Bearer good") == 403


def test_a_failing_review_is_500_and_not_remembered(guard: Guard, reviews: Reviews) -> None:
    reviews.down = True
    assert ask(guard, "Bearer good") == 500
    reviews.down = False

    assert ask(guard, "Bearer good") == 200
