"""Histories of creates, applies, patches and updates by three managers, recorded from a kube-apiserver 1.36.

Each step has the live object before it, the request, and the real answer. The server walks maps in random
order, so conflicts and causes are compared as sets.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kubeloop.sandbox.apply import apply, keep_times, track_update
from kubeloop.sandbox.schema import CustomSchema
from kubeloop.sandbox.status import ApiFailure, invalid

RECORDED = json.loads(gzip.decompress((Path(__file__).parent / "answers.json.gz").read_bytes()))
STEPS: list[dict[str, Any]] = RECORDED["steps"]
API_VERSION = "fuzz.example.com/v1"
SCHEMA = CustomSchema("Fuzz", API_VERSION, RECORDED["schema"])
NOW = "2026-01-01T00:00:00Z"
SYSTEM = ("uid", "resourceVersion", "creationTimestamp", "generation")


def answered(step: dict[str, Any]) -> dict[str, Any]:
    live, body, sub = step["live"], step["body"], step["subresource"]
    reset = (("spec",), ("metadata",)) if sub else (("status",),)
    common: dict[str, Any] = {
        "manager": step["manager"],
        "schema": SCHEMA,
        "api_version": API_VERSION,
        "now": NOW,
        "subresource": sub,
        "reset": reset,
    }
    try:
        if step["op"] == "apply":
            new = SCHEMA.default(apply(live, body, force=step["force"], **common))
        else:
            pruned, _ = SCHEMA.prune(body)
            new = track_update(live, SCHEMA.default(pruned), **common)
        if live is not None:
            new = keep_times(live, new)
        new = _strategy(new, live, sub)
        found = SCHEMA.validate_status(new, live) if sub else SCHEMA.validate(new, live)
        if found:
            raise invalid("Fuzz", "fuzz.example.com", new["metadata"]["name"], found)
    except ApiFailure as failure:
        return failure.to_status()
    return new


def _strategy(new: dict[str, Any], live: dict[str, Any] | None, sub: str) -> dict[str, Any]:
    source, other = (live or {}, new) if sub else (new, live or {})
    result = {key: value for key, value in source.items() if key != "status"}
    if "status" in other:
        result["status"] = other["status"]
    if sub:
        metadata = {k: v for k, v in result["metadata"].items() if k != "managedFields"}
        if "managedFields" in new["metadata"]:
            metadata["managedFields"] = new["metadata"]["managedFields"]
        result["metadata"] = metadata
    return result


def comparable(answer: dict[str, Any]) -> Any:
    if "code" in answer:
        causes = (answer.get("details") or {}).get("causes", [])
        text = "" if causes else answer["message"]
        return answer["code"], text, sorted(json.dumps(cause, sort_keys=True) for cause in causes)
    result = json.loads(json.dumps(answer))
    metadata = {key: value for key, value in result["metadata"].items() if key not in SYSTEM}
    entries = [{k: v for k, v in e.items() if k != "time"} for e in metadata.get("managedFields", [])]
    metadata["managedFields"] = sorted(json.dumps(entry, sort_keys=True) for entry in entries)
    return {**result, "metadata": metadata}


@pytest.mark.parametrize("number", range(len(STEPS)))
def test_a_write_leaves_the_object_and_its_managers_as_the_real_server_does(number: int) -> None:
    step = STEPS[number]
    assert comparable(answered(step)) == comparable(step["answer"])
