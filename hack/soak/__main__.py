"""Command line: which soaks, with which seeds."""

from __future__ import annotations

import argparse
import os
import sys
import time
from importlib import import_module

from .harness import MINUTES, Result, Soak, SoakFailure

BEHAVIOURS = ("workqueue", "cache", "election", "webapps")
SEEDS = 50


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="hack/soak.sh", description=__doc__)
    parser.add_argument("behaviours", nargs="*", help=f"of {', '.join(BEHAVIOURS)}; default: all")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many for each (default: %(default)s)")
    parser.add_argument("--first", type=int, default=1, help="the first of them (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="only this one, and its history if it fails")
    parser.add_argument(
        "--minutes", type=float, default=MINUTES, help="of the simulated world (default: %(default)g)"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.behaviours) - set(BEHAVIOURS):
        parser.error(f"no such behaviour: {', '.join(sorted(unknown))}")
    return arguments


def load(behaviour: str) -> Soak:
    """The function that soaks one behaviour."""
    found: Soak = import_module(f"soak.{behaviour}").soak
    return found


def say(text: str) -> None:
    """Progress goes to stderr."""
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Run them one after the other; 1 if any failed."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets would differ from run to run, and with it the histories.
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "soak", *sys.argv[1:]])
    arguments = parse()
    one = arguments.seed is not None
    seeds = [arguments.seed] if one else range(arguments.first, arguments.first + arguments.seeds)
    failed: list[str] = []
    summary: list[str] = []
    for behaviour in arguments.behaviours or BEHAVIOURS:
        soak, began = load(behaviour), time.monotonic()
        done: list[Result] = []
        for seed in seeds:
            since = time.monotonic()
            try:
                done.append(soak(seed, arguments.minutes))
            except SoakFailure as failure:
                failed.append(f"{behaviour} --seed {seed}")
                say(str(failure) if one else f"FAILED  {str(failure).splitlines()[0]}")
                continue
            say(f"ok      {behaviour} {seed} ({time.monotonic() - since:.1f} s)")
        summary.append(_summary(behaviour, len(seeds), done, time.monotonic() - began))
    say("\n".join(["──", *summary]))
    for again in failed:
        say(f'failed; again: make soak ARGS="{again}"')
    return 1 if failed else 0


def _summary(behaviour: str, seeds: int, done: list[Result], seconds: float) -> str:
    counts: dict[str, int] = {}
    worst: dict[str, float] = {}
    for result in done:
        for name, count in result.counts.items():
            counts[name] = counts.get(name, 0) + count
        for name, value in result.worst.items():
            worst[name] = max(value, worst.get(name, 0.0))
    seen = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    bounds = ", ".join(f"{name} {value:.1f}" for name, value in worst.items())
    return f"{behaviour}: {len(done)} of {seeds} ok in {seconds:.0f} s; worst: {bounds}; {seen}"


if __name__ == "__main__":
    sys.exit(main())
