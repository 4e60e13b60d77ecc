"""One script on one target, from file to normalised answers."""

from .corpus import Corpus
from .normalise import normalise
from .play import Player, Target
from .script import Json
from .variables import ScriptError


def play(corpus: Corpus, id: str, target: Target, *, strict: bool = False) -> list[Json]:
    """The normalised answers of one script.

    Raises `ScriptError` when it cannot be played and, if `strict`, when it waited for something in vain.
    """
    script = corpus.script(id)
    player = Player(script, target)
    answers = player.play()
    if strict and player.waited_in_vain:
        raise ScriptError(f"waited in vain at {', '.join(player.waited_in_vain)}")
    return normalise(script, answers, player.namespace)
