"""OpenAPI documents: v3 per group-version (what kubectl explains and validates with), v2 as one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from kubeloop.sandbox.discovery import swagger
from kubeloop.sandbox.discovery.crdpaths import crd_paths
from kubeloop.sandbox.discovery.crdschemas import crd_schemas, definition_name
from kubeloop.sandbox.discovery.json import JSON, dump
from kubeloop.sandbox.registry import ResourceInfo
from kubeloop.sandbox.schema import definitions, read_data

Object = dict[str, Any]

PREFIX = "#/components/schemas/"
_PRIVATE = "x-go"


@lru_cache(maxsize=1)
def published() -> Object:
    """Descriptions and paths of the built-in kinds (about a megabyte: read on first use)."""
    result: Object = read_data("openapi.json.gz")
    return result


def _served(infos: Sequence[ResourceInfo], group: str, version: str) -> tuple[ResourceInfo, ...]:
    return tuple(info for info in infos if (info.group, info.version) == (group, version))


def _key(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def v3_index(infos: Sequence[ResourceInfo]) -> bytes:
    """``/openapi/v3``: where the documents are; the hash lets clients cache them."""
    paths: Object = {}
    for group, version in dict.fromkeys((info.group, info.version) for info in infos):
        served = _served(infos, group, version)
        digest = hashlib.sha512(_document(served)).hexdigest().upper()
        key = _key(group, version)
        paths[key] = {"serverRelativeURL": f"/openapi/v3/{key}?hash={digest}"}
    return dump({"paths": paths})


def v3_document(infos: Sequence[ResourceInfo], group: str, version: str) -> tuple[bytes, str] | None:
    """The document of one group-version, None when nothing is served there."""
    served = _served(infos, group, version)
    return (_document(served), JSON) if served else None


@lru_cache(maxsize=64)
def _document(served: tuple[ResourceInfo, ...]) -> bytes:
    builtin = published()["documents"].get(_key(served[0].group, served[0].version))
    custom = [info for info in served if info.custom]
    paths: Object = dict(builtin["paths"]) if builtin else {}
    schemas: Object = {}
    for info in custom:
        paths |= crd_paths(info, published()["documents"])
        schemas |= crd_schemas(info)
    for name in _reachable([paths, schemas]):
        if name not in schemas:
            schemas[name] = definition(name)
    components: Object = {"schemas": dict(sorted(schemas.items()))}
    info_block = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
    if builtin:
        info_block = builtin["info"]
        components["securitySchemes"] = builtin["securitySchemes"]
    document = {"openapi": "3.0.0", "info": info_block, "paths": paths, "components": components}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def definition(name: str) -> Object:
    """A built-in definition with its descriptions."""
    texts = published()["descriptions"].get(name) or {}
    return _described({k: v for k, v in definitions()[name].items() if k != _PRIVATE}, texts)


def _described(schema: Object, texts: Object) -> Object:
    out: Object = {"description": texts["description"]} if "description" in texts else {}
    for key, value in schema.items():
        if key == "properties":
            below = texts.get("properties") or {}
            out[key] = {name: _described(child, below.get(name) or {}) for name, child in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            out[key] = _described(value, texts.get(key) or {})
        else:
            out[key] = value
    return out


def _references(node: Any, found: set[str]) -> None:
    if isinstance(node, dict):
        ref = node.get("$ref")
        if isinstance(ref, str):
            found.add(ref.removeprefix(PREFIX))
        for value in node.values():
            _references(value, found)
    elif isinstance(node, list):
        for value in node:
            _references(value, found)


def _reachable(roots: Any) -> list[str]:
    pending: set[str] = set()
    _references(roots, pending)
    kept: set[str] = set()
    known = definitions()
    while pending:
        name = pending.pop()
        if name not in kept and name in known:
            kept.add(name)
            _references(known[name], pending)
    return sorted(kept)


def v2(infos: Sequence[ResourceInfo], accept: str) -> tuple[bytes, str]:
    """``/openapi/v2`` in the form that `accept` names first, JSON if it names none."""
    # Two forms, both named explicitly by those who want them: no weights to look at.
    found = {form: accept.find(form) for form in ("protobuf", "json") if form in accept}
    if found and min(found, key=lambda form: found[form]) == "protobuf":
        return _in_protobuf(tuple(infos)), swagger.CONTENT_TYPE
    return _in_json(tuple(infos)), JSON


@lru_cache(maxsize=4)
def _in_json(infos: tuple[ResourceInfo, ...]) -> bytes:
    schemas: Object = {name: definition(name) for name in definitions()}
    for info in infos:
        if info.custom:
            schemas |= crd_schemas(info)
    text = json.dumps(
        {
            "swagger": "2.0",
            "info": {"title": "Kubernetes", "version": "v1.36.3+sandbox"},
            "paths": {},
            "definitions": {name: _flat(schema) for name, schema in sorted(schemas.items())},
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )
    return text.replace(PREFIX, "#/definitions/").encode()


@lru_cache(maxsize=4)
def _in_protobuf(infos: tuple[ResourceInfo, ...]) -> bytes:
    return swagger.encode(json.loads(_in_json(infos)))


def _flat(schema: Any) -> Any:
    """OpenAPI v2 wants a bare reference where v3 wraps it, and knows no nullable."""
    if isinstance(schema, list):
        return [_flat(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: _flat(value) for key, value in schema.items() if key not in ("nullable", "oneOf", "anyOf")}
    parts = out.get("allOf")
    if isinstance(parts, list) and len(parts) == 1 and "$ref" in parts[0]:
        del out["allOf"]
        out["$ref"] = parts[0]["$ref"]
    return out


__all__ = ["definition", "definition_name", "published", "v2", "v3_document", "v3_index"]
