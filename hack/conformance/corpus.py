"""The files: scripts, goldens, known differences."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from .compare import Difference
from .script import Json, Script, Shared, read_script, read_shared
from .variables import ScriptError
from .yamlfile import read_yaml

FOLDER = Path(__file__).resolve().parents[2] / "test" / "conformance"


@dataclass(frozen=True, slots=True)
class Known:
    """A listed difference. `step` None: anywhere in the script; `path`: that value and what is in it."""

    script: str
    reason: str
    step: int | None = None
    path: str = ""

    def covers(self, script: str, difference: Difference) -> bool:
        """Whether `difference` is this one."""
        return (
            script == self.script
            and self.step in (None, difference.step)
            and (not self.path or _within(self.path, difference.path))
        )

    @property
    def where(self) -> str:
        step = "all" if self.step is None else str(self.step)
        return f"{step} {self.path}".strip()


def _within(path: str, inner: str) -> bool:
    return inner == path or inner.startswith((f"{path}.", f"{path}["))


class Corpus:
    """All scripts of a folder, read on demand."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder

    @cached_property
    def shared(self) -> Shared:
        return read_shared(self.folder / "manifests.yaml")

    def ids(self) -> list[str]:
        """``area/name`` of every script, sorted."""
        scripts = self.folder / "scripts"
        return sorted(f"{path.parent.name}/{path.stem}" for path in scripts.glob("*/*.yaml"))

    def script(self, id: str) -> Script:
        return read_script(self.folder / "scripts" / f"{id}.yaml", self.shared)

    def golden_path(self, id: str) -> Path:
        return self.folder / "goldens" / f"{id}.json"

    def golden(self, id: str) -> list[Json]:
        """The real server's answers. Raises `ScriptError` when they were never recorded."""
        path = self.golden_path(id)
        if not path.exists():
            raise ScriptError(f"{id} has no golden: record it (hack/conformance.sh record {id})")
        steps: list[Json] = json.loads(path.read_text())
        return steps

    def write_golden(self, id: str, steps: Sequence[Json]) -> bool:
        """Keep `steps`, one a line; gives whether the file changed."""
        path = self.golden_path(id)
        lines = ",\n".join(json.dumps(s, ensure_ascii=False, separators=(",", ":")) for s in steps)
        text = f"[\n{lines}\n]\n"
        if path.exists() and path.read_text() == text:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return True

    @cached_property
    def known(self) -> tuple[Known, ...]:
        """The listed differences."""
        data: list[dict[str, Any]] = read_yaml(self.folder / "differences.yaml") or []
        return tuple(Known(**entry) for entry in data)

    def unlisted(self, id: str, differences: Iterable[Difference]) -> list[Difference]:
        """The differences that nothing excuses."""
        return [d for d in differences if not any(known.covers(id, d) for known in self.known)]

    def stale(self, id: str, differences: Sequence[Difference]) -> list[Known]:
        """Listed differences of a script that are none any more."""
        mine = (known for known in self.known if known.script == id)
        return [known for known in mine if not any(known.covers(id, d) for d in differences)]
