"""YAML for `kubectl apply -f`, safe from the two YAML versions in play.

PyYAML has its own reading of YAML 1.1, kubectl has Go's: there a plain `y` or `n` is a boolean, even as the
name of a property (seen: kubectl created a CRD whose field `y` was called `true`), and `1e3` is a number. So
everything that either of them could take for something else than a string is quoted.
"""

from __future__ import annotations

import re
from typing import Any

_AMBIGUOUS = (
    ("tag:yaml.org,2002:bool", re.compile(r"^[yYnN]$"), "yYnN"),
    (
        "tag:yaml.org,2002:float",
        re.compile(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$"),
        "-+.0123456789",
    ),
    ("tag:yaml.org,2002:int", re.compile(r"^[-+]?0o?[0-7_]+$"), "-+0"),
)


def to_yaml(*documents: Any) -> str:
    """JSON-like values as YAML documents, keys in the given order.

    Deterministic; non-ASCII text stays readable. Values may be frozen.
    """
    import yaml  # a command line needs it, a running operator does not

    from kubeloop.model.frozen import thaw

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, _data: object) -> bool:
            return True  # kubectl's parsers and people do better without

    for tag, pattern, first in _AMBIGUOUS:
        Dumper.add_implicit_resolver(tag, pattern, list(first))
    text: str = yaml.dump_all(
        [thaw(document) for document in documents],
        Dumper=Dumper,
        sort_keys=False,
        width=100,
        allow_unicode=True,
        default_flow_style=False,
        explicit_start=len(documents) > 1,
    )
    return text
