"""Scripts as data: reading the YAML files, and the shorthand that keeps them short.

A step names one verb with its target. The target is a path (``/apis/...``) or a kind's alias with a name,
subresource and query: ``cm/a``, ``widget/w/status?fieldManager=x``, ``cm@other/a`` (another namespace),
``cm@*`` (all namespaces). Aliases and default manifests stand in ``manifests.yaml``; a script may define more
(`kinds`, `manifests`), and with `crd` a CustomResourceDefinition of its own, whose alias is ``foo``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .address import Kind
from .variables import ScriptError, merge
from .yamlfile import read_yaml

Json = Any
"""A JSON value."""

METHODS = {
    "get": "GET",
    "head": "HEAD",
    "post": "POST",
    "put": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "options": "OPTIONS",
    # These fill in apiVersion, kind and metadata.name of the body from the target.
    "create": "POST",
    "replace": "PUT",
    "apply": "PATCH",
    # The other patch types by name.
    "json": "PATCH",
    "merge": "PATCH",
    "strategic": "PATCH",
}
PATCH_TYPES = {
    "apply": "application/apply-patch+yaml",
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
OTHER_VERBS = frozenset({"watch", "events", "close", "wait", "compact"})
VERBS = frozenset(METHODS) | OTHER_VERBS
_OPTIONS = frozenset(
    {
        "body", "from", "with", "raw", "headers", "accept", "as", "save", "until", "only", "ignore", "note",
        "id", "count", "last", "type",
    }
)  # fmt: skip
_KEYS = frozenset({"about", "keep", "needs", "kinds", "manifests", "crd", "given", "steps", "only", "ignore"})


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `target` is as written; everything may still hold variables."""

    verb: str
    target: str
    options: Mapping[str, Any]
    recorded: bool = True

    @property
    def label(self) -> str:
        """How goldens and differences name the step."""
        who = self.options.get("as", "admin")
        return f"{self.verb} {self.target}".strip() + ("" if who == "admin" else f" as {who}")


@dataclass(frozen=True, slots=True)
class Script:
    """One file of the corpus."""

    area: str
    name: str
    about: str
    steps: tuple[Step, ...]
    kinds: Mapping[str, Kind]
    manifests: Mapping[str, Json]
    keep: frozenset[str] = frozenset()
    """Parts that normalisation would drop: ``managedFields``."""
    needs: frozenset[str] = frozenset()
    """What must be in the namespace first: ``serviceaccount``."""
    crd: Mapping[str, Any] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.area}/{self.name}"

    @property
    def slug(self) -> str:
        """A DNS label that no other script has."""
        return f"t-{self.area}-{self.name}"


@dataclass(frozen=True, slots=True)
class Shared:
    """What every script may use: `manifests.yaml`."""

    kinds: Mapping[str, Kind]
    manifests: Mapping[str, Json]
    fixtures: tuple[Json, ...]
    """Objects that are there before any script: the CRDs that most scripts share."""


def read_shared(path: Path) -> Shared:
    """Read `manifests.yaml`."""
    data = read_yaml(path)
    return Shared(_kinds(data["kinds"]), data["manifests"], tuple(data["fixtures"]))


def _kinds(data: Mapping[str, Any]) -> dict[str, Kind]:
    return {alias: Kind(**value) for alias, value in data.items()}


def read_script(path: Path, shared: Shared) -> Script:
    """Read one script. Raises `ScriptError` for keys that mean nothing."""
    return parse_script(path.parent.name, path.stem, read_yaml(path), shared)


def parse_script(area: str, name: str, data: Mapping[str, Any], shared: Shared) -> Script:
    """A script from its data."""
    where = f"{area}/{name}"
    if unknown := set(data) - _KEYS:
        raise ScriptError(f"{where}: unknown keys {sorted(unknown)}")
    kinds = {**shared.kinds, **_kinds(data.get("kinds", {}))}
    if "crd" in data:
        scope = data["crd"].get("scope", "Namespaced")
        kinds["foo"] = Kind("${group}/v1", "foos", "Foo", scope == "Namespaced")
    given = [step for item in data.get("given", []) for step in _steps(item, where, recorded=False)]
    steps = [step for item in data["steps"] for step in _steps(item, where, recorded=True)]
    return Script(
        area,
        name,
        str(data.get("about", "")).strip(),
        tuple(given + steps),
        kinds,
        {**shared.manifests, **data.get("manifests", {})},
        keep=frozenset(data.get("keep", ())),
        needs=frozenset(data.get("needs", ())),
        crd=data.get("crd", {}),
        only=tuple(data.get("only", ())),
        ignore=tuple(data.get("ignore", ())),
    )


def _steps(item: Mapping[str, Any], where: str, *, recorded: bool) -> Iterator[Step]:
    verbs = set(item) & VERBS
    if len(verbs) != 1:
        raise ScriptError(f"{where}: a step has one verb, not {sorted(verbs) or sorted(item)}")
    verb = verbs.pop()
    if unknown := set(item) - _OPTIONS - {verb}:
        raise ScriptError(f"{where}: unknown options {sorted(unknown)} of {verb}")
    options = {key: value for key, value in item.items() if key != verb}
    targets = item[verb]
    for target in targets if isinstance(targets, list) else [targets]:
        yield Step(verb, "" if target is None else str(target), options, recorded)


def own_crd(crd: Mapping[str, Any], group: str) -> Json:
    """The CustomResourceDefinition that a script's `crd` stands for.

    ``properties``/``required``/``schema`` make the schema; ``scope``, ``names`` and other keys of the spec go
    there; the rest belongs to its one version.
    """
    crd = dict(crd)
    schema = crd.pop("schema", None)
    if schema is None:
        schema = {"type": "object", "properties": crd.pop("properties", {})}
        for key in ("required", "x-kubernetes-validations", "x-kubernetes-preserve-unknown-fields"):
            if key in crd:
                schema[key] = crd.pop(key)
    names = merge(
        {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"}, crd.pop("names", {})
    )
    spec: dict[str, Any] = {"group": group, "names": names, "scope": crd.pop("scope", "Namespaced")}
    for key in ("preserveUnknownFields", "conversion"):
        if key in crd:
            spec[key] = crd.pop(key)
    more = crd.pop("versions", [])
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **crd}
    spec["versions"] = [version, *more]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"foos.{group}"},
        "spec": spec,
    }
