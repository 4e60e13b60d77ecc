"""`Rbac`: decisions from the stored roles and bindings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kubeloop.sandbox.access import ACCOUNT_PREFIX, MASTERS, Attributes, Decision, User
from kubeloop.sandbox.rbac.rules import allows
from kubeloop.sandbox.registry import Object
from kubeloop.sandbox.store import Store

GROUP = "rbac.authorization.k8s.io"
ROLES = (GROUP, "roles")
CLUSTER_ROLES = (GROUP, "clusterroles")
BINDINGS = (GROUP, "rolebindings")
CLUSTER_BINDINGS = (GROUP, "clusterrolebindings")
_KEYS = (ROLES, CLUSTER_ROLES, BINDINGS, CLUSTER_BINDINGS)


@dataclass(frozen=True, slots=True)
class _Grant:
    """A binding that applies to a user: its role's rules, or what is wrong with it."""

    rules: tuple[Object, ...]
    text: str
    error: str = ""


class Rbac:
    """An authorizer over the objects in `store`. Thread-safe: it only reads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cache: dict[tuple[User, str], tuple[tuple[int, ...], list[_Grant]]] = {}

    def __call__(self, asked: Attributes) -> Decision:
        """Whether any rule bound to the user allows it."""
        if MASTERS in asked.user.groups:
            return Decision(True)
        errors: list[str] = []
        for grant in self._grants(asked.user, asked.namespace if asked.resource else ""):
            if grant.error:
                errors.append(grant.error)
            elif any(allows(rule, asked) for rule in grant.rules):
                return Decision(True, f"RBAC: allowed by {grant.text}")
        if not errors:
            return Decision(False)
        listed = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
        return Decision(False, f"RBAC: {listed}")

    def rules_of(self, user: User, namespace: str) -> list[Object]:
        """All rules that apply to `user` in `namespace` (empty: only those that apply everywhere)."""
        everything: list[Object] = [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
            {"verbs": ["*"], "nonResourceURLs": ["*"]},
        ]
        found = everything if MASTERS in user.groups else []
        return [*found, *(rule for grant in self._grants(user, namespace) for rule in grant.rules)]

    def role_rules(self, ref: Object, namespace: str) -> tuple[Object, ...] | None:
        """The rules of the role that `ref` (a roleRef) names; None when it is not there."""
        if ref.get("kind") == "Role":
            record = self._store.get(ROLES, namespace, ref["name"])
        else:
            record = self._store.get(CLUSTER_ROLES, "", ref["name"])
        return None if record is None else tuple(record.obj.get("rules") or ())

    def _grants(self, user: User, namespace: str) -> list[_Grant]:
        """The bindings that apply, kept until any RBAC object changes."""
        store = self._store
        version = (store.epoch, *(store.changed(key) for key in _KEYS))
        known = self._cache.get((user, namespace))
        if known is not None and known[0] == version:
            return known[1]
        grants = list(self._find(user, namespace))
        if len(self._cache) > 1000:
            self._cache.clear()
        self._cache[(user, namespace)] = (version, grants)
        return grants

    def _find(self, user: User, namespace: str) -> Iterator[_Grant]:
        records, _ = self._store.current(CLUSTER_BINDINGS)
        for record in records:
            subject = _applying(record.obj, user, "")
            if subject is not None:
                yield self._grant(record.obj, subject, f'ClusterRoleBinding "{record.name}"', "")
        if not namespace:
            return
        records, _ = self._store.current(BINDINGS, namespace)
        for record in records:
            subject = _applying(record.obj, user, namespace)
            if subject is not None:
                text = f'RoleBinding "{record.name}/{namespace}"'
                yield self._grant(record.obj, subject, text, namespace)

    def _grant(self, binding: Object, subject: Object, text: str, namespace: str) -> _Grant:
        ref = binding["roleRef"]
        rules = self.role_rules(ref, namespace)
        if rules is None:
            return _Grant((), "", f'{ref["kind"].lower()}.{GROUP} "{ref["name"]}" not found')
        who = f'{subject["kind"]} "{subject["name"]}"'
        if subject["kind"] == "ServiceAccount":
            who = f'ServiceAccount "{subject["name"]}/{subject.get("namespace") or namespace}"'
        return _Grant(rules, f'{text} of {ref["kind"]} "{ref["name"]}" to {who}')


def _applying(binding: Object, user: User, namespace: str) -> Object | None:
    """The first subject of a binding that means `user`."""
    for subject in binding.get("subjects") or ():
        name = subject["name"]
        match subject["kind"]:
            case "User":
                found = user.name == name
            case "Group":
                found = name in user.groups
            case _:
                home = subject.get("namespace") or namespace
                found = bool(home) and user.name == f"{ACCOUNT_PREFIX}{home}:{name}"
        if found:
            result: Object = subject
            return result
    return None
