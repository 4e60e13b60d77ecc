"""Kinds of which only the metadata matters: whose objects exist, who owns them, how they are labelled.

For them a controller need not be sent, nor keep in memory, what else is in the objects: the values of
Secrets, the data of ConfigMaps, the bulk of pods.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from kubeloop.model.base import ModelMeta
from kubeloop.model.kubeobject import KubeObject
from kubeloop.model.resource import Resource


class PartialObjectMetadata(KubeObject):
    """The metadata of an object, and nothing else: there is no spec, data or status to be read by mistake.

    It has its own apiVersion and kind (v1, Secret), as in client-go, and not those of the encoding
    (meta.k8s.io/v1, PartialObjectMetadata). Classes come from `metadata_only`.
    """


def metadata_only(kind: type[KubeObject] | Resource) -> type[PartialObjectMetadata]:
    """The class to name wherever a kind is named, to say that only the metadata of its objects is wanted.

        SECRETS = Resource("", "v1", "secrets", "Secret")

        Controller(WebApp, reconcile, field_manager="webapps").owns(metadata_only(SECRETS))
        Informer(client, metadata_only(Deployment))

    The server is asked for just that. The rights that it takes are the same as for whole objects. It is
    always the same class for the same resource, so that controllers share an informer. Raises ValueError for
    a `Resource` without its kind, which owners are known by.
    """
    if isinstance(kind, Resource):
        return _class_of(kind)
    return kind if issubclass(kind, PartialObjectMetadata) else _class_of(kind.resource)


@cache
def _class_of(resource: Resource) -> type[PartialObjectMetadata]:
    if not resource.kind:
        raise ValueError(f"{resource} must say its kind")
    namespace = {
        "__module__": __name__,
        "__qualname__": f"{resource.kind}Metadata",
        "__doc__": f"The metadata of a {resource.kind}.",
        "resource": resource,
    }
    made: Any = ModelMeta(f"{resource.kind}Metadata", (PartialObjectMetadata,), namespace)
    partial: type[PartialObjectMetadata] = made
    return partial
