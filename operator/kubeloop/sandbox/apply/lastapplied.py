"""The bridge from client-side to server-side apply, for the manager named ``kubectl`` only.

Fields that the last-applied annotation holds with the live value are excused from conflicts, and the
annotation is kept up to date while it exists, so that one can go back.
"""

from __future__ import annotations

import json
from typing import Any

from kubeloop.sandbox.apply.compare import compare
from kubeloop.sandbox.apply.fieldset import Set, difference
from kubeloop.sandbox.apply.path import dump
from kubeloop.sandbox.apply.typed import TypedError, field_set
from kubeloop.sandbox.schema.node import Node

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
TOTAL_ANNOTATION_SIZE_LIMIT = 256 * 1024
"""Bytes (apimachinery: TotalAnnotationSizeLimitB)."""


def _annotations(obj: dict[str, Any]) -> dict[str, str]:
    return (obj.get("metadata") or {}).get("annotations") or {}


def excused(manager: str, live: dict[str, Any], node: Node, api_version: str) -> Set:
    """The fields that may be taken over without force."""
    text = _annotations(live).get(ANNOTATION)
    if manager != "kubectl" or not text:
        return {}
    try:
        last = json.loads(text)
        if not isinstance(last, dict) or last.get("apiVersion") != api_version:
            return {}
        fields = field_set(last, node)
    except (ValueError, TypedError):
        return {}
    comparison = compare(last, live, node)
    for changed in (comparison.modified, comparison.added, comparison.removed):
        fields = difference(fields, changed)
    return fields


def refreshed(obj: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """`obj` with its annotation (if it has one) telling of `config`."""
    annotations = _annotations(obj)
    if not annotations.get(ANNOTATION):
        return obj
    applied = dict(config)
    own = {key: value for key, value in _annotations(config).items() if key != ANNOTATION}
    applied["metadata"] = {**(config.get("metadata") or {})}
    if own or "annotations" in applied["metadata"]:
        applied["metadata"]["annotations"] = own
    text = dump(applied) + "\n"
    if annotations[ANNOTATION] == text:
        return obj
    changed = {**annotations, ANNOTATION: text}
    size = sum(len(key.encode()) + len(value.encode()) for key, value in changed.items())
    if size > TOTAL_ANNOTATION_SIZE_LIMIT:
        del changed[ANNOTATION]
    return {**obj, "metadata": {**obj["metadata"], "annotations": changed}}
