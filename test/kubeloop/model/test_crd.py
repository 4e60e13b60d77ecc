"""The definition around the schema, and what is said when it is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from kubeloop.model import (
    AGE,
    Column,
    CustomResource,
    DefinitionError,
    Field,
    Int32,
    Items,
    KubeObject,
    Model,
    Scale,
    custom_resource,
)
from kubeloop.model.customresource import pluralize


class Spec(Model):
    size: Int32 = 1
    word: str = "x"
    nested: Items[str] = ()


class Status(Model):
    size: Int32 = 0
    word: str | None = None


@custom_resource("example.com/v1")
class Plain(CustomResource[Spec, None]):
    pass


def test_what_was_not_asked_for_is_absent() -> None:
    """R4.2, R4.4: no status, no status subresource."""
    crd = Plain.crd()

    assert crd["metadata"] == {"name": "plains.example.com"}
    assert crd["spec"]["names"] == {"kind": "Plain", "plural": "plains", "singular": "plain"}
    assert set(crd["spec"]) == {"group", "names", "scope", "versions"}
    assert set(crd["spec"]["versions"][0]) == {"name", "served", "storage", "schema"}
    assert crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["required"] == ["spec"]


def test_each_call_gives_an_equal_manifest_of_its_own() -> None:
    first, second = Plain.crd(), Plain.crd()
    first["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].clear()

    assert Plain.crd() == second
    assert Plain.crd_yaml() == Plain.crd_yaml()
    assert Plain.crd_name() == "plains.example.com"


def test_the_status_parameter_may_be_left_out() -> None:
    @custom_resource("example.com/v1")
    class Short(CustomResource[Spec]):
        pass

    assert not hasattr(Short(spec=Spec()), "status")


def test_one_class_is_type_and_resource() -> None:
    """R0.5."""
    seen = Plain.model_validate_json('{"metadata": {"name": "a", "namespace": "b"}, "spec": {"size": 2}}')

    assert isinstance(seen, KubeObject)
    assert (seen.spec.size, seen.key, seen.api_version, seen.kind) == (2, "b/a", "example.com/v1", "Plain")
    assert str(Plain.resource) == "plains.example.com"


def test_status_and_scale_become_subresources() -> None:
    """R0.4, D5."""

    @custom_resource(
        "example.com/v1", scope="Cluster", scale=Scale(".spec.size", ".status.size", ".status.word")
    )
    class Scaled(CustomResource[Spec, Status]):
        pass

    version = Scaled.crd()["spec"]["versions"][0]
    assert version["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.size",
            "statusReplicasPath": ".status.size",
            "labelSelectorPath": ".status.word",
        },
    }
    assert not Scaled.resource.namespaced
    assert Scaled(spec=Spec()).status is None


def test_the_server_fills_no_defaults_into_a_status() -> None:
    @custom_resource("example.com/v1")
    class Reporting(CustomResource[Spec, Status]):
        pass

    schema = Reporting.crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert "default" not in str(schema["status"])
    assert schema["spec"]["properties"]["size"]["default"] == 1


def test_column_types_come_from_the_schema() -> None:
    @custom_resource(
        "example.com/v1",
        columns=(
            Column("Size", ".spec.size"),
            Column("Word", ".spec.word", priority=1, description="d"),
            Column("First", ".spec.nested[0]"),
            Column("Gen", ".metadata.generation"),
            AGE,
        ),
    )
    class Listed(CustomResource[Spec, Status]):
        pass

    assert Listed.crd()["spec"]["versions"][0]["additionalPrinterColumns"] == [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Word", "type": "string", "description": "d", "jsonPath": ".spec.word", "priority": 1},
        {"name": "First", "type": "string", "jsonPath": ".spec.nested[0]"},
        {"name": "Gen", "type": "integer", "jsonPath": ".metadata.generation"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]


def test_all_problems_of_a_declaration_are_told_at_once_with_a_guess() -> None:
    options: dict[str, Any] = {
        "short_name": ("x",),
        "scope": "Namespace",
        "plural": "Bads",
        "categories": "all",
        "scale": Scale(".spec.size"),
    }
    with pytest.raises(DefinitionError) as caught:

        @custom_resource("example/v1", **options)
        class Bad(CustomResource[Spec, None]):
            pass

    text = str(caught.value)
    assert text.startswith("Bad is not declared right:")
    for part in (
        "there is no option 'short_name' (did you mean 'short_names'?)",
        "the scope 'Namespace' must be Namespaced or Cluster (did you mean 'Namespaced'?)",
        "the plural 'Bads' must be lower-case",
        "categories must be a sequence of words",
        "the group 'example' must be a domain name",
        "scale needs a status",
    ):
        assert part in text


@pytest.mark.parametrize("api_version", ["v1", "example.com/V1", "Example.com/v1", "example.com/"])
def test_a_bad_api_version_is_refused(api_version: str) -> None:
    with pytest.raises(DefinitionError):

        @custom_resource(api_version)
        class Bad(CustomResource[Spec, None]):
            pass


def test_a_class_of_another_kind_is_refused() -> None:
    with pytest.raises(DefinitionError, match="subclass of CustomResource"):
        custom_resource("example.com/v1")(Spec)  # type: ignore[type-var]


def test_a_class_without_types_is_refused() -> None:
    with pytest.raises(DefinitionError, match="it has no spec"):

        @custom_resource("example.com/v1")
        class Bad(CustomResource):  # type: ignore[type-arg]
            pass


def test_a_class_without_decorator_has_no_crd() -> None:
    class Bare(CustomResource[Spec, None]):
        pass

    with pytest.raises(DefinitionError, match="lacks the decorator"):
        Bare.crd()


def test_paths_that_lead_nowhere_are_told_at_once_with_a_guess() -> None:
    @custom_resource(
        "example.com/v1",
        scale=Scale(".status.size", ".status.word"),
        columns=(
            Column("A", ".spec.sise"),
            Column("B", "spec.size"),
            Column("C", ".spec.nested"),
            Column("D", ".spec."),
            Column("E", ".spec.nested", "string"),
        ),
        selectable_fields=(".spec.wort", ".spec.nested"),
    )
    class Lost(CustomResource[Spec, Status]):
        pass

    with pytest.raises(DefinitionError) as caught:
        Lost.crd()

    assert list(caught.value.problems) == [
        "column 'A': there is no .spec.sise (did you mean '.spec.size'?)",
        "column 'B': the path 'spec.size' must start with a dot",
        "column 'C': say its type, the schema has no simple one for .spec.nested",
        "column 'D': '.spec.' is no JSON path",
        "scale: .status.size must lie under .spec.",
        "scale: .status.word must be of type integer, not string",
        "selectable field: there is no .spec.wort (did you mean '.spec.word'?)",
        "selectable field: .spec.nested must be a string, boolean or integer",
    ]


def test_problems_of_the_schema_come_with_those_of_the_paths() -> None:
    class Strange(Model):
        odd: str | bool = Field(default="")

    @custom_resource("example.com/v1", columns=(Column("A", ".spec.o"),))
    class Odd(CustomResource[Strange, None]):
        pass

    with pytest.raises(DefinitionError, match=r"spec\.odd: a union(.|\n)*there is no \.spec\.o"):
        Odd.crd()


@pytest.mark.parametrize(
    ("word", "plural"),
    [
        ("webapp", "webapps"),
        ("box", "boxes"),
        ("policy", "policies"),
        ("key", "keys"),
        ("batch", "batches"),
        ("bus", "buses"),
        ("dish", "dishes"),
        ("quiz", "quizes"),
    ],
)
def test_plurals_are_simple_english(word: str, plural: str) -> None:
    assert pluralize(word) == plural


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(DefinitionError, match="'doubles' is given twice"):

        @custom_resource("example.com/v1", short_names=("doubles",))
        class Double(CustomResource[Spec, None]):
            pass
