"""Between the transports and the API server: lets the rules have their way with each request."""

from __future__ import annotations

from kubeloop.clock import Clock
from kubeloop.sandbox.faults.effects import Effect
from kubeloop.sandbox.faults.rules import Asked, Faults
from kubeloop.sandbox.faults.watches import FaultyWatch
from kubeloop.sandbox.pipeline.request import Broken, Delivery, Request, Response, parse_path
from kubeloop.sandbox.pipeline.server import Answer, ApiServer, verb_of
from kubeloop.sandbox.pipeline.watching import WatchBody
from kubeloop.sandbox.status import ApiFailure


class Injector:
    """Handles requests as `ApiServer.handle` does, faults included. Thread-safe."""

    def __init__(self, api: ApiServer, faults: Faults) -> None:
        self._api = api
        self._faults = faults

    @property
    def stopped(self) -> bool:
        """Whether the sandbox has stopped."""
        return self._api.stopped

    @property
    def clock(self) -> Clock:
        """The sandbox's."""
        return self._api.backend.clock

    def hang(self, seconds: float) -> None:
        """Wait like a client without an answer, up to `seconds` (0: until the sandbox stops)."""
        self._wait(float("inf"), seconds)

    def handle(self, request: Request, timeout: float = 0) -> Answer:
        """One request of a client that waits up to `timeout` seconds (0: for ever)."""
        if not self._faults:
            return self._api.handle(request)
        asked = self._asked(request)
        effect = self._faults.draw(asked)
        if effect is None:
            return self._api.handle(request)
        answer = self._disturbed(request, effect, timeout)
        if answer.delivery is not None and answer.delivery.unhandled:
            self._api.note(request, asked.user(), answer.status, str(effect))
        return answer

    def _asked(self, request: Request) -> Asked:
        target = parse_path(request.path)
        info = self._api.backend.registry.find(target.group, target.version, target.resource)

        def user() -> str:
            try:
                return self._api.backend.access.authenticate(request.headers).name
            except ApiFailure:
                return ""  # nobody: the server will say so

        return Asked(
            verb=verb_of(request, target),
            group=target.group,
            resource=target.resource,
            kind=info.kind if info is not None else "",
            subresource=target.subresource,
            namespace=target.namespace,
            name=target.name,
            user_agent=request.headers.get("user-agent", ""),
            path=request.path,
            user=user,
            body=request.body,
        )

    def _disturbed(self, request: Request, effect: Effect, timeout: float) -> Answer:
        if effect.latency and not self._wait(effect.latency, timeout):
            return _broken("late")
        if effect.refuse:
            return _broken("refused")
        if effect.reset:
            return _broken("reset")
        if effect.silence:
            return _broken("silent")
        if effect.status:
            answer: Answer = effect.response()
            answer.delivery = Delivery(unhandled=True, truncate=effect.truncate, pieces=effect.pieces)
            return answer
        request.changes_ago = effect.stale
        answer = self._api.handle(request)
        if effect.lose_answer:
            if isinstance(answer, WatchBody):
                answer.close()
            return _broken("reset", unhandled=False)
        if isinstance(answer, WatchBody):
            answer = FaultyWatch(answer, effect)
        if effect.truncate is not None or effect.pieces is not None:
            answer.delivery = Delivery(truncate=effect.truncate, pieces=effect.pieces)
        return answer

    def _wait(self, seconds: float, timeout: float) -> bool:
        """Let `seconds` pass; False when the client gave up before."""
        clock = self._api.backend.clock
        begin = clock.monotonic()
        patience = timeout if timeout > 0 else float("inf")
        limit = begin + min(seconds, patience)
        with self._faults.changed:
            while not self._api.stopped:
                left = limit - clock.monotonic()
                if left <= 0:
                    break
                clock.wait(self._faults.changed, left)
        return seconds <= patience


def _broken(how: Broken, *, unhandled: bool = True) -> Response:
    return Response(0, {}, b"", Delivery(broken=how, unhandled=unhandled))
