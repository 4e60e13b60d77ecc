"""WebApps to try things on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from webapp_operator.types import WebApp


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
