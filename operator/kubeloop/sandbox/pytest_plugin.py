"""The pytest plugin of the sandbox: fixtures ``sandbox`` and ``sandbox_factory``, and the mark ``sandbox``.

Installed with the package (entry point ``pytest11``). Nothing of the sandbox is imported until a test asks
for a fixture. A failing test's report shows the last requests that its sandboxes answered.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kubeloop.sandbox import Sandbox

SHOWN = 25
"""How many requests a failing test's report shows."""
_KEY: pytest.StashKey[list[Any]] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line(
        "markers",
        "sandbox(**options): how the fixture `sandbox` is made, e.g. sandbox(http=True, clock=None)",
    )


@pytest.fixture
def sandbox_factory(request: pytest.FixtureRequest) -> Iterator[Callable[..., Sandbox]]:
    """Makes started sandboxes with the options of `Sandbox`; all are stopped, and checked, after the test."""
    from kubeloop.sandbox import Sandbox

    made = request.node.stash.setdefault(_KEY, [])
    with ExitStack() as stack:

        def make(**options: Any) -> Sandbox:
            started = stack.enter_context(Sandbox(**options))
            made.append(started)
            return started

        yield make


@pytest.fixture
def sandbox(request: pytest.FixtureRequest, sandbox_factory: Callable[..., Sandbox]) -> Sandbox:
    """A sandbox in steps on a clock that stands still; ``@pytest.mark.sandbox(...)`` changes its options.

    With ``clock=None`` it runs on the machine's clock with threads of its own.
    """
    from kubeloop.clock import FakeClock

    options: dict[str, Any] = {}
    for mark in reversed(list(request.node.iter_markers("sandbox"))):
        options.update(mark.kwargs)
    if "clock" not in options:
        options["clock"] = FakeClock()
    options.setdefault("step", isinstance(options["clock"], FakeClock) and not options.get("http"))
    options.setdefault("seed", 1)
    return sandbox_factory(**options)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show a failing test's last requests."""
    del call
    report = yield
    if report.when == "call" and report.failed:
        made_here: list[Any] = item.stash.get(_KEY, [])
        for number, made in enumerate(made_here, 1):
            lines = [str(entry) for entry in made.log.entries()[-SHOWN:]]
            title = "sandbox requests" if number == 1 else f"sandbox requests ({number})"
            report.sections.append((title, "\n".join(lines) or "none"))
    return report
