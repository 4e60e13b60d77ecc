"""Finding scripts nobody thought of: draws are played on a real server, and kept when they show news.

New is an answer that no kept script has: the verb, the kind of the target, the status, the reason and the
fields that were complained about, after what came before. Where a sandbox is at hand, a draw on which it
differs is kept too, cut down to what still shows the difference.
"""

import json
import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import yaml
from hypothesis import HealthCheck, Phase, find, given, seed, settings
from hypothesis.errors import NoSuchExample

from .compare import Difference, compare
from .corpus import Corpus
from .drawing import scripts
from .normalise import normalise
from .play import Player, Target
from .script import Json, parse_script
from .variables import ScriptError

_DIGITS = re.compile(r"\d+")
_COMMON: Any = {
    "database": None,
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "print_blob": False,
}


class Explorer:
    """Draws scripts, plays them on `real`, and writes the ones worth keeping into the corpus."""

    def __init__(self, corpus: Corpus, real: Target, ours: Target | None) -> None:
        self._corpus = corpus
        self._real = real
        self._ours = ours
        self._played = 0
        self._seen: set[str] = set()
        self._number = 0
        for id in corpus.ids():
            if id.startswith("generated/"):
                self._number = max(self._number, int(id.rsplit("-", 1)[-1]))
                self._seen |= set(signatures(corpus.golden(id)))

    def explore(self, *, wanted: int, number: int, draws: int) -> list[str]:
        """Keep up to `wanted` draws with at least three new kinds of answer; `number` seeds the drawing."""
        kept: list[str] = []

        @seed(number)
        @settings(max_examples=draws, phases=[Phase.generate], **_COMMON)
        @given(scripts())
        def look(data: dict[str, Any]) -> None:
            if len(kept) >= wanted:
                return
            try:
                steps = self._play(self._real, data)
            except ScriptError:
                return  # the draw itself makes no sense, such as saving from a refused create
            fresh = set(signatures(steps)) - self._seen
            if len(fresh) >= 3:
                self._seen |= fresh
                kept.append(self._keep(data, steps))

        look()
        return kept

    def hunt(self, *, number: int, draws: int) -> tuple[dict[str, Any], list[Difference]] | None:
        """The shortest draw found on which our server differs; None when `draws` of them agree."""
        assert self._ours is not None

        def differs(data: dict[str, Any]) -> bool:
            return bool(self.differences(data))

        options = settings(max_examples=draws, **_COMMON)
        try:
            found: dict[str, Any] = find(scripts(least=1), differs, settings=options, random=Random(number))
        except NoSuchExample:
            return None
        return found, self.differences(found)

    def differences(self, data: dict[str, Any]) -> list[Difference]:
        """What the two servers answer differently."""
        assert self._ours is not None
        try:
            real = self._play(self._real, data)
        except ScriptError:
            return []
        try:
            return compare(real, self._play(self._ours, data))
        except ScriptError as error:
            return [Difference(0, "script", "", "answers", str(error))]

    def _play(self, target: Target, data: dict[str, Any]) -> list[Json]:
        self._played += 1
        script = parse_script("generated", "draw", data, self._corpus.shared)
        player = Player(script, target, suffix=f"-{self._played}")
        return normalise(script, player.play(), player.namespace)

    def _keep(self, data: dict[str, Any], golden: list[Json]) -> str:
        self._number += 1
        verbs = [next(iter(step)) for step in data["steps"][2:-2]]
        alias = data["steps"][0]["create"].split("/")[0]
        id = f"generated/{alias}-{self._number:03}"
        about = f"A drawn history of {alias}: {', '.join(verbs)}."
        path = self._corpus.folder / "scripts" / f"{id}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dumped({**data, "about": about}))
        self._corpus.write_golden(id, golden)
        return id


def dumped(data: Mapping[str, Any]) -> str:
    """A script as YAML, a step a line."""
    lines = [f"about: {json.dumps(data['about'])}", f"keep: {_flow(data['keep'])}", "steps:"]
    return "\n".join([*lines, *(f"- {_flow(step)}" for step in data["steps"])]) + "\n"


def _flow(value: Any) -> str:
    return yaml.safe_dump(
        value, default_flow_style=True, width=10_000, sort_keys=False, allow_unicode=True
    ).strip()


def signatures(steps: list[Json]) -> Iterator[str]:
    """What kinds of answer there are in a golden."""
    before = ""
    for step in steps:
        label = str(step["step"])
        verb, _, target = label.partition(" ")
        path, _, query = target.partition("?")
        alias, *rest = path.split("/")
        body = step.get("body")
        body = body if isinstance(body, dict) else {}
        causes = (body.get("details") or {}).get("causes", []) if step.get("code", 0) >= 400 else []
        shape = [
            verb,
            alias,
            *rest[1:],
            "force" in query,
            "dryRun" in query,
            step.get("code"),
            body.get("reason"),
            [(cause.get("reason"), _DIGITS.sub("", str(cause.get("field")))) for cause in causes],
            [event.get("type") for event in step.get("events", ())],
        ]
        yield json.dumps([before, shape])
        before = f"{verb} {step.get('code')}"
