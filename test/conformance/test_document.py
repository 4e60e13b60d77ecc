"""docs/conformance.md says what the corpus is."""

from conformance import document
from conformance.corpus import Corpus

CORPUS = Corpus()


def test_the_tables_of_the_document_are_those_of_the_corpus() -> None:
    """Refresh them with hack/conformance.sh docs."""
    text = document.DOCUMENT.read_text()
    assert document.rendered(CORPUS, text) == text


def test_every_known_difference_names_a_script_and_gives_a_reason() -> None:
    ids = set(CORPUS.ids())
    for known in CORPUS.known:
        assert known.script in ids
        assert len(known.reason.split()) >= 4, f"{known.script}: that is no reason"


def test_every_golden_has_its_script() -> None:
    goldens = {f"{path.parent.name}/{path.stem}" for path in CORPUS.folder.glob("goldens/*/*.json")}
    assert goldens == set(CORPUS.ids())


def test_every_script_says_what_it_is_about() -> None:
    assert [id for id in CORPUS.ids() if len(CORPUS.script(id).about) < 10] == []


def test_the_goldens_stay_small() -> None:
    """They are read at every test run and with every clone."""
    assert sum(path.stat().st_size for path in CORPUS.folder.glob("goldens/*/*.json")) < 5_000_000
