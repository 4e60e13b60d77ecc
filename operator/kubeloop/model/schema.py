"""From a model class to a structural OpenAPI v3 schema, as CustomResourceDefinitions need it.

pydantic says what it validates, in JSON Schema 2020-12; here that is rewritten into the dialect of the API
server: references inlined, titles dropped, `| None` to `nullable`, constants to enums, unions hoisted (see
`unions`), int-or-string and free-form values to their `x-kubernetes-*` keys. What has no counterpart is a
problem, never silently left out. The output depends on the class alone and keeps the order of declaration.
"""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from kubeloop.model.base import Model, to_json_value
from kubeloop.model.docstrings import attribute_docs
from kubeloop.model.markers import Rule
from kubeloop.model.scalars import INT_BOUNDS
from kubeloop.model.unions import OneOf, Schema, UnionError, hoist

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_LIST_TYPE = "x-kubernetes-list-type"
_INT_OR_STRING = "x-kubernetes-int-or-string"

_DROPPED = ("title", "discriminator", "examples", "deprecated", "readOnly", "writeOnly", "$comment")
# The order in which the keys of one schema are written, which is also the list of all that the server knows.
_KEYS = (
    "description", "type", "format", "nullable", "default", "enum", "minimum", "exclusiveMinimum", "maximum",
    "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "minItems", "maxItems",
    "minProperties",
    "maxProperties", "items", "additionalProperties", "properties", "required", "oneOf", "anyOf", "allOf",
    "not", _INT_OR_STRING, _PRESERVE, "x-kubernetes-embedded-resource", _LIST_TYPE,
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type", "x-kubernetes-validations",
)  # fmt: skip


def structural_schema(cls: type[Model]) -> tuple[Schema, list[str]]:
    """The schema of a model class, and what could not be expressed (each with the path of the field)."""
    raw = TypeAdapter(cls).json_schema(by_alias=True, schema_generator=_Generator, mode="validation")
    rewriter = _Rewriter(raw.pop("$defs", {}))
    schema = rewriter.rewrite(raw, "")
    return schema, rewriter.problems


class _Generator(GenerateJsonSchema):
    """pydantic's own generator, told about docstrings, rules and one-of models."""

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> Schema:
        json_schema = super().dataclass_schema(schema)
        cls = schema["cls"]
        if not issubclass(cls, Model):
            return json_schema
        docs, ordered = attribute_docs(cls), {}
        for name, info in cls.__pydantic_fields__.items():  # type: ignore[attr-defined]
            alias = info.validation_alias or info.alias or name
            node = json_schema["properties"][alias]
            ordered[alias] = {"description": docs[name], **node} if name in docs else node
        json_schema["properties"] = ordered
        if rules := [Rule.of(rule).to_wire() for rule in getattr(cls, "rules", ())]:
            json_schema[Rule.KEY] = rules
        if issubclass(cls, OneOf):
            json_schema["oneOf"] = [{"required": [alias]} for alias in ordered]
            json_schema["properties"] = {alias: _not_null(node) for alias, node in ordered.items()}
        return json_schema

    def encode_default(self, dft: Any) -> Any:
        return to_json_value(dft)


def _not_null(node: Schema) -> Schema:
    """A member of a one-of: `{a: null}` must not count as having given `a`."""
    kept = [branch for branch in node.get("anyOf", ()) if branch.get("type") != "null"]
    rest = {key: value for key, value in node.items() if key not in ("anyOf", "default")}
    return {**rest, **kept[0]} if len(kept) == 1 else {**rest, "anyOf": kept} if kept else node


