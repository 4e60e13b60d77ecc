"""A custom resource with every kind of list and map, and a Deployment."""

from __future__ import annotations

from typing import Any

import pytest

from kubeloop.sandbox.schema import BuiltinSchema, CustomSchema, builtin

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "image": {"type": "string"},
                "replicas": {"type": "integer"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "whole": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "additionalProperties": {"type": "string"},
                },
                "atoms": {"type": "array", "items": {"type": "string"}},
                "names": {
                    "type": "array",
                    "x-kubernetes-list-type": "set",
                    "items": {"type": "string"},
                },
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {
                        "type": "object",
                        "required": ["port"],
                        "properties": {
                            "port": {"type": "integer"},
                            "protocol": {"type": "string", "default": "TCP"},
                            "name": {"type": "string"},
                        },
                    },
                },
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


@pytest.fixture(scope="session")
def custom() -> CustomSchema:
    return CustomSchema("Thing", "example.com/v1", SCHEMA)


@pytest.fixture(scope="session")
def deployment() -> BuiltinSchema:
    return builtin("Deployment", "apps/v1", "io.k8s.api.apps.v1.Deployment")
