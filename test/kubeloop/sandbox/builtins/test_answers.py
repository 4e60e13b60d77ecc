"""Creating built-in objects: answers recorded from a kube-apiserver 1.36 (hack/openapi/record.py)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kubeloop.sandbox.apply import track_update
from kubeloop.sandbox.builtins import INFOS
from kubeloop.sandbox.pipeline import metadata as meta
from kubeloop.sandbox.status import ApiFailure, invalid

NOW = "2026-01-01T00:00:00Z"
CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "answers.json").read_text())
INFO = {info.plural: info for info in INFOS if info.shared is None}


def created(case: dict[str, Any]) -> dict[str, Any]:
    """What the sandbox answers, in the form of the recorded answers."""
    info = INFO[case["path"].rpartition("/")[2]]
    body = json.loads(json.dumps(case["body"]))
    if info.namespaced:
        body["metadata"].setdefault("namespace", "default")
    try:
        obj, unknown = info.schema.prune(body)
        if unknown:
            listed = ", ".join(f'unknown field "{path}"' for path in unknown)
            text = f'{info.kind} in version "v1" cannot be handled as a {info.kind}'
            text += f": strict decoding error: {listed}"
            return {"code": 400, "message": text, "causes": []}
        obj = info.strategy.defaults(info.schema.default(obj))
        obj = track_update(
            None,
            obj,
            manager="test",
            schema=info.schema,  # type: ignore[arg-type]
            api_version=info.api_version,
            now=NOW,
            reset=info.strategy.reset_fields(""),
        )
        owned = [entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", [])]
        obj = info.strategy.prepare_create(obj, datetime(2026, 1, 1, tzinfo=UTC))
        found = meta.validate_create(obj["metadata"], info.strategy.name_rule, namespaced=info.namespaced)
        found += info.schema.validate(obj) + info.strategy.validate_create(obj)
        if found:
            raise invalid(info.kind, info.group, obj["metadata"]["name"], found)
    except ApiFailure as failure:
        causes = (failure.details or {}).get("causes", [])
        return {"code": failure.code, "message": failure.message, "causes": causes}
    result = {key: value for key, value in obj.items() if key not in ("metadata", "apiVersion", "kind")}
    return {**result, "managedFields": owned}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["path"].rpartition("/")[2])
def test_a_create_is_answered_as_by_the_real_server(case: dict[str, Any]) -> None:
    assert created(case) == case["answer"]
