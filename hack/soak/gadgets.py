"""What informers watch in the soak of the cache, who judges them, and by which token they are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubeloop.cache import Added, Deleted, Event, Modified
from kubeloop.model import KubeObject, Model, Resource

from .simulation import Simulation

NAMESPACES = ("one", "two")
NAMES = 12


class GadgetSpec(Model):
    """Stricter than its CRD, so that some cannot be read."""

    size: int


class Gadget(KubeObject):
    """A custom resource."""

    resource = Resource("soak.example.com", "v1", "gadgets", "Gadget")
    spec: GadgetSpec


MAPS = Resource("", "v1", "configmaps", "ConfigMap")
CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.soak.example.com"},
    "spec": {
        "group": "soak.example.com",
        "scope": "Namespaced",
        "names": {"kind": "Gadget", "plural": "gadgets", "singular": "gadget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                        },
                    }
                },
            }
        ],
    },
}


class Judge:
    """A handler that remembers the last word on each key, and objects to what contradicts it."""

    def __init__(self, world: Simulation, name: str) -> None:
        self._world = world
        self._name = name
        self.told: dict[str, tuple[str, int]] = {}
        self.wrong: list[str] = []
        self.back_in_time = False
        """Whether the server has forgotten something: versions may go back until all is listed anew."""

    def hear(self, event: Event[Any], _initial: bool) -> None:
        """The handler."""
        key, state = event.object.key, (event.object.uid, event.object.resource_version)
        before = self.told.get(key)
        what = f"{type(event).__name__} {self._name} {key} {state[1]}{' own' if event.own else ''}"
        self._world.history.note("event", what)
        match event:
            case Added():
                if before is not None:
                    self._object(f"{what}, known as {before}")
                self.told[key] = state
            case Modified():
                if before is None or before[0] != state[0]:
                    self._object(f"{what} {state[0]}, known as {before}")
                elif before[1] >= state[1] and not self.back_in_time:
                    self._object(f"{what}, known as {before}")
                self.told[key] = state
            case Deleted():
                if before is None or before[0] != state[0]:
                    self._object(f"{what} {state[0]}, known as {before}")
                elif before[1] > state[1] and not self.back_in_time:
                    self._object(f"{what}, known as {before}")
                self.told.pop(key, None)

    def _object(self, why: str) -> None:
        # Not at once: a handler's exception would only be logged.
        self.wrong.append(why)

    def check(self) -> None:
        """Raise if it was told anything that it objects to."""
        assert not self.wrong, self.wrong[0]


class Tokens:
    """Credentials that are renewed some time after they were refused."""

    def __init__(self) -> None:
        self.current = "token-1"
        self._held = "token-1"

    def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self._held}"}

    def renew(self, refused: Mapping[str, str]) -> bool:
        self._held = self.current
        return dict(refused) != dict(self.headers())

    def client_certificate(self) -> tuple[str, str] | None:
        return None
