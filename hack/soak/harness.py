"""What a soak gives back, and what it says when it fails."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .simulation import Simulation

MINUTES = 60.0


@dataclass(frozen=True)
class Result:
    """What one soak has seen."""

    digest: str
    """Equal for equal histories."""
    counts: dict[str, int]
    """How often what happened."""
    worst: dict[str, float] = field(default_factory=dict)
    """The largest value of what is bounded, in seconds where nothing else is said."""


class SoakFailure(AssertionError):
    """A promise that was broken, with all that is needed to see it again."""


Soak = Callable[[int, float], Result]


class Worst:
    """The largest values of bounded things; `keep` raises when a bound is broken."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    def keep(self, name: str, value: float, bound: float, what: str) -> None:
        """Remember `value`, which must not be above `bound`."""
        self.values[name] = max(value, self.values.get(name, 0.0))
        assert value <= bound, f"{what}: {value:.2f} is more than {bound:.2f}"


@contextmanager
def world(behaviour: str, seed: int) -> Iterator[Simulation]:
    """A simulation whose failure tells seed and history."""
    made = Simulation(seed)
    try:
        with made.history.taking_logs(), made:
            yield made
    except AssertionError as error:
        raise SoakFailure(
            f"{behaviour}, seed {seed}, after {made.time:.3f} s: {error}\n"
            + "\n".join(made.history.tail(200))
            + f'\nagain: make soak ARGS="{behaviour} --seed {seed}"'
        ) from error


def source(seed: int, who: str) -> random.Random:
    """Randomness of one's own, so that others drawing more or less changes nothing here."""
    return random.Random(f"{seed}/{who}")
