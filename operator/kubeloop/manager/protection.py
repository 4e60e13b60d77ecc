"""Lets only those to the metrics whom the cluster allows it: TokenReview, then SubjectAccessReview.

As controller-runtime does: whoever asks shows a bearer token, the API server says whose it is, and RBAC
decides whether that user may ``get`` the path (a ClusterRole with ``nonResourceURLs: [/metrics]``). Tokens
are only ever kept as digests.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable
from typing import Any

from cachetools import TTLCache

from kubeloop.backoff import Backoff
from kubeloop.client import ApiError, Client, RetryPolicy, TransportError
from kubeloop.clock import Clock, SystemClock
from kubeloop.manager.http import Handler, Reply, Request
from kubeloop.model import Resource
from kubeloop.observe import fields

TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)

WHO_SECONDS = 60.0
"""How long it is remembered whose token it is, or that it is nobody's."""
ALLOWED_SECONDS, DENIED_SECONDS = 300.0, 30.0
"""How long an authorization, and a refusal, is remembered."""
REMEMBERED = 1024
"""Tokens and decisions; strangers who try tokens must not fill the memory."""
REVIEW_TIMEOUT = 10.0
"""Seconds for one request."""
REVIEW_RETRIES = RetryPolicy(attempts=5, backoff=Backoff(base=0.5, cap=5.0, factor=1.5, jitter=0.2))

_logger = logging.getLogger("kubeloop.manager")

User = dict[str, Any]


class Guard:
    """Wraps handlers. `client` must not be fenced: standbys are asked for metrics too."""

    def __init__(self, client: Client, *, clock: Clock | None = None) -> None:
        self._client = client
        timer: Callable[[], float] = (clock or SystemClock()).monotonic
        self._lock = threading.Lock()  # guards the caches
        self._users: TTLCache[str, User | None] = TTLCache(REMEMBERED, WHO_SECONDS, timer)
        self._allowed: TTLCache[tuple[str, str, str], bool] = TTLCache(REMEMBERED, ALLOWED_SECONDS, timer)
        self._denied: TTLCache[tuple[str, str, str], bool] = TTLCache(REMEMBERED, DENIED_SECONDS, timer)

    def protect(self, handler: Handler) -> Handler:
        """`handler` for those who may."""

        def answer(request: Request) -> Reply:
            refusal = self._refusal(request)
            return handler(request) if refusal is None else refusal

        return answer

    def _refusal(self, request: Request) -> Reply | None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return Reply.text("Unauthorized\n", 401)
        digest = hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
        try:
            user = self._user(token, digest)
            if user is None:
                return Reply.text("Unauthorized\n", 401)
            if not self._may(user, digest, request.method.lower(), request.path):
                return Reply.text("Forbidden\n", 403)
        except (ApiError, TransportError) as error:
            _logger.warning(
                "cannot find out who may see metrics", extra=fields(path=request.path, error=str(error))
            )
            return Reply.text("500 the API server could not say who may see this; the log says why\n", 500)
        return None

    def _user(self, token: str, digest: str) -> User | None:
        with self._lock:
            if digest in self._users:
                return self._users[digest]
        status = self._ask(TOKEN_REVIEWS, {"token": token})
        user = dict(status.get("user") or {}) if status.get("authenticated") is True else None
        with self._lock:
            self._users[digest] = user
        return user

    def _may(self, user: User, digest: str, method: str, path: str) -> bool:
        verb = "get" if method == "head" else method
        question = (digest, verb, path)
        with self._lock:
            if question in self._allowed:
                return True
            if question in self._denied:
                return False
        spec = {
            "user": user.get("username") or "",
            "uid": user.get("uid") or "",
            "groups": user.get("groups") or [],
            "extra": user.get("extra") or {},
            "nonResourceAttributes": {"path": path, "verb": verb},
        }
        allowed = self._ask(ACCESS_REVIEWS, spec).get("allowed") is True
        with self._lock:
            (self._allowed if allowed else self._denied)[question] = allowed
        return allowed

    def _ask(self, resource: Resource, spec: dict[str, Any]) -> dict[str, Any]:
        review = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}, "spec": spec}
        answer = self._client.create(resource, review)
        status = answer.get("status")
        return status if isinstance(status, dict) else {}
