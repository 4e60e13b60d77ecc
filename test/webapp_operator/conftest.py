"""WebApps to try things on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from webapp_operator.types import WebApp


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """The command line sets logging up, on a stream that is gone after the test."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)


@pytest.fixture(scope="session")
def make_app() -> Callable[..., WebApp]:
    """A WebApp as the server would give it back, from the fields of its spec."""

    def make(name: str = "hello", status: dict[str, Any] | None = None, **spec: Any) -> WebApp:
        return WebApp.model_validate(
            {
                "metadata": {"name": name, "namespace": "shop", "uid": "u-1", "generation": 4},
                "spec": {"image": "nginx:1.27", **spec},
                "status": status,
            }
        )

    return make
