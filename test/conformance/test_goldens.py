"""The sandbox answers every script as the real kube-apiserver did when the goldens were recorded."""

from collections.abc import Iterator

import pytest
from conformance.compare import compare
from conformance.corpus import Corpus
from conformance.normalise import normalise
from conformance.play import Player
from conformance.sandboxed import SandboxTarget, sandboxed

CORPUS = Corpus()


@pytest.fixture(scope="module")
def target() -> Iterator[SandboxTarget]:
    """One sandbox for all scripts: each has its own namespace and groups, as on the real server."""
    with sandboxed(CORPUS.shared) as target:
        yield target


@pytest.mark.parametrize("script_id", CORPUS.ids())
def test_the_sandbox_answers_as_the_real_server(script_id: str, target: SandboxTarget) -> None:
    """D9: no answer differs, but for what differences.yaml lists; and nothing is listed that is equal."""
    script = CORPUS.script(script_id)
    player = Player(script, target)
    differences = compare(CORPUS.golden(script_id), normalise(script, player.play(), player.namespace))
    unlisted = CORPUS.unlisted(script_id, differences)
    text = "\n".join(str(difference) for difference in unlisted[:10])
    assert not unlisted, f"{len(unlisted)} differences from the real server in {script_id}:\n{text}"
    stale = CORPUS.stale(script_id, differences)
    assert not stale, f"equal by now, take it out of differences.yaml: {stale}"
