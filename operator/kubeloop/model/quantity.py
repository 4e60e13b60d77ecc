"""Resource quantities: `500m`, `1.5`, `2Gi`.

The grammar and the suffixes are those of k8s.io/apimachinery/pkg/api/resource; the pattern is the one that
controller-gen puts into CRDs.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_PARTS = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?")
_SUFFIXES = {
    "": Decimal(1),
    **{suffix: Decimal(10) ** (3 * power) for power, suffix in enumerate("num", start=-3)},
    **{suffix: Decimal(10) ** (3 * power) for power, suffix in enumerate("kMGTPE", start=1)},
    **{suffix + "i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}
_MAX_EXPONENT = 1000  # far beyond any resource, and small enough that arithmetic stays cheap


class Quantity(str):
    """An amount of a resource in the notation it was written in; `amount` is its exact value.

    The text is kept because the server keeps it too: two quantities are equal as strings only when spelled
    alike, so compare `amount`s. A plain JSON number is taken as its decimal text.
    """

    __slots__ = ()

    @property
    def amount(self) -> Decimal:
        """The value in base units (cores, bytes, pieces), exactly.

        Raises ValueError for text that is no quantity, or one with an exponent beyond all reason.
        """
        parts = _PARTS.fullmatch(self)
        if parts is None:
            raise ValueError(f"{str(self)!r} is not a quantity: write for example 500m, 1.5 or 2Gi")
        number, suffix = parts[1], parts[2] or ""
        if suffix in _SUFFIXES:
            return Decimal(number) * _SUFFIXES[suffix]
        exponent = int(suffix[1:])
        if abs(exponent) > _MAX_EXPONENT:
            raise ValueError(f"the exponent of quantity {str(self)!r} is out of range")
        return Decimal(number).scaleb(exponent)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        text = core_schema.chain_schema(
            [
                core_schema.union_schema(
                    [
                        core_schema.str_schema(strict=True),
                        core_schema.chain_schema(
                            [
                                core_schema.int_schema(strict=True),
                                core_schema.no_info_plain_validator_function(str),
                            ]
                        ),
                    ],
                    custom_error_type="quantity",
                    custom_error_message="Input should be a quantity, for example 500m, 1.5, 2Gi or 1",
                ),
                core_schema.str_schema(pattern=PATTERN),
            ]
        )
        return core_schema.no_info_after_validator_function(
            cls, text, serialization=core_schema.to_string_ser_schema()
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: Any, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": PATTERN,
            "x-kubernetes-int-or-string": True,
        }
