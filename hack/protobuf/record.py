#!/usr/bin/env python3
"""Write the field numbers of Kubernetes' protobuf messages that the sandbox reads.

    record.py MODULES    where MODULES holds api and apimachinery (a Go module cache's k8s.io folder)

kubectl sends built-in kinds as protobuf; which field has which number stands in the generated.proto files of
those modules. Only messages reachable from the simulated kinds are kept.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path

VERSION = "v0.36.3"
FILES = {
    "k8s.io.api.core.v1": "api@{v}/core/v1/generated.proto",
    "k8s.io.api.apps.v1": "api@{v}/apps/v1/generated.proto",
    "k8s.io.api.rbac.v1": "api@{v}/rbac/v1/generated.proto",
    "k8s.io.api.events.v1": "api@{v}/events/v1/generated.proto",
    "k8s.io.api.coordination.v1": "api@{v}/coordination/v1/generated.proto",
    "k8s.io.api.authentication.v1": "api@{v}/authentication/v1/generated.proto",
    "k8s.io.api.authorization.v1": "api@{v}/authorization/v1/generated.proto",
    "k8s.io.api.autoscaling.v1": "api@{v}/autoscaling/v1/generated.proto",
    "k8s.io.apimachinery.pkg.apis.meta.v1": "apimachinery@{v}/pkg/apis/meta/v1/generated.proto",
    "k8s.io.apimachinery.pkg.runtime": "apimachinery@{v}/pkg/runtime/generated.proto",
    "k8s.io.apimachinery.pkg.api.resource": "apimachinery@{v}/pkg/api/resource/generated.proto",
    "k8s.io.apimachinery.pkg.util.intstr": "apimachinery@{v}/pkg/util/intstr/generated.proto",
}
KINDS = {
    "v1": ("k8s.io.api.core.v1", "ConfigMap Event Namespace Pod Secret Service ServiceAccount"),
    "apps/v1": ("k8s.io.api.apps.v1", "Deployment ReplicaSet"),
    "rbac.authorization.k8s.io/v1": (
        "k8s.io.api.rbac.v1",
        "ClusterRole ClusterRoleBinding Role RoleBinding",
    ),
    "events.k8s.io/v1": ("k8s.io.api.events.v1", "Event"),
    "coordination.k8s.io/v1": ("k8s.io.api.coordination.v1", "Lease"),
    "authentication.k8s.io/v1": (
        "k8s.io.api.authentication.v1",
        "SelfSubjectReview TokenRequest TokenReview",
    ),
    "authorization.k8s.io/v1": (
        "k8s.io.api.authorization.v1",
        "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
    ),
    "autoscaling/v1": ("k8s.io.api.autoscaling.v1", "Scale"),
    "meta.k8s.io/v1": ("k8s.io.apimachinery.pkg.apis.meta.v1", "DeleteOptions"),
}
OUTPUT = Path(__file__).parents[2] / "operator/kubeloop/sandbox/pipeline/data/protobuf.json.gz"

FIELD = re.compile(r"(optional|repeated)\s+([\w.]+)\s+(\w+)\s*=\s*(\d+)")
MAP = re.compile(r"map<\s*(\w+)\s*,\s*([\w.]+)\s*>\s+(\w+)\s*=\s*(\d+)")


def parse(package: str, text: str) -> dict[str, dict[str, list[str]]]:
    """Messages of one file: name -> {field number: [JSON name, shape, type]}."""
    messages: dict[str, dict[str, list[str]]] = {}
    text = re.sub(r"//[^\n]*", "", text)
    for name, body in re.findall(r"\nmessage (\w+) \{(.*?)\n\}", text, re.S):
        fields: dict[str, list[str]] = {}
        for shape, kind, field, number in FIELD.findall(body):
            fields[number] = [field, "one" if shape == "optional" else "many", resolve(package, kind)]
        for _, kind, field, number in MAP.findall(body):
            fields[number] = [field, "map", resolve(package, kind)]
        messages[f"{package}.{name}"] = fields
    return messages


def resolve(package: str, kind: str) -> str:
    """A type with its package; scalars bare."""
    if kind[0].islower() and "." not in kind:
        return kind
    return kind.lstrip(".") if "." in kind else f"{package}.{kind}"


def main(modules: Path) -> None:
    known: dict[str, dict[str, list[str]]] = {}
    for package, path in FILES.items():
        known |= parse(package, (modules / path.format(v=VERSION)).read_text())
    kinds = {
        f"{version}/{kind}": f"{package}.{kind}"
        for version, (package, names) in KINDS.items()
        for kind in names.split()
    }
    wanted, todo = {}, list(kinds.values())
    while todo:
        name = todo.pop()
        if name not in wanted and name in known:
            wanted[name] = known[name]
            todo += [kind for _, _, kind in known[name].values()]
    document = json.dumps({"kinds": kinds, "messages": wanted}, sort_keys=True, separators=(",", ":"))
    OUTPUT.write_bytes(gzip.compress(document.encode(), 9, mtime=0))
    print(f"{OUTPUT}: {len(wanted)} messages")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
