"""docs/conformance.md: its tables are made from the corpus, what is around them is written by hand."""

from collections import Counter
from pathlib import Path

from .corpus import Corpus

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "conformance.md"
AREAS = {
    "reads": "get and list: resourceVersions, pages, selectors, encodings, discovery",
    "watch": "watch: history, initial events, bookmarks, selectors, errors",
    "writes": "create, update, delete, the patch types, dry runs, validation, status, scale",
    "apply": "server-side apply: owners, conflicts, lists and maps, removal, subresources",
    "crds": "CustomResourceDefinitions and their objects: schemas, defaults, pruning, CEL, versions",
    "builtins": "Namespace, ConfigMap, Secret, Service, Deployment, Pod, Event, Lease …; garbage collection",
    "access": "tokens, 401 and 403, RBAC",
    "generated": "sequences drawn at random, the real server being the oracle",
}
"""What each folder of scripts is about."""


def begin(table: str) -> str:
    return f"<!-- {table}: made by hack/conformance.sh docs -->"


def end(table: str) -> str:
    return f"<!-- end of {table} -->"


def coverage(corpus: Corpus) -> str:
    """Scripts, requests and listed differences by area."""
    scripts: Counter[str] = Counter()
    steps: Counter[str] = Counter()
    for id in corpus.ids():
        area = id.split("/")[0]
        scripts[area] += 1
        steps[area] += len(corpus.golden(id))
    known = Counter(entry.script.split("/")[0] for entry in corpus.known)
    lines = ["| Area | Scripts | Answers compared | Known differences | What |", "|---|--:|--:|--:|---|"]
    for area in [*AREAS, *sorted(set(scripts) - set(AREAS))]:
        if scripts[area]:
            what = AREAS.get(area, "")
            lines.append(f"| {area} | {scripts[area]} | {steps[area]} | {known[area] or ''} | {what} |")
    total = f"| **all** | **{scripts.total()}** | **{steps.total()}** | **{known.total()}** | |"
    return "\n".join([*lines, total])


def differences(corpus: Corpus) -> str:
    """Every listed difference with its reason."""
    if not corpus.known:
        return "None."
    lines = ["| Script | Step | Why |", "|---|---|---|"]
    for entry in corpus.known:
        lines.append(f"| `{entry.script}` | {_cell(entry.where)} | {_cell(entry.reason)} |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def rendered(corpus: Corpus, text: str) -> str:
    """`text` with its tables as they should be. Raises ValueError where a marker is missing."""
    for table, content in (("coverage", coverage(corpus)), ("differences", differences(corpus))):
        before, _, rest = text.partition(begin(table))
        _, marker, after = rest.partition(end(table))
        if not marker:
            raise ValueError(f"no table {table!r} between its markers")
        text = f"{before}{begin(table)}\n{content}\n{end(table)}{after}"
    return text


def write(corpus: Corpus) -> bool:
    """Bring the document up to date; gives whether it changed."""
    text = DOCUMENT.read_text()
    fresh = rendered(corpus, text)
    if fresh == text:
        return False
    DOCUMENT.write_text(fresh)
    return True
