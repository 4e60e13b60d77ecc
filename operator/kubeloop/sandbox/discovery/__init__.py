"""Discovery and OpenAPI: which resources there are, and what their fields mean.

Contract: `document` is a pure function of the registry's snapshot and the request; None means that the path
is nothing of ours. Documents of one group-version depend only on its resources, and are remembered by them.
"""

from __future__ import annotations

from kubeloop.sandbox.discovery import groups, openapi
from kubeloop.sandbox.discovery.json import JSON, dump
from kubeloop.sandbox.registry import Registry

VERSION = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.3+sandbox",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "sandbox",
}
"""What ``/version`` says: the version whose answers are simulated."""


def document(registry: Registry, path: str, accept: str) -> tuple[bytes, str] | None:
    """Body and content type of a discovery or OpenAPI path, None for any other path."""
    parts = tuple(part for part in path.split("/") if part)
    infos = registry.infos()
    match parts:
        case ("version",):
            return dump(VERSION), JSON
        case ("api",) | ("apis",) if groups.wants_aggregated(accept):
            return dump(groups.aggregated(infos, core=parts[0] == "api")), groups.aggregated_type(accept)
        case ("api",):
            return dump(groups.core_versions()), JSON
        case ("apis",):
            return dump(groups.group_list(infos)), JSON
        case ("api", version) if registry.serves("", version):
            return dump(groups.resource_list(infos, "", version)), JSON
        case ("apis", group):
            found = groups.group(infos, group)
            return (dump(found), JSON) if found is not None else None
        case ("apis", group, version) if registry.serves(group, version):
            return dump(groups.resource_list(infos, group, version)), JSON
        case ("openapi", "v2"):
            return openapi.v2(infos, accept)
        case ("openapi", "v3"):
            return openapi.v3_index(infos), "text/plain; charset=utf-8"
        case ("openapi", "v3", "api", version):
            return openapi.v3_document(infos, "", version)
        case ("openapi", "v3", "apis", group, version):
            return openapi.v3_document(infos, group, version)
        case _:
            return None
