"""How far the sandbox is: every script, and the differences as a list for whoever fixes them."""

import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from .compare import Difference, compare
from .corpus import Corpus
from .sandboxed import sandboxed
from .session import play


def judge(corpus: Corpus, ids: Iterable[str], report: Path | None) -> int:
    """Play `ids` on a sandbox; gives 1 if anything unlisted differs."""
    found: dict[str, list[Difference]] = {}
    total: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    started = time.monotonic()
    with sandboxed(corpus.shared) as target:
        for id in ids:
            area = id.split("/")[0]
            total[area] += 1
            try:
                differences = corpus.unlisted(id, compare(corpus.golden(id), play(corpus, id, target)))
            except Exception as error:  # noqa: BLE001 - whatever the sandbox raises belongs in the list
                text = f"{type(error).__name__}: {error} ({_place(error)})"
                differences = [Difference(0, "script", "", "answers", text)]
            if differences:
                found[id] = differences
            else:
                passed[area] += 1
    seconds = time.monotonic() - started
    lines = [f"# Sandbox against kube-apiserver, {time.strftime('%H:%M')}, {seconds:.0f} s", ""]
    lines += [f"{area}: {passed[area]} of {total[area]}" for area in sorted(total)]
    lines += [f"all: {sum(passed.values())} of {sum(total.values())}", ""]
    for id in sorted(found, key=lambda id: (id.split("/")[0], len(found[id]), id)):
        differences = found[id]
        lines.append(f"## {id} ({len(differences)})")
        lines += [f"- {difference}" for difference in differences[:6]]
        lines.append("")
    text = "\n".join(lines)
    if report is not None:
        report.write_text(text)
        text = "\n".join(lines[: 3 + len(total)])
    print(text, file=sys.stderr, flush=True)
    return 1 if found else 0


def _place(error: BaseException) -> str:
    trace = traceback.extract_tb(error.__traceback__)
    return f"{trace[-1].filename}:{trace[-1].lineno}" if trace else ""
