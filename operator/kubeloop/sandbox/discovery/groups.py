"""The lists of groups, versions and resources, aggregated (one document) and legacy (one per version)."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

from kubeloop.sandbox.registry import SUBRESOURCE_VERBS, ResourceInfo

Object = dict[str, Any]

_V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_FINALIZE_VERBS = ("update",)
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")


def wants_aggregated(accept: str) -> bool:
    """Whether the client understands the one-document form (v2; its beta is no longer served)."""
    return _first(accept).startswith("v2")


def aggregated_type(accept: str) -> str:
    """The content type of the aggregated form."""
    del accept
    return _V2


def _first(accept: str) -> str:
    """The first acceptable form: ``v2``, or ``plain`` for ordinary JSON."""
    for item in accept.split(","):
        media, *params = (part.strip() for part in item.split(";"))
        given = dict(param.partition("=")[::2] for param in params)
        if media not in ("application/json", "*/*", "application/*", ""):
            continue
        if given.get("as") == "APIGroupDiscoveryList":
            if given.get("g") == "apidiscovery.k8s.io" and given.get("v") == "v2":
                return "v2"
            continue
        return "plain"
    return "plain"


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Sort key of kube-aware version order: GA before beta before alpha, newest first."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (1, 0, 0, version)
    major, stage, minor = match.groups()
    rank = {None: 0, "beta": 1, "alpha": 2}[stage]
    return (0, rank, -int(major) * 1000 - int(minor or 0), version)


def _groups(infos: Iterable[ResourceInfo], *, core: bool) -> dict[str, list[str]]:
    """Groups in order of registration, with their versions in order of preference."""
    found: dict[str, list[str]] = {}
    for info in infos:
        if bool(info.group) != core:
            versions = found.setdefault(info.group, [])
            if info.version not in versions:
                versions.append(info.version)
    return {group: sorted(versions, key=version_rank) for group, versions in found.items()}


def _subresource_kind(info: ResourceInfo, name: str) -> tuple[str, str, str]:
    return ("autoscaling", "v1", "Scale") if name == "scale" else ("", "", info.kind)


def _subresource_verbs(name: str) -> list[str]:
    return list(_FINALIZE_VERBS if name == "finalize" else SUBRESOURCE_VERBS)


def aggregated(infos: Sequence[ResourceInfo], *, core: bool) -> Object:
    """APIGroupDiscoveryList: all of ``/api`` or ``/apis``."""
    items = []
    for group, versions in _groups(infos, core=core).items():
        listed = [
            {
                "version": version,
                "resources": [
                    _aggregated_resource(info)
                    for info in sorted(infos, key=lambda i: i.plural)
                    if (info.group, info.version) == (group, version)
                ],
                "freshness": "Current",
            }
            for version in versions
        ]
        items.append({"metadata": {"name": group} if group else {}, "versions": listed})
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def _aggregated_resource(info: ResourceInfo) -> Object:
    own = (info.group, info.version) if info.custom else ("", "")
    resource: Object = {
        "resource": info.plural,
        "responseKind": {"group": own[0], "version": own[1], "kind": info.kind},
        "scope": "Namespaced" if info.namespaced else "Cluster",
        "singularResource": info.singular_name,
        "verbs": list(info.verbs),
    }
    if info.short_names:
        resource["shortNames"] = list(info.short_names)
    if info.categories:
        resource["categories"] = list(info.categories)
    subresources = []
    for name in sorted(info.subresources):
        group, version, kind = _subresource_kind(info, name)
        if name != "scale":
            group, version = own
        subresources.append(
            {
                "subresource": name,
                "responseKind": {"group": group, "version": version, "kind": kind},
                "verbs": _subresource_verbs(name),
            }
        )
    if subresources:
        resource["subresources"] = subresources
    return resource


def core_versions() -> Object:
    """``/api``."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def _api_group(group: str, versions: list[str]) -> Object:
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def group_list(infos: Sequence[ResourceInfo]) -> Object:
    """``/apis``."""
    groups = [_api_group(group, versions) for group, versions in _groups(infos, core=False).items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(infos: Sequence[ResourceInfo], name: str) -> Object | None:
    """``/apis/<group>``."""
    versions = _groups(infos, core=False).get(name)
    if versions is None:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_api_group(name, versions)}


def resource_list(infos: Sequence[ResourceInfo], group_name: str, version: str) -> Object:
    """``/apis/<group>/<version>``."""
    resources: list[Object] = []
    for info in sorted(infos, key=lambda i: i.plural):
        if (info.group, info.version) == (group_name, version):
            resources += _legacy_resources(info)
    head: Object = {"kind": "APIResourceList"}
    if group_name:
        head["apiVersion"] = "v1"
    head["groupVersion"] = f"{group_name}/{version}" if group_name else version
    return {**head, "resources": resources}


def _legacy_resources(info: ResourceInfo) -> list[Object]:
    main: Object = {
        "name": info.plural,
        "singularName": info.singular_name,
        "namespaced": info.namespaced,
        "kind": info.kind,
        "verbs": list(info.verbs),
    }
    if info.short_names:
        main["shortNames"] = list(info.short_names)
    if info.categories:
        main["categories"] = list(info.categories)
    main["storageVersionHash"] = _storage_hash(info)
    resources = [main]
    # Of custom resources status comes first, as the server's code has it; of the built-in ones by name.
    for name in sorted(info.subresources, reverse=info.custom):
        group_name, version, kind = _subresource_kind(info, name)
        sub: Object = {"name": f"{info.plural}/{name}", "singularName": "", "namespaced": info.namespaced}
        if group_name:
            sub |= {"group": group_name, "version": version}
        resources.append({**sub, "kind": kind, "verbs": _subresource_verbs(name)})
    return resources


def _storage_hash(info: ResourceInfo) -> str:
    """The first eight bytes of a hash of the stored kind (apiserver: discovery.StorageVersionHash)."""
    if info.key == ("apiextensions.k8s.io", "customresourcedefinitions"):
        version = "v1beta1"  # in which the real server still stores them
    else:
        version = info.storage_version or info.version
    text = f"{info.key[0]}/{version}/{info.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()
