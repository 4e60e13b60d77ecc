"""The sandbox as a target: in this process, without threads of its own, on a clock that a script moves."""

from collections.abc import Iterator
from contextlib import contextmanager

from kubeloop.clock import FakeClock
from kubeloop.sandbox import Sandbox
from kubeloop.sandbox.access import User

from .fixtures import USERS, install
from .script import Shared
from .transports import Transport

_AUTHENTICATED = "system:authenticated"
# As in the token file of hack/controlplane, where no group at all is one without a name.
_GROUPS = {"admin": ("system:masters",), "operator": ("webapp-operators",), "user": ("",)}
MOMENT = 0.25
"""Seconds that a look at something that takes time lets pass."""


class SandboxTarget:
    """A started sandbox."""

    patience = 10.0

    def __init__(self, sandbox: Sandbox, clock: FakeClock) -> None:
        self._sandbox = sandbox
        self._clock = clock
        self._transports: dict[str, Transport] = {}

    def transport(self, user: str) -> Transport:
        if user not in self._transports:
            token = None if user == "anonymous" else f"token-of-{user}"
            self._transports[user] = self._sandbox.transport(token=token)
        return self._transports[user]

    def idle(self) -> None:
        self.wait(MOMENT)

    def wait(self, seconds: float) -> None:
        self._clock.advance(seconds)
        self._sandbox.settle()

    def compact(self) -> None:
        self._sandbox.compact()


@contextmanager
def sandboxed(shared: Shared) -> Iterator[SandboxTarget]:
    """A sandbox with the users of `targets.USERS` and the shared fixtures in it."""
    tokens = {f"token-of-{name}": User(name, (*groups, _AUTHENTICATED)) for name, groups in _GROUPS.items()}
    assert set(_GROUPS) < set(USERS)
    clock = FakeClock()
    sandbox = Sandbox(clock=clock, step=True, seed=1, tokens=tokens, rbac=True)
    sandbox.start()
    try:
        target = SandboxTarget(sandbox, clock)
        install(target, shared)
        yield target
    finally:
        sandbox.stop()
