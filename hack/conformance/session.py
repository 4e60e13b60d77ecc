"""One script on one target, from file to normalised answers."""

from .corpus import Corpus
from .normalise import normalise
from .play import Player, Target
from .script import Json


def play(corpus: Corpus, id: str, target: Target) -> list[Json]:
    """The normalised answers of one script. Raises `ScriptError` when it cannot be played."""
    script = corpus.script(id)
    player = Player(script, target)
    return normalise(script, player.play(), player.namespace)
