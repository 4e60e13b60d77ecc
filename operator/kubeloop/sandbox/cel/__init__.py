"""Validation rules in CEL (``x-kubernetes-validations``): checked at installation, evaluated on every write.

Contract: parsing, type checks and evaluation are those of the library cel-expr-python (Google's own runtime,
part of the extra ``sandbox``); this package adds what Kubernetes does around it: the types of schemas, its
functions, its wording, and the walk over an object. Nothing here is imported before a CRD uses rules;
`require` says 501 when the library is not installed. A function of Kubernetes that is missing here is a 501
naming it, when the CRD is installed. Costs are not estimated: the server also refuses rules that might take
too long on objects of unlimited size, the sandbox does not.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from kubeloop.sandbox.status import not_implemented_here

RULES = "x-kubernetes-validations"


def require() -> None:
    """Raises ApiFailure 501 when the CEL library is not installed."""
    if find_spec("cel_expr_python") is None or find_spec("google.protobuf") is None:
        raise not_implemented_here(
            "CEL validation rules (x-kubernetes-validations) without cel-expr-python and protobuf: install "
            "the extra 'sandbox'"
        )


def uses_rules(schema: Any) -> bool:
    """Whether a structural schema carries x-kubernetes-validations anywhere."""
    if not isinstance(schema, dict):
        return False
    if schema.get(RULES):
        return True
    below = [
        *(schema.get("properties") or {}).values(),
        schema.get("additionalProperties"),
        schema.get("items"),
    ]
    return any(map(uses_rules, below))
