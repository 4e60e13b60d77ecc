"""RBAC rules as pure functions: what a rule allows, and what others allow beyond a set of rules."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from kubeloop.sandbox.access import Attributes
from kubeloop.sandbox.registry import Object

ALL = "*"


def allows(rule: Object, asked: Attributes) -> bool:
    """Whether one rule allows a request (rbac.RuleAllows)."""
    if not _has(rule.get("verbs"), asked.verb):
        return False
    if not asked.resource:
        return any(_url_matches(url, asked.path) for url in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames")
    return (
        _has(rule.get("apiGroups"), asked.group)
        and _resource_matches(rule.get("resources") or (), asked.resource, asked.subresource)
        and (not names or asked.name in names)
    )


def _has(values: Sequence[str] | None, wanted: str) -> bool:
    return values is not None and (wanted in values or ALL in values)


def _resource_matches(resources: Sequence[str], resource: str, subresource: str) -> bool:
    combined = f"{resource}/{subresource}" if subresource else resource
    if ALL in resources or combined in resources:
        return True
    return bool(subresource) and f"{ALL}/{subresource}" in resources


def _url_matches(pattern: str, path: str) -> bool:
    if pattern in (ALL, path):
        return True
    return pattern.endswith(ALL) and path.startswith(pattern.rstrip(ALL))


def uncovered(held: Iterable[Object], wanted: Iterable[Object]) -> list[Object]:
    """What `wanted` allows and `held` does not, as single rules (validation.Covers)."""
    owned = [single for rule in held for single in broken_down(rule)]
    return [
        single
        for rule in wanted
        for single in broken_down(rule)
        if not any(_covers(each, single) for each in owned)
    ]


def broken_down(rule: Object) -> list[Object]:
    """A rule as rules of one verb, one resource (or path) and at most one name each."""
    singles: list[Object] = []
    verbs = rule.get("verbs") or ()
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in verbs:
                single = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                names = rule.get("resourceNames")
                singles += [{**single, "resourceNames": [name]} for name in names] if names else [single]
    singles += [
        {"nonResourceURLs": [u], "verbs": [v]} for u in rule.get("nonResourceURLs") or () for v in verbs
    ]
    return singles


def _covers(owner: Object, single: Object) -> bool:
    if not _has(owner["verbs"], single["verbs"][0]):
        return False
    if "nonResourceURLs" in single:
        return any(_url_matches(u, single["nonResourceURLs"][0]) for u in owner.get("nonResourceURLs") or ())
    if "nonResourceURLs" in owner or not _has(owner["apiGroups"], single["apiGroups"][0]):
        return False
    resource, _, subresource = single["resources"][0].partition("/")
    if not _resource_matches(owner["resources"], resource, subresource):
        return False
    names = owner.get("resourceNames")
    return not names or (single.get("resourceNames") or [""])[0] in names


def compacted(singles: Iterable[Object]) -> list[Object]:
    """Single rules put together again where only the verb differs (rbac.CompactRules)."""
    found: dict[str, Object] = {}
    for single in singles:
        key = json.dumps({k: v for k, v in single.items() if k != "verbs"}, sort_keys=True)
        known = found.setdefault(key, {**single, "verbs": []})
        known["verbs"] = sorted({*known["verbs"], *single["verbs"]})
    return list(found.values())


def shown(rule: Object) -> str:
    """A rule as messages show it (rbac.PolicyRule.CompactString)."""
    fields = (
        ("APIGroups", "apiGroups"),
        ("Resources", "resources"),
        ("NonResourceURLs", "nonResourceURLs"),
        ("ResourceNames", "resourceNames"),
        ("Verbs", "verbs"),
    )
    parts = [f"{name}:[{_quoted(rule[key])}]" for name, key in fields if rule.get(key)]
    return "{" + ", ".join(parts) + "}"


def _quoted(values: Iterable[str]) -> str:
    return ", ".join(json.dumps(value, ensure_ascii=False) for value in values)
