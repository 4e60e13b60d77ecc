"""Objects inside objects (``x-kubernetes-embedded-resource``): their metadata is an object's metadata."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from kubeloop.sandbox.schema import causes
from kubeloop.sandbox.schema.node import Node
from kubeloop.sandbox.status import Cause

Object = dict[str, Any]
Clean = Callable[[Object], tuple[Object, list[str]]]
_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LABEL_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
    "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def leads_to_embedded(node: Node | None) -> bool:
    """Whether a structural schema has an embedded resource anywhere."""
    if node is None or not (node.fields or node.items is not None or node.embedded or node.raw):
        return False
    if node.embedded:
        return True
    additional = node.element if isinstance(node.raw.get("additionalProperties"), dict) else None
    below = [*node.fields.values(), additional]
    if node.raw.get("items"):
        below.append(node.items)
    return any(leads_to_embedded(child) for child in below)


def _below(value: Any, node: Node) -> Iterator[tuple[Any, str, Any, Node]]:
    """The parts of a value that have a schema: key or index, path element, part, schema."""
    if isinstance(value, dict):
        additional = node.element if isinstance(node.raw.get("additionalProperties"), dict) else None
        for key, item in value.items():
            child = node.fields.get(key)
            if child is not None:
                yield key, f".{key}", item, child
            elif additional is not None:
                yield key, f"[{key}]", item, additional
    elif isinstance(value, list) and node.items is not None and node.raw.get("items"):
        for index, item in enumerate(value):
            yield index, f"[{index}]", item, node.items


def clean(value: Any, node: Node, path: str, tidy: Clean, unknown: list[str]) -> Any:
    """`value` with the metadata of embedded resources as `tidy` has it."""
    changed: dict[Any, Any] = {}
    for key, step, item, child in _below(value, node):
        where = f"{path}{step}" if path else step.removeprefix(".")
        new = clean(item, child, where, tidy, unknown)
        if child.embedded and isinstance(new, dict) and isinstance(new.get("metadata"), dict):
            metadata, strange = tidy(new["metadata"])
            unknown += [f"{where}.metadata.{name}" for name in strange]
            if metadata is not new["metadata"]:
                new = {**new, "metadata": metadata}
        if new is not item:
            changed[key] = new
    if not changed:
        return value
    if isinstance(value, dict):
        return {**value, **changed}
    return [changed.get(index, item) for index, item in enumerate(value)]


def validate(value: Any, node: Node, path: str, check: Callable[[Object], list[Cause]]) -> list[Cause]:
    """What is wrong with embedded resources; `check` judges their metadata."""
    found: list[Cause] = []
    for _, step, item, child in _below(value, node):
        where = f"{path}{step}" if path else step.removeprefix(".")
        if child.embedded and isinstance(item, dict):
            found += _resource(item, where, check)
        found += validate(item, child, where, check)
    return found


def _resource(obj: Object, path: str, check: Callable[[Object], list[Cause]]) -> list[Cause]:
    found: list[Cause] = []
    version, kind = obj.get("apiVersion"), obj.get("kind")
    if not version:
        found.append(causes.required(f"{path}.apiVersion"))
    elif isinstance(version, str) and version.count("/") > 1:
        text = f"unexpected GroupVersion string: {version}"
        found.append(causes.invalid(f"{path}.apiVersion", version, text))
    if not kind:
        found.append(causes.required(f"{path}.kind"))
    elif isinstance(kind, str) and not _LABEL.fullmatch(kind.lower()):
        found.append(
            causes.invalid(
                f"{path}.kind", kind, f"may have mixed case, but should otherwise match: {_LABEL_TEXT}"
            )
        )
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        checked = metadata if metadata.get("name") else {**metadata, "name": "fakename"}
        found += [Cause(c.reason, c.message, f"{path}.{c.field}") for c in check(checked)]
    return found
