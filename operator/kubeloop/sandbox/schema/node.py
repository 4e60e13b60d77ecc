"""`Node`: one place in a schema, compiled so that the hot walks only read attributes.

The same node serves two readers: server-side apply wants the *topology* (which lists are maps, which maps
are atomic), validation wants the constraints, which stay in `raw` as the schema author wrote them.
"""

from __future__ import annotations

from typing import Any, Final


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""No default: distinct from a default of null."""

SCALARS = {"string": "string", "integer": "numeric", "number": "numeric", "boolean": "boolean"}


class Node:
    """The type of one value.

    `type` is the JSON type, empty when any is allowed. `fields` are the declared properties, `element` the
    type of undeclared keys (None: they are unknown fields), `items` that of list elements. `list_type` is
    ``atomic``, ``set`` or ``map`` (then `keys` names the key fields and `key_defaults` their defaults).
    `scalar` is what server-side apply takes for a scalar: ``string``, ``numeric``, ``boolean``,
    ``untyped`` or empty (none).

    Built-in kinds are Go structs, and it shows: `zero` holds what is always printed (``resources: {}``),
    `drop` the fields left out when they hold a zero value, `go_types` what error messages call them;
    `alternative` is the struct that may stand where the documents admit anything (JSONSchemaPropsOrBool).

    Structural schemas know where there is nothing to do: `own_defaults` are the fields with a default,
    `deep_defaults` says whether there is any default here or below, `keyed` the same of sets and map lists.
    """

    __slots__ = (
        "alternative",
        "atomic_map",
        "deep_defaults",
        "default",
        "drop",
        "element",
        "embedded",
        "fields",
        "format",
        "go_types",
        "int_or_string",
        "items",
        "key_defaults",
        "keyed",
        "keys",
        "list_type",
        "merge_key",
        "merge_strategy",
        "name",
        "nullable",
        "own_defaults",
        "preserve",
        "raw",
        "scalar",
        "type",
        "zero",
    )

    def __init__(self, type_: str = "", scalar: str = "") -> None:
        self.type = type_
        self.scalar = scalar
        self.fields: dict[str, Node] = {}
        self.element: Node | None = None
        self.items: Node | None = None
        self.atomic_map = False
        self.list_type = "atomic"
        self.keys: tuple[str, ...] = ()
        self.key_defaults: dict[str, Any] = {}
        self.default: Any = MISSING
        self.nullable = False
        self.preserve = False
        self.embedded = False
        self.int_or_string = False
        self.format = ""
        self.merge_strategy: tuple[str, ...] = ()
        self.merge_key = ""
        self.name = ""
        self.raw: dict[str, Any] = {}
        self.zero: dict[str, Any] = {}
        self.drop: frozenset[str] = frozenset()
        self.go_types: dict[str, str] = {}
        self.alternative: Node | None = None
        self.own_defaults: tuple[tuple[str, Node], ...] = ()
        self.deep_defaults = False
        self.keyed = False

    @property
    def is_map(self) -> bool:
        return self.type in ("object", "")

    @property
    def is_list(self) -> bool:
        return self.type in ("array", "")

    def child(self, key: str) -> Node | None:
        """The type of the map entry `key`; None when it is not declared."""
        return self.fields.get(key, self.element)

    def copy(self) -> Node:
        """A shallow copy, for a reference that overrides something of what it refers to."""
        twin = Node(self.type, self.scalar)
        for slot in Node.__slots__:
            setattr(twin, slot, getattr(self, slot))
        return twin

    def set_list_type(self, extensions: dict[str, Any]) -> None:
        """Read the list topology; patch-strategy counts where list-type is silent, as in the server."""
        kind = extensions.get("x-kubernetes-list-type")
        strategy = extensions.get("x-kubernetes-patch-strategy", "")
        if kind == "map":
            self.list_type, self.keys = "map", tuple(extensions["x-kubernetes-list-map-keys"])
        elif kind == "set":
            self.list_type = "set"
        elif kind is None and strategy in ("merge", "merge,retainKeys"):
            key = extensions.get("x-kubernetes-patch-merge-key")
            self.list_type, self.keys = ("map", (key,)) if key else ("set", ())
        if self.keys and self.items is not None:
            for key in self.keys:
                field = self.items.fields.get(key)
                if field is not None and field.default is not MISSING and field.default is not None:
                    self.key_defaults[key] = field.default


def _untyped() -> Node:
    node = Node("", "untyped")
    node.atomic_map = True
    node.element = node
    node.items = node
    node.preserve = True
    return node


UNTYPED: Final = _untyped()
"""Anything, owned as one: what an atomic list without a schema holds."""


def _deduced() -> Node:
    node = Node("", "untyped")
    node.element = node
    node.items = UNTYPED
    node.preserve = True
    return node


DEDUCED: Final = _deduced()
"""Anything, owned field by field: free-form objects (lists in it stay atomic)."""
