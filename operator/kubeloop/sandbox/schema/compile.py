"""From JSON schemas to `Node` trees: built-in definitions (with references) and structural CRD schemas."""

from __future__ import annotations

from typing import Any

from kubeloop.sandbox.schema.node import DEDUCED, MISSING, SCALARS, UNTYPED, Node

QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
RAW_EXTENSION = "io.k8s.apimachinery.pkg.runtime.RawExtension"
_PREFIX = "#/components/schemas/"
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
_UNIONS = {_EXTENSIONS + "JSONSchemaPropsOr" + other for other in ("Bool", "Array", "StringArray")}


class BuiltinCompiler:
    """Compiles definitions that refer to each other; each is compiled once (they may be recursive)."""

    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions
        self._done: dict[str, Node] = {}

    def node(self, name: str) -> Node:
        """The node of the definition `name` (KeyError when there is none)."""
        known = self._done.get(name)
        if known is not None:
            return known
        schema = self._definitions[name]
        node = Node(schema.get("type", ""))
        node.name = name
        self._done[name] = node  # before its fields: JSONSchemaProps contains itself
        if name == QUANTITY:
            node.scalar = "untyped"
            node.format = "quantity"
        elif name == RAW_EXTENSION:
            node.type, node.scalar, node.atomic_map = "", "untyped", True
            node.element, node.items, node.preserve = UNTYPED, UNTYPED, True
        else:
            self._fill(node, schema)
            if name in _UNIONS:
                node.alternative = self.node(_EXTENSIONS + "JSONSchemaProps")
        return node

    def _fill(self, node: Node, schema: dict[str, Any]) -> None:
        node.raw = schema
        node.format = schema.get("format", "")
        node.int_or_string = node.format == "int-or-string"
        if node.int_or_string or (node.type == "" and "properties" not in schema):
            node.type, node.scalar = "", "untyped"
            node.element, node.items, node.preserve = DEDUCED, UNTYPED, not node.int_or_string
        elif node.type in SCALARS:
            node.scalar = SCALARS[node.type]
            if node.type == "string" and node.format not in ("", "byte"):
                node.scalar = "untyped"
        elif node.type == "array":
            node.items = self._inline(schema["items"])
            node.set_list_type(schema)
        else:
            for key, child in schema.get("properties", {}).items():
                node.fields[key] = self._inline(child)
            additional = schema.get("additionalProperties")
            if isinstance(additional, dict):
                node.element = self._inline(additional)
            elif additional or not node.fields:
                node.element, node.preserve = DEDUCED, True
            go = schema.get("x-go", {})
            node.zero = go.get("zero", {})
            node.drop = frozenset(go.get("drop", ()))
            node.go_types = go.get("go", {})
        node.atomic_map = schema.get("x-kubernetes-map-type") == "atomic"
        self._merge_hints(node, schema)

    def _inline(self, schema: dict[str, Any]) -> Node:
        parts = schema.get("allOf", [schema])
        ref = parts[0].get("$ref") if len(parts) == 1 else None
        if ref is None:
            node = Node(schema.get("type", ""))
            self._fill(node, schema)
            node.default = schema.get("default", MISSING)
            return node
        target = self.node(ref.removeprefix(_PREFIX))
        overrides = schema.keys() - {"allOf", "$ref", "description"}
        if not overrides - {"default"} and schema.get("default", {}) == {}:
            return target
        # A reference may say how *this* use of the type is owned and merged.  The copy is filled after
        # its target only for non-recursive uses, which is all that exist in the published documents.
        twin = target.copy()
        if "x-kubernetes-map-type" in schema:
            twin.atomic_map = schema["x-kubernetes-map-type"] == "atomic"
        twin.default = schema.get("default", MISSING)
        self._merge_hints(twin, schema)
        return twin

    def _merge_hints(self, node: Node, schema: dict[str, Any]) -> None:
        strategy = schema.get("x-kubernetes-patch-strategy")
        if strategy:
            node.merge_strategy = tuple(strategy.split(","))
            node.merge_key = schema.get("x-kubernetes-patch-merge-key", "")


def compile_structural(schema: dict[str, Any], *, preserve: bool = False) -> Node:
    """The node of a structural schema (apiextensions.k8s.io/v1); its root is handled by the caller.

    `preserve` is what an ancestor's x-kubernetes-preserve-unknown-fields means for ownership: everything
    below is accepted field by field.
    """
    preserve = preserve or bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    type_ = schema.get("type", "")
    node = Node(type_)
    node.raw = schema
    node.format = schema.get("format", "")
    node.nullable = bool(schema.get("nullable"))
    node.preserve = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    node.embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    node.int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
    node.default = schema.get("default", MISSING)
    if type_ in SCALARS:
        node.scalar = SCALARS[type_]
        if type_ == "string" and node.format not in ("", "byte"):
            node.scalar = "untyped"
    elif type_ == "":
        node.scalar = "untyped"
    if node.is_map:
        for key, child in (schema.get("properties") or {}).items():
            node.fields[key] = compile_structural(child, preserve=preserve)
        additional = schema.get("additionalProperties")
        if isinstance(additional, dict):
            node.element = compile_structural(additional, preserve=preserve)
        elif additional or (additional is None and (preserve or not node.fields)):
            node.element = DEDUCED
        node.atomic_map = schema.get("x-kubernetes-map-type") == "atomic"
    if node.is_list:
        items = schema.get("items")
        node.items = compile_structural(items, preserve=preserve) if items else UNTYPED
        node.set_list_type(schema)
    _note(node, schema)
    return node


def _note(node: Node, schema: dict[str, Any]) -> None:
    """Note where defaulting and looking for duplicates have anything to do."""
    below = list(node.fields.values())
    if isinstance(schema.get("additionalProperties"), dict) and node.element is not None:
        below.append(node.element)
    if schema.get("items") and node.items is not None:
        below.append(node.items)
    node.own_defaults = tuple(
        (key, child) for key, child in node.fields.items() if child.default not in (MISSING, None)
    )
    node.deep_defaults = any(child.deep_defaults or child.default is not MISSING for child in below)
    node.keyed = node.list_type in ("set", "map") or any(child.keyed for child in below)
