"""The paths of a custom resource in its OpenAPI document, modelled on those of a built-in kind.

kubectl reads them to learn what a PATCH of the kind accepts (field validation, dry run).
"""

from __future__ import annotations

from typing import Any

from kubeloop.sandbox.discovery.crdschemas import definition_name
from kubeloop.sandbox.registry import ResourceInfo

Object = dict[str, Any]

_DEPLOYMENTS = ("apis/apps/v1", "/apis/apps/v1/", "deployments", "Deployment", "AppsV1")
_CRDS = (
    "apis/apiextensions.k8s.io/v1",
    "/apis/apiextensions.k8s.io/v1/",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    "ApiextensionsV1",
)
_SCALE = "io.k8s.api.autoscaling.v1.Scale"


def crd_paths(info: ResourceInfo, documents: Object) -> Object:
    """Path items of `info`, `documents` being the published built-in ones."""
    document, root, plural, kind, camel = _DEPLOYMENTS if info.namespaced else _CRDS
    source = documents[document]["paths"]
    names = _Names(info, kind, camel)
    out: Object = {}
    for path, item in source.items():
        tail = path.removeprefix(root)
        if plural not in tail.split("/"):
            continue
        subresource = tail.rpartition("}/")[2] if tail.rpartition("/")[0].endswith("{name}") else ""
        if subresource and subresource not in info.subresources:
            continue
        target = f"/apis/{info.group}/{info.version}/" + "/".join(
            info.plural if part == plural else part for part in tail.split("/")
        )
        out[target] = names.renamed(item)
    return out


class _Names:
    """What the model's names become."""

    def __init__(self, info: ResourceInfo, kind: str, camel: str) -> None:
        parts = [part for label in info.group.split(".") for part in label.split("-")]
        tag = parts[0] + "".join(part.capitalize() for part in parts[1:])
        self._kind = kind
        self._new_kind = info.kind
        self._camel = camel
        self._new_camel = tag[:1].upper() + tag[1:] + info.version.capitalize()
        self._tag = f"{tag}_{info.version}"
        self._gvk = {"group": info.group, "version": info.version, "kind": info.kind}
        self._definition = definition_name(info)
        self._list = self._definition.rpartition(".")[0] + f".{info.list_name}"

    def renamed(self, node: Any, key: str = "") -> Any:
        """`node` with everything that names the model replaced, protobuf and strategic merge left out."""
        if isinstance(node, dict):
            if key == "x-kubernetes-group-version-kind":
                return node if node.get("kind") == "Scale" else self._gvk
            return {
                name: self.renamed(value, name)
                for name, value in node.items()
                if "protobuf" not in name and "cbor" not in name and "strategic" not in name
            }
        if isinstance(node, list):
            if key == "tags":
                return [self._tag]
            return [self.renamed(value, key) for value in node]
        if isinstance(node, str):
            return self._text(node, key)
        return node

    def _text(self, text: str, key: str) -> str:
        if key == "$ref":
            if text.endswith(f".{self._kind}"):
                return "#/components/schemas/" + self._definition
            if text.endswith(f".{self._kind}List"):
                return "#/components/schemas/" + self._list
            return text
        if key == "operationId":
            return text.replace(self._camel, self._new_camel).replace(self._kind, self._new_kind)
        return text.replace(self._kind, self._new_kind) if key == "description" else text
