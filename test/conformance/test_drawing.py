"""Drawn scripts are scripts, and survive being written down."""

import tempfile
from pathlib import Path
from typing import Any

from conformance.corpus import Corpus
from conformance.drawing import scripts
from conformance.generate import dumped, signatures
from conformance.script import parse_script
from conformance.yamlfile import read_yaml
from hypothesis import given, settings

SHARED = Corpus().shared


@settings(max_examples=30, deadline=None)
@given(scripts())
def test_what_is_drawn_parses_and_is_the_same_when_read_back(data: dict[str, Any]) -> None:
    script = parse_script("generated", "draw", data, SHARED)
    assert len(script.steps) >= 10
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "draw.yaml"
        file.write_text(dumped({**data, "about": "cm: create, merge"}))
        assert read_yaml(file) == {**data, "about": "cm: create, merge"}


def test_an_answer_after_another_one_is_news() -> None:
    created = {"step": "create cm/a?fieldManager=one", "code": 201, "body": {}}
    refused = {"step": "create cm/a?fieldManager=two", "code": 409, "body": {"reason": "AlreadyExists"}}
    assert len(set(signatures([created, refused]))) == 2
    assert set(signatures([created])) == set(
        signatures([{**created, "step": "create cm/a?fieldManager=two"}])
    )