class _Rewriter:
    """One walk over the JSON schema; collects problems instead of stopping at the first."""

    def __init__(self, definitions: dict[str, Schema]) -> None:
        self.problems: list[str] = []
        self._definitions = definitions
        self._inlining: list[str] = []

    def rewrite(self, node: Schema, path: str) -> Schema:
        """The structural form of `node`, which stands at `path` (for messages)."""
        node = {key: value for key, value in node.items() if key not in _DROPPED}
        if "$ref" in node:
            return self._reference(node, path)
        for key in ("oneOf", "anyOf"):
            if key in node and not (key == "oneOf" and "properties" in node):
                if node.get(_INT_OR_STRING):
                    continue
                return self._union(node, key, path)
        return self._finish(self._plain(node, path), path)

    def _reference(self, node: Schema, path: str) -> Schema:
        name = node.pop("$ref").rsplit("/", 1)[-1]
        if name in self._inlining:
            self._problem(path, f"{name} contains itself, which no structural schema can say: use JsonObject")
            return {"type": "object", _PRESERVE: True}
        self._inlining.append(name)
        # What stands at the field (its description, its default) wins over what its type says.
        result = self.rewrite({**self._definitions[name], **node}, path)
        self._inlining.pop()
        return result

    def _plain(self, node: Schema, path: str) -> Schema:
        if "const" in node:
            node["enum"] = [node.pop("const")]
        if None in node.get("enum", ()):
            node["enum"] = [value for value in node["enum"] if value is not None]
            node["nullable"] = True
        if "enum" in node and "type" not in node:
            kinds = {type(value) for value in node["enum"]}
            if kinds in ({str}, {int}):
                node["type"] = "string" if kinds == {str} else "integer"
            else:
                self._problem(path, "the values of a literal or enum must all be strings or all be numbers")
        for key in ("Minimum", "Maximum"):
            if isinstance(node.get("exclusive" + key), int | float) and not isinstance(
                node["exclusive" + key], bool
            ):
                node[key.lower()], node["exclusive" + key] = node["exclusive" + key], True
        self._drop_format_bounds(node)
        if node.get("multipleOf", 1) % 1:
            # kube-apiserver 1.36 truncates the factor for whole values: "factor MultipleOf … must be
            # positive: 0"
            self._problem(path, f"multiple_of={node['multipleOf']}: the server can check whole factors only")
        if node.get("default", 0) is None:
            del node["default"]
        kind = node.get("type")
        for bound in ("min", "max"):
            # pydantic's name for a length put on a type that it does not look into
            if kind in ("array", "object") and bound + "Length" in node:
                node[bound + ("Items" if kind == "array" else "Properties")] = node.pop(bound + "Length")
        if kind == "object":
            self._object(node, path)
        elif kind == "array":
            self._array(node, path)
        elif kind == "null":
            self._problem(path, "a field that is always None has no schema")
        elif kind is None and "enum" not in node and not node.get(_INT_OR_STRING):
            node[_PRESERVE] = True  # any value at all
        return node

    def _object(self, node: Schema, path: str) -> None:
        extra = node.pop("additionalProperties", False)
        if "properties" in node:
            node["properties"] = {
                name: self.rewrite(child, f"{path}.{name}") for name, child in node["properties"].items()
            }
            if not node["properties"]:
                del node["properties"]
            if extra:
                node[_PRESERVE] = True  # properties and additionalProperties exclude each other
            return
        if extra is True:
            node[_PRESERVE] = True
        elif extra:
            node["additionalProperties"] = self.rewrite(extra, f"{path}.*")
        if node.get("default") == {}:
            del node["default"]  # a map that is absent is an empty map

    def _array(self, node: Schema, path: str) -> None:
        if "prefixItems" in node:
            self._problem(path, "a tuple of fixed length has no structural schema: write Items[T]")
            for key in ("prefixItems", "minItems", "maxItems"):
                node.pop(key, None)
        if node.pop("uniqueItems", False):
            node.setdefault(_LIST_TYPE, "set")  # the server forbids uniqueItems, for its quadratic cost
        node["items"] = self.rewrite(node.get("items", {}), f"{path}[]")
        if node.get("default") == []:
            del node["default"]
        items = node["items"]
        if node.get(_LIST_TYPE) == "set" and items.get("type") in ("object", "array"):
            merged_as = items.get("x-kubernetes-map-type", items.get(_LIST_TYPE))
            if merged_as != "atomic":
                self._problem(path, "the items of a set must be scalars or atomic")
        for key in node.get("x-kubernetes-list-map-keys", ()):
            prop = items.get("properties", {}).get(key)
            if prop is None:
                self._problem(path, f"its items have no field {key!r} to be told apart by")
            elif key not in items.get("required", ()) and "default" not in prop:
                self._problem(path, f"the key {key!r} of its items must be required or have a default")

    def _union(self, node: Schema, key: str, path: str) -> Schema:
        branches = node.pop(key)
        real = [branch for branch in branches if branch.get("type") != "null"]
        if len(real) < len(branches):
            node["nullable"] = True
            if len(real) == 1:
                return self.rewrite({**real[0], **node}, path)
            return self.rewrite({**node, key: real}, path)
        kinds = [branch.get("type") for branch in real]
        if set(kinds) == {"integer", "string"} and all(len(branch) == 1 for branch in real):
            return self._finish(self._plain({**node, "anyOf": real, _INT_OR_STRING: True}, path), path)
        rewritten = [self.rewrite(branch, path) for branch in real]
        if all("enum" in branch and branch.get("type") == rewritten[0].get("type") for branch in rewritten):
            values = list(dict.fromkeys(value for branch in rewritten for value in branch["enum"]))
            return self._finish({**node, "type": rewritten[0]["type"], "enum": values}, path)
        if all(branch.get("type") == "object" and "properties" in branch for branch in rewritten):
            try:
                hoisted = hoist("oneOf" if key == "oneOf" else "anyOf", rewritten)
            except UnionError as error:
                self._problem(path, str(error))
                hoisted = {"type": "object", _PRESERVE: True}
            if node.get("default", 0) is None:
                del node["default"]
            return self._finish({**hoisted, **node}, path)
        names = " | ".join(str(branch.get("type", "any")) for branch in rewritten)
        self._problem(path, f"a union of {names} has no structural schema (models, enums and int | str have)")
        return {_PRESERVE: True}

    def _drop_format_bounds(self, node: Schema) -> None:
        low, high = INT_BOUNDS.get(node.get("format", ""), (None, None))
        if low is not None and node.get("minimum") == low:
            del node["minimum"]
        if high is not None and node.get("maximum") == high:
            del node["maximum"]

    def _finish(self, node: Schema, path: str) -> Schema:
        for key in node:
            if key not in _KEYS:
                self._problem(path, f"the server's schemas do not know the keyword {key!r}")
        return {key: node[key] for key in _KEYS if key in node}

    def _problem(self, path: str, text: str) -> None:
        self.problems.append(f"{path.lstrip('.') or 'the object'}: {text}")
