"""Canonical quantities and times."""

from __future__ import annotations

import pytest

from kubeloop.sandbox.schema.values import canonical_quantity, canonical_time


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        (" 1 ", "1"),
        ("100m", "100m"),
        ("0.5", "500m"),
        (0.5, "500m"),
        (1, "1"),
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("1536Mi", "1536Mi"),
        ("1e3", "1e3"),
        ("1.5Gi", "1536Mi"),
        ("0", "0"),
        ("128974848", "128974848"),
        ("abc", None),
        ("1.2.3", None),
        ("", None),
        (True, None),
    ],
)
def test_quantities(given: object, printed: str | None) -> None:
    assert canonical_quantity(given) == printed


@pytest.mark.parametrize(
    ("given", "seconds", "micros"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000000Z"),
        ("2026-01-02T03:04:05.123456+02:00", "2026-01-02T01:04:05Z", "2026-01-02T01:04:05.123456Z"),
        ("2026-01-02", None, None),
        ("2026-13-02T03:04:05Z", None, None),
    ],
)
def test_times(given: str, seconds: str | None, micros: str | None) -> None:
    assert canonical_time(given, micro=False) == seconds
    assert canonical_time(given, micro=True) == micros
