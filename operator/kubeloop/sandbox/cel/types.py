"""Structural schemas as types of expressions (apiserver: SchemaDeclType).

Objects become protobuf messages that exist only for the type checker; at run time expressions see plain maps.
"""

from __future__ import annotations

import itertools
from typing import Any

from cel_expr_python import cel
from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, struct_pb2, timestamp_pb2

from kubeloop.sandbox.cel.names import spellings

Object = dict[str, Any]
_F = descriptor_pb2.FieldDescriptorProto
_DYN, _LIST, _MAP = "google.protobuf.Value", "google.protobuf.ListValue", "google.protobuf.Struct"
_TIME, _DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"
_SCALARS = {
    "bool": _F.TYPE_BOOL,
    "int": _F.TYPE_INT64,
    "double": _F.TYPE_DOUBLE,
    "string": _F.TYPE_STRING,
    "bytes": _F.TYPE_BYTES,
}
_WIRE_NAMES = {"dyn": _DYN, "timestamp": _TIME, "duration": _DURATION}
OPAQUE = frozenset(("kubernetes.Quantity", "kubernetes.URL", "net.IP", "net.CIDR", "kubernetes.Semver"))
"""Types of Kubernetes that expressions cannot look into."""
PACKAGE = "kubeloop.sandbox.rules"
_NAME = {"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}}


def with_identity(schema: Object) -> Object:
    """The schema of a whole object: what is implied of kind, apiVersion and metadata is declared."""
    implied = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _NAME}
    return {**schema, "properties": {**(schema.get("properties") or {}), **implied}}


def scalar(schema: Object) -> str:
    """The type of a schema that is neither list nor map, by CEL's name; empty when there is none."""
    if schema.get("x-kubernetes-int-or-string"):
        return "dyn"
    kind, form = schema.get("type"), schema.get("format")
    if kind == "string":
        named = {"byte": "bytes", "duration": "duration", "date": "timestamp", "date-time": "timestamp"}
        return named.get(form or "", "string")
    return {"integer": "int", "number": "double", "boolean": "bool"}.get(kind or "", "")


class TypeBook:
    """The types of one version's schema; `type_of` describes any node of it."""

    def __init__(self) -> None:
        self._file = descriptor_pb2.FileDescriptorProto(
            name="rules.proto",
            package=PACKAGE,
            syntax="proto2",
            dependency=[f"google/protobuf/{part}.proto" for part in ("struct", "timestamp", "duration")],
        )
        self._numbers = itertools.count()
        self._known: dict[int, tuple[Object, str]] = {}

    def pool(self) -> descriptor_pool.DescriptorPool:
        """All types that `type_of` was asked for so far."""
        pool = descriptor_pool.DescriptorPool()
        for module in (struct_pb2, timestamp_pb2, duration_pb2):
            file = descriptor_pb2.FileDescriptorProto()
            module.DESCRIPTOR.CopyToProto(file)
            pool.Add(file)
        for name in sorted(OPAQUE):
            package, _, message = name.partition(".")
            file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", package=package)
            file.message_type.add(name=message)
            pool.Add(file)
        pool.Add(self._file)
        return pool

    def type_of(self, schema: Object, *, root: bool = False) -> str:
        """The signature of a schema's type; empty when expressions cannot see such values."""
        known = self._known.get(id(schema))
        if known is None:
            known = (schema, self._signature(schema, root))
            self._known[id(schema)] = known
        return known[1]

    def _signature(self, schema: Object, root: bool) -> str:
        plain = scalar(schema)
        if plain:
            return plain
        if schema.get("type") == "array":
            items = schema.get("items")
            inner = self.type_of(items) if items else ""
            return f"list({inner})" if inner else ""
        if schema.get("type") != "object":
            return ""
        additional = schema.get("additionalProperties")
        if isinstance(additional, dict):
            inner = self.type_of(additional)
            return f"map(string,{inner})" if inner else ""
        if root or schema.get("x-kubernetes-embedded-resource"):
            schema = with_identity(schema)
        return self._message(schema)

    def _message(self, schema: Object) -> str:
        fields = [
            (name, self.type_of(child))
            for key, child in (schema.get("properties") or {}).items()
            for name in spellings(key)
        ]
        message = self._file.message_type.add(name=f"Type{next(self._numbers)}")
        for number, (name, kind) in enumerate(fields, 1):
            if kind:
                _add(message, name, number, kind)
        return f"{PACKAGE}.{message.name}"


def _add(message: Any, name: str, number: int, kind: str) -> None:
    if kind.startswith("list("):
        _typed(message.field.add(name=name, number=number, label=_F.LABEL_REPEATED), kind[5:-1])
    elif kind.startswith("map("):
        # protoc's name for it, which the library insists on
        entry_name = "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Entry"
        if any(entry_name == other.name for other in message.nested_type):
            _typed(message.field.add(name=name, number=number, label=_F.LABEL_OPTIONAL), kind)
            return
        entry = message.nested_type.add(name=entry_name)
        entry.options.map_entry = True
        key = entry.field.add(name="key", number=1, label=_F.LABEL_OPTIONAL)
        key.type = _F.TYPE_STRING
        _typed(
            entry.field.add(name="value", number=2, label=_F.LABEL_OPTIONAL), kind[len("map(string,") : -1]
        )
        field = message.field.add(name=name, number=number, label=_F.LABEL_REPEATED)
        field.type, field.type_name = _F.TYPE_MESSAGE, entry_name
    else:
        _typed(message.field.add(name=name, number=number, label=_F.LABEL_OPTIONAL), kind)


def _typed(field: Any, kind: str) -> None:
    """Give a field its type; a list or map as an element can only be one of anything."""
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
        return
    field.type = _F.TYPE_MESSAGE
    if kind.startswith("list("):
        field.type_name = f".{_LIST}"
    elif kind.startswith("map("):
        field.type_name = f".{_MAP}"
    else:
        field.type_name = f".{_WIRE_NAMES.get(kind, kind)}"


_SIMPLE = {
    "bool": cel.Type.BOOL,
    "int": cel.Type.INT,
    "double": cel.Type.DOUBLE,
    "uint": cel.Type.UINT,
    "string": cel.Type.STRING,
    "bytes": cel.Type.BYTES,
    "dyn": cel.Type.DYN,
    "list": cel.Type.LIST,
    "map": cel.Type.MAP,
    "timestamp": cel.Type.TIMESTAMP,
    "duration": cel.Type.DURATION,
}


def signature(kind: str) -> cel.Type:
    """The library's type of a signature."""
    if kind.startswith("list("):
        return cel.Type.List(signature(kind[len("list(") : -1]))
    if kind.startswith("map("):
        return cel.Type.Map(cel.Type.STRING, signature(kind[len("map(string,") : -1]))
    return _SIMPLE.get(kind) or cel.Type(kind)
