"""Scalar types that Kubernetes schemas know and Python does not.

Each is an ordinary `int` or `str` at run time; the annotation says how it is checked and what the CRD says.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema


class _IntFormat:
    """An OpenAPI integer `format` and its bounds, unless the field has narrower ones.

    The CRD says the format only; the schema generator drops the bounds that follow from it.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        # Not `Field(ge=..., le=...)`: two Fields on one field merge, and these bounds could win over the
        # user's.
        low, high = INT_BOUNDS[self.name]
        schema: Any = handler(source)
        return {"ge": low, "le": high, **schema}

    def __get_pydantic_json_schema__(self, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "format": self.name}


INT_BOUNDS = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
"""Smallest and greatest value of each integer format."""

Int32 = Annotated[int, _IntFormat("int32")]
"""A 32-bit integer, as replica counts and ports are."""

Int64 = Annotated[int, _IntFormat("int64")]
"""A 64-bit integer, as generations are."""

IntOrString = Annotated[
    int | str,
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}),
]
"""A number or a string, for example a percentage: `maxSurge: 1` or `maxSurge: 25%`."""

Timestamp = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
"""An RFC 3339 time, kept as the text it came as: most are only ever shown or passed on."""
