"""Kinds of which only the metadata matters."""

from __future__ import annotations

import pytest

from kubeloop.model import Deployment, PartialObjectMetadata, Resource, metadata_only

SECRETS = Resource("", "v1", "secrets", "Secret")
WIRE = (
    b'{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata",'
    b'"metadata":{"name":"key","namespace":"ns","uid":"u","resourceVersion":"7","labels":{"a":"b"}},'
    b'"data":{"password":"aHVudGVyMg=="}}'
)


def test_an_object_has_its_own_kind_and_nothing_but_its_metadata() -> None:
    secret = metadata_only(SECRETS).model_validate_json(WIRE)
    assert isinstance(secret, PartialObjectMetadata)
    assert (secret.api_version, secret.kind, secret.key) == ("v1", "Secret", "ns/key")
    assert (secret.resource_version, secret.labels) == (7, {"a": "b"})
    assert "aHVudGVyMg" not in repr(secret)
    for absent in ("data", "spec", "status"):
        with pytest.raises(AttributeError):
            getattr(secret, absent)
    assert secret.to_wire().keys() == {"apiVersion", "kind", "metadata"}


def test_a_resource_has_one_class_whichever_way_it_was_named() -> None:
    made = metadata_only(Deployment)
    assert made is metadata_only(Deployment.resource)
    assert made is metadata_only(made)
    assert made is not metadata_only(SECRETS)
    assert made.resource is Deployment.resource
    assert made.__name__ == "DeploymentMetadata"


def test_a_resource_must_say_its_kind() -> None:
    with pytest.raises(ValueError, match="secrets must say its kind"):
        metadata_only(Resource("", "v1", "secrets"))
