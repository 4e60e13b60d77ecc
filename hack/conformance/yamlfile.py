"""YAML files of which every value is one of JSON's."""

import re
from pathlib import Path
from typing import Any

import yaml


class _Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """YAML without timestamps, and with no booleans but true and false (so that `y` and `no` are words)."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":bool"))]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(?:true|false)$"), ["t", "f"])


def read_yaml(path: Path) -> Any:
    """The one document of a file."""
    return yaml.load(path.read_text(), Loader=_Loader)
