"""Extract what the sandbox simulates from a real API server's OpenAPI v3 documents.

    python hack/openapi/extract.py --server https://127.0.0.1:6443 --token-file TOKEN \\
        --ca CA.crt --zeros ZEROS.json

Writes gzipped JSON files into operator/kubeloop/sandbox/schema/data:
`schemas.json.gz` (every definition the simulated kinds reach, without descriptions: read at start) and
`openapi.json.gz` (descriptions and paths: read when somebody asks for an OpenAPI document) and
`columns.json.gz` (the column definitions of `kubectl get`).
The output depends on nothing but the server's documents, so a second run changes no byte.
"""

from __future__ import annotations

import argparse
import gzip
import json
import ssl
import urllib.request
from pathlib import Path
from typing import Any

PREFIX = "#/components/schemas/"
OUT = Path(__file__).resolve().parents[2] / "operator/kubeloop/sandbox/schema/data"

# group-version document -> plural names of the kinds that are simulated
WANTED = {
    "api/v1": {"namespaces", "pods", "configmaps", "secrets", "services", "serviceaccounts", "events"},
    "apis/events.k8s.io/v1": {"events"},
    "apis/apps/v1": {"deployments", "replicasets"},
    "apis/coordination.k8s.io/v1": {"leases"},
    "apis/apiextensions.k8s.io/v1": {"customresourcedefinitions"},
    "apis/rbac.authorization.k8s.io/v1": {"roles", "rolebindings", "clusterroles", "clusterrolebindings"},
}
# definitions that no kept path mentions but that the sandbox needs
ALSO = {"apis/autoscaling/v1": ["io.k8s.api.autoscaling.v1.Scale"]}
SUBRESOURCES = {"status", "scale", "finalize"}


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def fetch(
    server: str, path: str, token: str, ca: str | None, accept: str = "application/json"
) -> dict[str, Any]:
    context = ssl.create_default_context(cafile=ca)
    headers = {"Authorization": f"Bearer {token}", "Accept": accept}
    request = urllib.request.Request(server + path, headers=headers)
    with urllib.request.urlopen(request, context=context, timeout=60) as response:
        document: dict[str, Any] = json.load(response)
    return document


def wanted_path(path: str, plurals: set[str]) -> bool:
    parts = [part for part in path.split("/") if part and not part.startswith("{")]
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if "watch" in parts:
        return False
    if parts and parts[0] == "namespaces" and len(parts) > 1 and parts[1] not in SUBRESOURCES:
        parts = parts[1:]
    return not parts or (parts[0] in plurals and set(parts[1:]) <= SUBRESOURCES)


def references(node: Any, found: set[str]) -> None:
    if isinstance(node, dict):
        ref = node.get("$ref")
        if isinstance(ref, str):
            found.add(ref.removeprefix(PREFIX))
        for value in node.values():
            references(value, found)
    elif isinstance(node, list):
        for value in node:
            references(value, found)


def split_descriptions(node: Any) -> tuple[Any, Any]:
    """`node` without its documentation strings, and a parallel tree holding only those."""
    if not isinstance(node, dict):
        return node, None
    bare: dict[str, Any] = {}
    texts: dict[str, Any] = {}
    for key, value in node.items():
        if key == "description" and isinstance(value, str):
            texts["description"] = value
        elif key in ("properties",):
            bare[key], texts[key] = {}, {}
            for name, child in value.items():
                bare[key][name], text = split_descriptions(child)
                if text:
                    texts[key][name] = text
        elif key in ("items", "additionalProperties"):
            bare[key], text = split_descriptions(value)
            if text:
                texts[key] = text
        else:
            bare[key] = value
    return bare, texts


def write(name: str, value: Any) -> None:
    data = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    path = OUT / name
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        packed.write(data)
    print(f"{path.name}: {len(data)} bytes, {path.stat().st_size} packed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--token-file", required=True)
    parser.add_argument("--ca")
    parser.add_argument("--zeros", required=True, help="output of hack/openapi/zeros")
    args = parser.parse_args()
    token = Path(args.token_file).read_text().strip()
    zeros: dict[str, Any] = json.loads(Path(args.zeros).read_text())
    definitions: dict[str, Any] = {}
    documents: dict[str, Any] = {}
    pending: set[str] = set()
    for name in (*WANTED, *ALSO):
        plurals = WANTED.get(name, set())
        document = fetch(args.server, f"/openapi/v3/{name}", token, args.ca)
        for definition, schema in document["components"]["schemas"].items():
            definitions.setdefault(definition, schema)
        paths = {p: v for p, v in document["paths"].items() if plurals and wanted_path(p, plurals)}
        used: set[str] = set(ALSO.get(name, ()))
        references(paths, used)
        pending |= used
        if plurals:
            documents[name] = {
                "info": document["info"],
                "paths": paths,
                "securitySchemes": document["components"].get("securitySchemes", {}),
            }
    kept: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in kept:
            kept.add(name)
            found: set[str] = set()
            references(definitions[name], found)
            pending |= found
    schemas: dict[str, Any] = {}
    texts: dict[str, Any] = {}
    for name in sorted(kept):
        schemas[name], texts[name] = split_descriptions(definitions[name])
        if name in zeros:
            schemas[name]["x-go"] = zeros[name]
    columns: dict[str, Any] = {}
    for name, plurals in WANTED.items():
        for plural in sorted(plurals):
            table = fetch(args.server, f"/{name}/{plural}?limit=1", token, args.ca, TABLE)
            columns[f"{name}/{plural}"] = table["columnDefinitions"]
    write("columns.json.gz", columns)
    write("schemas.json.gz", schemas)
    write("openapi.json.gz", {"descriptions": texts, "documents": documents})


if __name__ == "__main__":
    main()
