"""Command line: record | replay | sandbox | generate | docs."""

import argparse
import fnmatch
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from . import document
from .compare import Difference, compare
from .corpus import Corpus
from .session import play
from .variables import ScriptError


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hack/conformance.sh", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    record = actions.add_parser("record", help="write the goldens of scripts from a real control plane")
    record.add_argument("--new", action="store_true", help="only scripts that have none")
    record.add_argument("--show", action="store_true", help="print the answers too")
    replay = actions.add_parser("replay", help="compare a real control plane with the goldens")
    sandbox = actions.add_parser("sandbox", help="compare the sandbox with the goldens")
    sandbox.add_argument("--report", type=Path, help="write the differences there, most frequent first")
    actions.add_parser("docs", help="bring the tables of docs/conformance.md up to date")
    generate = actions.add_parser("generate", help="draw scripts, keep those that show something new")
    generate.add_argument("--seed", type=int, default=1, help="another seed draws others")
    generate.add_argument("--draws", type=int, default=200, help="how many at most (each takes about 0.2 s)")
    generate.add_argument("--keep", type=int, default=20, help="how many at most")
    generate.add_argument("--hunt", action="store_true", help="find one where the sandbox differs instead")
    for sub in (record, replay, sandbox):
        sub.add_argument("patterns", nargs="*", help="script ids (area/name), * allowed; default: all")
    return parser.parse_args()


def chosen(corpus: Corpus, patterns: Sequence[str]) -> list[str]:
    """The scripts that match any pattern."""
    ids = corpus.ids()
    if not patterns:
        return ids
    found = [id for id in ids if any(fnmatch.fnmatch(id, pattern) for pattern in patterns)]
    if not found:
        raise ScriptError(f"no script matches {' '.join(patterns)}")
    return found


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def record(corpus: Corpus, ids: Iterable[str], *, show: bool) -> int:
    failed = 0
    from .targets import real  # only where needed: the sandbox is judged without a control plane's parts

    with real(corpus.shared) as target:
        for id in ids:
            started = time.monotonic()
            try:
                steps = play(corpus, id, target, strict=True)
            except (ScriptError, OSError) as error:
                failed += 1
                say(f"FAILED  {id}: {error}")
                continue
            changed = corpus.write_golden(id, steps)
            say(f"{'wrote  ' if changed else 'same   '} {id} ({time.monotonic() - started:.1f} s)")
            if show:
                print(corpus.golden_path(id).read_text())
    return 1 if failed else 0


def replay(corpus: Corpus, ids: Iterable[str]) -> int:
    drifted: list[tuple[str, list[Difference]]] = []
    from .targets import real

    with real(corpus.shared) as target:
        for id in ids:
            try:
                differences = compare(corpus.golden(id), play(corpus, id, target, strict=True))
            except (ScriptError, OSError) as error:
                differences = [Difference(0, "", "", "an answer", str(error))]
            if differences:
                drifted.append((id, differences))
                say(f"DRIFTED {id}")
                for difference in differences:
                    say(f"  {difference}")
    say(f"{len(drifted)} scripts drifted")
    return 1 if drifted else 0


def generate(corpus: Corpus, arguments: argparse.Namespace) -> int:
    # Only here: recording and replaying need neither hypothesis nor the sandbox.
    from .generate import Explorer, dumped
    from .sandboxed import sandboxed
    from .targets import real

    with real(corpus.shared) as target, sandboxed(corpus.shared) as ours:
        explorer = Explorer(corpus, target, ours)
        if not arguments.hunt:
            kept = explorer.explore(wanted=arguments.keep, number=arguments.seed, draws=arguments.draws)
            say(f"kept {len(kept)}")
            return 0
        found = explorer.hunt(number=arguments.seed, draws=arguments.draws)
        if found is None:
            say("no difference found")
            return 0
        data, differences = found
        print(dumped(data))
        for difference in differences:
            print(difference)
        return 1


def main() -> int:
    arguments = parse()
    corpus = Corpus()
    try:
        if arguments.action == "docs":
            say("wrote" if document.write(corpus) else "already up to date")
            return 0
        if arguments.action == "generate":
            return generate(corpus, arguments)
        ids = chosen(corpus, arguments.patterns)
        match arguments.action:
            case "record":
                if arguments.new:
                    ids = [id for id in ids if not corpus.golden_path(id).exists()]
                return record(corpus, ids, show=arguments.show) if ids else 0
            case "replay":
                return replay(corpus, ids)
            case "sandbox":
                # Only here: the sandbox must not be needed for recording.
                from .report import judge

                return judge(corpus, ids, arguments.report)
    except ScriptError as error:
        say(f"error: {error}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
