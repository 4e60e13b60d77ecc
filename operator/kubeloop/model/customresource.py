"""`CustomResource`: one class is the Python type and the source of the CRD.

    class BookSpec(Model):
        title: str = Field(min_length=1)
        authors: Items[str] = ()

    @custom_resource("example.com/v1", short_names=("bk",))
    class Book(CustomResource[BookSpec, None]):
        \"\"\"A book on the shelf.\"\"\"

Names and options are checked when the class is made; the schema, and every path into it, when `crd()` is
first called, because a running operator never needs it. Both raise one `DefinitionError` with all that is
wrong.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Never, Optional, get_args, get_origin

from typing_extensions import TypeVar

from kubeloop.model.crd import Column, Definition, Scale, Scope
from kubeloop.model.kubeobject import KubeObject
from kubeloop.model.manifest import to_yaml
from kubeloop.model.markers import Rule
from kubeloop.model.problems import DefinitionError, did_you_mean
from kubeloop.model.resource import Resource
from kubeloop.model.schema import structural_schema
from kubeloop.model.unions import Schema

SpecT = TypeVar("SpecT")
StatusT = TypeVar("StatusT", default=None)
ResourceT = TypeVar("ResourceT", bound="type[CustomResource[Any, Any]]")


class CustomResource(KubeObject, Generic[SpecT, StatusT]):
    """Base of custom kinds: `CustomResource[Spec, Status]`; without Status there is no status subresource."""

    definition: ClassVar[Definition]

    if TYPE_CHECKING:  # at run time each subclass gets these with its own types, see below
        spec: SpecT
        status: StatusT | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__slots__" in cls.__dict__:
            return  # the second pass of ModelMeta
        for base in cls.__dict__.get("__orig_bases__", ()):
            if get_origin(base) is CustomResource:
                spec, status = (*get_args(base), type(None))[:2]
                declared = inspect.get_annotations(cls)
                cls.__annotations__ = {"spec": spec, **declared}
                if status not in (None, type(None)):
                    cls.__annotations__.setdefault("status", Optional[status])  # noqa: UP045  # a run-time type
                    cls.status = cls.__dict__.get("status")

    @classmethod
    def crd_name(cls) -> str:
        """The name of the CRD: `plural.group`."""
        return str(cls.resource)

    @classmethod
    def crd(cls) -> dict[str, Any]:
        """The CustomResourceDefinition, a fresh object at each call, always with the same content.

        Raises DefinitionError if the class' types have no structural schema or a path leads nowhere.
        """
        schema = _schema(cls)
        return cls.definition.manifest(_copied(schema), has_status="status" in schema["properties"])

    @classmethod
    def crd_yaml(cls) -> str:
        """The CRD as YAML for `kubectl apply -f -`."""
        return to_yaml(cls.crd())


def custom_resource(
    api_version: str,
    *,
    kind: str | None = None,
    plural: str | None = None,
    singular: str | None = None,
    short_names: Sequence[str] = (),
    categories: Sequence[str] = (),
    scope: Scope = "Namespaced",
    scale: Scale | None = None,
    columns: Sequence[Column] = (),
    selectable_fields: Sequence[str] = (),
    rules: Sequence[Rule | str | tuple[str, str]] = (),
    deprecated: bool | str = False,
    served: bool = True,
    storage: bool = True,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **unknown: Never,
) -> Callable[[ResourceT], ResourceT]:
    """Declare a `CustomResource` subclass as a kind of the API.

    `kind` defaults to the class' name, `singular` to the kind in lower case, `plural` to its simple English
    plural. `deprecated` may be the warning that clients are shown. `rules` are CEL rules on the whole object.
    `labels` and `annotations` are the CRD's own.

    Raises DefinitionError with everything that is wrong.
    """

    def declare(cls: ResourceT) -> ResourceT:
        own_kind = kind or cls.__name__
        group, slash, version = api_version.partition("/")
        problems = [_unknown_option(name) for name in unknown]
        if not slash:
            problems.append(f"the apiVersion {api_version!r} must be group/version, as in example.com/v1")
        if scope not in get_args(Scope):
            problems.append(
                f"the scope {scope!r} must be Namespaced or Cluster{did_you_mean(scope, get_args(Scope))}"
            )
        for what, value in (("short_names", short_names), ("categories", categories)):
            if isinstance(value, str):
                problems.append(f"{what} must be a sequence of words: ({value!r},)")
        resource = Resource(
            group, version, plural or pluralize(own_kind.lower()), own_kind, namespaced=scope != "Cluster"
        )
        definition = Definition(
            resource,
            singular or own_kind.lower(),
            tuple(short_names),
            tuple(categories),
            scale,
            tuple(columns),
            tuple(selectable_fields),
            tuple(Rule.of(rule) for rule in rules),
            served,
            storage,
            deprecated,
            dict(labels or {}),
            dict(annotations or {}),
        )
        fields: dict[str, Any] = getattr(cls, "__pydantic_fields__", {})
        if not (isinstance(cls, type) and issubclass(cls, CustomResource)):
            problems.append("it must be a subclass of CustomResource[Spec, Status]")
        elif "spec" not in fields:
            problems.append("it has no spec: derive it from CustomResource[Spec, Status]")
        if slash:
            problems += definition.name_problems()
        if scale is not None and "status" not in fields:
            problems.append("scale needs a status to report the current replicas in")
        if problems:
            raise DefinitionError(cls.__name__, problems)
        cls.resource = resource
        cls.definition = definition
        return cls

    return declare


def pluralize(word: str) -> str:
    """The simple English plural, by kube-rs' rules: box → boxes, policy → policies, app → apps."""
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2:-1] not in tuple("aeiou"):
        return word[:-1] + "ies"
    return word + "s"


def _unknown_option(name: str) -> str:
    options = [
        parameter.name
        for parameter in inspect.signature(custom_resource).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    return f"there is no option {name!r}{did_you_mean(name, options)}"


@cache
def _schema(cls: type[CustomResource[Any, Any]]) -> Schema:
    """The root schema: without apiVersion, kind and metadata, which the server adds to every kind."""
    definition = cls.__dict__.get("definition")
    if not isinstance(definition, Definition):
        raise DefinitionError(cls.__name__, ["it lacks the decorator @custom_resource(...)"])
    schema, problems = structural_schema(cls)
    schema["properties"].pop("metadata", None)
    schema["required"] = [name for name in schema.get("required", ()) if name != "metadata"]
    if "status" in schema["properties"]:
        schema["properties"]["status"] = _without_defaults(schema["properties"]["status"])
    if definition.rules:
        key = Rule.KEY
        schema[key] = [*schema.get(key, []), *(rule.to_wire() for rule in definition.rules)]
    problems += definition.path_problems(schema)
    if problems:
        raise DefinitionError(cls.__name__, problems)
    return schema


def _without_defaults(schema: Schema) -> Schema:
    """A status says what a controller saw; the server must not fill in what nobody said."""
    return {
        key: {name: _without_defaults(child) for name, child in value.items()}
        if key == "properties"
        else _without_defaults(value)
        if key in ("items", "additionalProperties")
        else value
        for key, value in schema.items()
        if key != "default"
    }


def _copied(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _copied(value) for key, value in schema.items()}
    return [_copied(item) for item in schema] if isinstance(schema, list) else schema
