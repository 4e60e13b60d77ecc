"""``/sandbox/...``: faults, clock, log and restarts of a sandbox that runs as a process of its own.

========================  =======================================================================
GET /sandbox/faults       the rules, and how often each has happened
POST /sandbox/faults      add one: the arguments of `Faults.add` as a JSON object
DELETE /sandbox/faults    remove all; ``/sandbox/faults/<number>`` one
GET /sandbox/clock        the sandbox's time
POST /sandbox/clock       ``{"advance": <seconds>}``
GET /sandbox/log          the requests; query parameters as `RequestLog.entries` has them
POST /sandbox/restart     ``{"data": "keep"}`` or ``"lose"``
POST /sandbox/compact     forget the history
========================  =======================================================================

Only served to clients on the same machine that address it as such: a web page that somebody has open must not
be able to reach it. Sandboxes do not have it unless they are told to.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from kubeloop.sandbox.pipeline.request import Request, Response

if TYPE_CHECKING:
    from kubeloop.sandbox.sandbox import Sandbox

PREFIX = "/sandbox/"
_LOG_NUMBERS = ("since", "status")


class RefusedError(Exception):
    """An admin request that cannot be done."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Admin:
    """Answers the requests below `PREFIX`."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._then: Callable[[], None] | None = None

    def finish(self) -> None:
        """Called when an answer has been sent: does what would have ended its connection."""
        then, self._then = self._then, None
        if then is not None:
            then()

    def handle(self, request: Request, peer: str) -> Response:
        """One request from the address `peer`. Never raises."""
        try:
            _check_local(request, peer)
            return _answer(200, self._do(request))
        except RefusedError as refused:
            return _answer(refused.code, {"error": str(refused)})
        except (TypeError, ValueError) as error:
            return _answer(400, {"error": str(error)})

    def _do(self, request: Request) -> Any:
        what, _, rest = request.path.removeprefix(PREFIX).partition("/")
        does: Callable[[Request, str], Any] | None = getattr(self, f"_{request.method.lower()}_{what}", None)
        if does is None:
            raise RefusedError(404, f"there is no {request.method} {request.path}")
        return does(request, rest)

    def _get_faults(self, request: Request, rest: str) -> Any:
        del request, rest
        return {"faults": [fault.describe() for fault in self._sandbox.faults]}

    def _post_faults(self, request: Request, rest: str) -> Any:
        del rest
        return self._sandbox.faults.add(**_body(request)).describe()

    def _delete_faults(self, request: Request, rest: str) -> Any:
        del request
        if not rest:
            self._sandbox.faults.clear()
            return {}
        for fault in self._sandbox.faults:
            if str(fault.number) == rest:
                fault.remove()
                return fault.describe()
        raise RefusedError(404, f"there is no fault {rest}")

    def _get_clock(self, request: Request, rest: str) -> Any:
        del request, rest
        clock = self._sandbox.clock
        return {"now": clock.now().isoformat(), "monotonic": clock.monotonic()}

    def _post_clock(self, request: Request, rest: str) -> Any:
        advance = getattr(self._sandbox.clock, "advance", None)
        if advance is None:
            raise RefusedError(409, "the clock of this sandbox cannot be moved")
        advance(float(_body(request)["advance"]))
        return self._get_clock(request, rest)

    def _get_log(self, request: Request, rest: str) -> Any:
        del rest
        asked: dict[str, Any] = dict(parse_qsl(request.target.partition("?")[2]))
        for name in _LOG_NUMBERS:
            if name in asked:
                asked[name] = int(asked[name])
        entries = self._sandbox.log.entries(**asked)
        return {"entries": [{**asdict(e), "time": e.time.isoformat()} for e in entries]}

    def _post_restart(self, request: Request, rest: str) -> Any:
        del rest
        data = _body(request).get("data", "keep")
        if data not in ("keep", "lose"):
            raise RefusedError(400, f"data is kept or lost, not {data!r}")
        self._then = partial(self._sandbox.restart_soon, data)
        return {}

    def _post_compact(self, request: Request, rest: str) -> Any:
        del request, rest
        self._sandbox.compact()
        return {}


def _check_local(request: Request, peer: str) -> None:
    host = request.headers.get("host", "").rpartition(":")[0].strip("[]") or request.headers.get("host", "")
    local = host == "localhost" or _loopback(host)
    if not (local and _loopback(peer)) or "origin" in request.headers:
        raise RefusedError(403, "only for programs on this machine")


def _loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def _body(request: Request) -> dict[str, Any]:
    value = json.loads(request.body or b"{}")
    if not isinstance(value, dict):
        raise RefusedError(400, "the body must be a JSON object")
    return value


def _answer(status: int, value: Any) -> Response:
    return Response(status, {"content-type": "application/json"}, json.dumps(value).encode() + b"\n")
