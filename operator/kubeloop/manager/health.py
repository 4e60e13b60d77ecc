"""``/healthz`` and ``/readyz``: one sub-path per check, ``?verbose`` and ``?exclude=name``.

What they print is what controller-runtime's handlers print, so that tools which read those read these. The
reason of a failure is given by ``?verbose`` and by the check's own path; without it only its name, since
probes end up in places that anybody can read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from kubeloop.manager.http import Reply, Request, Routes
from kubeloop.observe import fields

Check = Callable[[], str]
"""Says what is wrong; empty if nothing is."""

_logger = logging.getLogger("kubeloop.manager")


class Health:
    """One endpoint, such as ``/healthz``, and its checks by name."""

    def __init__(self, path: str, checks: Mapping[str, Check]) -> None:
        self._path = path
        self._checks = {"ping": _ping, **checks}

    def routes(self) -> Routes:
        """The paths that it answers."""
        routes = {f"{self._path}/{name}": self._one(check) for name, check in self._checks.items()}
        return Routes({self._path: self.answer, f"{self._path}/": self._root, **routes})

    def answer(self, request: Request) -> Reply:
        """The sum of all checks that are not excluded."""
        excluded = set(request.query.get("exclude", ()))
        verbose = "verbose" in request.query
        lines, failed = [], []
        for name, check in sorted(self._checks.items()):
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok")
                continue
            reason = _run(name, check)
            if reason:
                failed.append(name)
                lines.append(f"[-]{name} failed: {reason if verbose else 'reason withheld'}")
            else:
                lines.append(f"[+]{name} ok")
        if not failed and not verbose:
            return Reply.text("ok")
        unknown = sorted(excluded - self._checks.keys())
        if unknown:
            names = ", ".join(f'"{name}"' for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
        # controller-runtime says healthz on every endpoint.
        lines.append(f"healthz check {'failed' if failed else 'passed'}")
        if failed:
            _logger.debug("health check failed", extra=fields(endpoint=self._path, checks=failed))
        return Reply.text("\n".join(lines) + "\n", 500 if failed else 200)

    def _root(self, request: Request) -> Reply:
        """With a slash at the end the same; anything below it is a check that does not exist."""
        if request.path == f"{self._path}/":
            return self.answer(request)
        return Reply.text("404 page not found\n", 404)

    @staticmethod
    def _one(check: Check) -> Callable[[Request], Reply]:
        def answer(request: Request) -> Reply:
            reason = _run(request.path, check)
            return Reply.text(f"internal server error: {reason}\n", 500) if reason else Reply.text("ok")

        return answer


def _ping() -> str:
    return ""


def _run(name: str, check: Check) -> str:
    try:
        return check()
    except Exception as error:
        _logger.exception("a health check could not be made", extra=fields(check=name))
        return f"the check itself failed: {type(error).__name__}"
