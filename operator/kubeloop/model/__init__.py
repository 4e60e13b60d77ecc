"""Kubernetes objects as immutable Python values, and CRDs generated from their classes.

The contract
------------
* **Values.** A model never changes after construction and holds no mutable container: maps are `FrozenDict`s,
  lists are tuples. A cache may hand the same object to any number of threads.
* **Slim.** Only declared fields are kept; what a server sends beyond them (managedFields above all) is
  skipped by the JSON decoder and costs no memory. Nothing is lost by that, because objects are never written
  back whole: writes are server-side applies and patches that name just their own fields.
* **Tolerant reading, strict making.** Null labels, a null status and unknown fields decode; a field of the
  wrong type raises `pydantic.ValidationError`, as does a wrong argument in Python.
* **Names.** `snake_case` in Python, `camelCase` on the wire; both are accepted when constructing.
* **One declaration.** The class that decodes an object also yields its CustomResourceDefinition, so that
  client and server agree on types, defaults and validation.

This package does no I/O, starts no thread, reads no clock and imports nothing of the `kubernetes` package.
"""

from __future__ import annotations

from kubeloop.model.base import Field, Model
from kubeloop.model.conditions import (
    Condition,
    Conditions,
    find_condition,
    format_time,
    is_true,
    set_condition,
    set_conditions,
)
from kubeloop.model.crd import AGE, Column, Scale
from kubeloop.model.customresource import CustomResource, custom_resource
from kubeloop.model.duration import Duration
from kubeloop.model.frozen import EMPTY, FrozenDict, Items, JsonObject, JsonValue, Map, RawJson, freeze, thaw
from kubeloop.model.kinds import Deployment, DeploymentCondition, DeploymentStatus, Namespace, Service
from kubeloop.model.kubeobject import ApiObject, DynamicObject, KubeObject
from kubeloop.model.manifest import to_yaml
from kubeloop.model.markers import (
    EmbeddedObject,
    ListAtomic,
    ListMap,
    ListSet,
    MapAtomic,
    MapGranular,
    PreserveUnknown,
    Rule,
)
from kubeloop.model.merge import MergeError, merge_crds
from kubeloop.model.metadata import ObjectMeta, OwnerReference
from kubeloop.model.partial import PartialObjectMetadata, metadata_only
from kubeloop.model.problems import DefinitionError
from kubeloop.model.quantity import Quantity
from kubeloop.model.resource import Resource
from kubeloop.model.scalars import Int32, Int64, IntOrString, Timestamp
from kubeloop.model.unions import OneOf

__all__ = [
    "AGE",
    "EMPTY",
    "ApiObject",
    "Column",
    "Condition",
    "Conditions",
    "CustomResource",
    "DefinitionError",
    "Deployment",
    "DeploymentCondition",
    "DeploymentStatus",
    "Duration",
    "DynamicObject",
    "EmbeddedObject",
    "Field",
    "FrozenDict",
    "Int32",
    "Int64",
    "IntOrString",
    "Items",
    "JsonObject",
    "JsonValue",
    "KubeObject",
    "ListAtomic",
    "ListMap",
    "ListSet",
    "Map",
    "MapAtomic",
    "MapGranular",
    "MergeError",
    "Model",
    "Namespace",
    "ObjectMeta",
    "OneOf",
    "OwnerReference",
    "PartialObjectMetadata",
    "PreserveUnknown",
    "Quantity",
    "RawJson",
    "Resource",
    "Rule",
    "Scale",
    "Service",
    "Timestamp",
    "custom_resource",
    "find_condition",
    "format_time",
    "freeze",
    "is_true",
    "merge_crds",
    "metadata_only",
    "set_condition",
    "set_conditions",
    "thaw",
    "to_yaml",
]
