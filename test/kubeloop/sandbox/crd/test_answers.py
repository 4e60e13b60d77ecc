"""Creating CRDs: answers recorded from a kube-apiserver 1.36 (hack/openapi/record.py).

The server walks maps in random order, so causes are compared as a set.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubeloop.sandbox.crd import accept, default_crd
from kubeloop.sandbox.crd.strategy import CRDStrategy
from kubeloop.sandbox.schema import builtin

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "answers.json").read_text())
SCHEMA = builtin(
    "CustomResourceDefinition",
    "apiextensions.k8s.io/v1",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_crd_is_accepted_or_refused_as_by_the_real_server(number: int) -> None:
    case = CASES[number]
    obj, _ = SCHEMA.prune(json.loads(json.dumps(case["body"])))
    crd = CRDStrategy().prepare_create(default_crd(obj), None)  # type: ignore[arg-type]
    found = {json.dumps(cause.to_wire(), sort_keys=True) for cause in accept(crd)}
    answer = case["answer"]
    assert found == {json.dumps(cause, sort_keys=True) for cause in answer.get("causes", [])}
    if "spec" in answer:
        assert crd["spec"] == answer["spec"]
