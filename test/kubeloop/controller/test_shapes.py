"""Fields are looked through once, whatever their values."""

from __future__ import annotations

from typing import Any

import pytest

from kubeloop.controller import shapes
from kubeloop.controller.shapes import KnownShapes, shape_of


def manifest(name: str = "a", **spec: Any) -> dict[str, Any]:
    return {"kind": "Thing", "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (manifest("a", replicas=1), manifest("b", replicas=2), True),
        (manifest(replicas=1), manifest(replcas=1), False),
        (manifest(ports=[{"port": 1}]), manifest(ports=[{"port": 1}, {"port": 2}]), True),
        (manifest(ports=[{"port": 1}]), manifest(ports=[{"port": 1}, {"prt": 2}]), False),
        (manifest(args=["a"]), manifest(args=["a", "b"]), True),
        (manifest(pod={"image": "x"}), manifest(pod="x"), False),
    ],
)
def test_a_shape_is_the_names_of_the_fields(one: Any, other: Any, same: bool) -> None:
    known = KnownShapes()
    known.add(one)
    assert one in known
    assert (other in known) is same
    assert (shape_of(one) == shape_of(other)) is same


def test_shapes_without_end_are_not_remembered_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "LIMIT", 3)
    known = KnownShapes()
    for number in range(10):
        known.add({f"field{number}": 1})
        assert len(known._known) <= 3


def test_the_server_looks_for_unknown_fields_once_for_each_shape(
    world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets: list[str] = []
    transport = world.client.transport
    request = transport.request

    def record(method: str, target: str, **more: Any) -> Any:
        targets.append(target)
        return request(method, target, **more)

    monkeypatch.setattr(transport, "request", record)
    world.settled("one")
    world.settled("two")
    world.settled("three", command=["sleep"])
    applies = [target for target in targets if "force=" in target]
    assert ["fieldValidation=Ignore" in target for target in applies] == [False, True, False]
