"""Several versions in one CRD."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubeloop.model import CustomResource, MergeError, Model, custom_resource, merge_crds


class OldSpec(Model):
    a: str


class NewSpec(Model):
    b: str


@custom_resource("example.com/v1", kind="Thing", deprecated=True)
class OldThing(CustomResource[OldSpec, None]):
    pass


@custom_resource("example.com/v2", kind="Thing", short_names=("th",))
class NewThing(CustomResource[NewSpec, None]):
    pass


def test_the_stored_version_is_the_base_and_comes_first() -> None:
    old, new = OldThing.crd(), NewThing.crd()
    before = copy.deepcopy((old, new))
    merged = merge_crds([old, new], "v2")

    assert [(v["name"], v["storage"]) for v in merged["spec"]["versions"]] == [("v2", True), ("v1", False)]
    assert merged["spec"]["versions"][1]["deprecated"] is True
    assert merged["spec"]["names"]["shortNames"] == ["th"]
    assert (old, new) == before


def _with(crd: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {**crd, "spec": {**crd["spec"], **spec}}


@pytest.mark.parametrize(
    ("crds", "stored", "text"),
    [
        ([], "v1", "no CRD"),
        ([OldThing.crd(), NewThing.crd()], "v3", "the version to store, v3, is not among v1, v2"),
        ([OldThing.crd(), OldThing.crd()], "v1", "given twice"),
        ([_with(OldThing.crd(), versions=[])], "v1", "exactly one version, not 0"),
        ([OldThing.crd(), _with(NewThing.crd(), group="other.com")], "v1", "group differs"),
        ([OldThing.crd(), _with(NewThing.crd(), scope="Cluster")], "v1", "scope differs"),
        ([OldThing.crd(), _with(NewThing.crd(), names={"kind": "Other"})], "v1", "names.kind differs"),
    ],
)
def test_what_cannot_be_versions_of_one_another_is_refused(
    crds: list[dict[str, Any]], stored: str, text: str
) -> None:
    with pytest.raises(MergeError, match=text):
        merge_crds(crds, stored)
