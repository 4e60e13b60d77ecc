"""Nobody grants what they do not have, and nobody blocks an owner they could not keep alive themselves.

The first is the storage wrapper ``policybased`` of the real server's roles and bindings; the second its
admission plugin OwnerReferencesPermissionEnforcement (off by default there, on in hardened clusters).
"""

from __future__ import annotations

from kubeloop.sandbox.access import MASTERS, Attributes, User
from kubeloop.sandbox.pipeline.backend import Backend, Call
from kubeloop.sandbox.rbac.authorizer import GROUP, Rbac
from kubeloop.sandbox.rbac.rules import compacted, shown, uncovered
from kubeloop.sandbox.registry import Object
from kubeloop.sandbox.status import ApiFailure, forbidden, not_found


def check_write(backend: Backend, call: Call, new: Object, old: Object | None) -> None:
    """Judge a create (`old` None) or an update. Raises a 403 failure; without RBAC nothing is judged."""
    rbac = backend.access.authorizer
    if rbac is None or call.request.internal:
        return
    if old is None and call.request.method != "POST":
        # A PUT or an apply that creates.
        name = new["metadata"].get("name", "")
        info, namespace = call.info, call.target.namespace if call.info.namespaced else ""
        asked = Attributes(call.user, "create", info.group, info.plural, "", namespace, name)
        backend.access.authorize(asked)
    if not isinstance(rbac, Rbac) or MASTERS in call.user.groups:
        return
    if call.info.group == GROUP:
        _check_grant(rbac, call, new, old)
    references = new["metadata"].get("ownerReferences") or []
    before = [] if old is None else old["metadata"].get("ownerReferences") or []
    if references != before:
        _check_owners(backend, call, new, before, creating=old is None)


def _check_grant(rbac: Rbac, call: Call, new: Object, old: Object | None) -> None:
    metadata = new["metadata"]
    namespace, name = call.target.namespace, metadata.get("name", "")
    if "roleRef" not in new:
        if old is not None and old.get("rules") == new.get("rules"):
            return
        asked = Attributes(call.user, "escalate", GROUP, call.info.plural, "", namespace, name)
        if rbac(asked).allowed:
            return
        wanted = tuple(new.get("rules") or ())
    else:
        if old is not None and all(old.get(k) == new.get(k) for k in ("roleRef", "subjects")):
            return
        ref = new["roleRef"]
        plural = "roles" if ref["kind"] == "Role" else "clusterroles"
        asked = Attributes(call.user, "bind", GROUP, plural, "", namespace, ref["name"])
        if rbac(asked).allowed:
            return
        found = rbac.role_rules(ref, namespace)
        if found is None:
            raise not_found(GROUP, plural, ref["name"])
        wanted = found
    missing = uncovered(rbac.rules_of(call.user, namespace), wanted)
    if missing:
        raise _escalation(call, name, call.user, missing)


def _escalation(call: Call, name: str, user: User, missing: list[Object]) -> ApiFailure:
    groups = " ".join(f'"{group}"' for group in user.groups)
    lines = "\n".join(sorted(shown(rule) for rule in compacted(missing)))
    who = f'user "{user.name}" (groups=[{groups}])'
    why = f"{who} is attempting to grant RBAC permissions not currently held:\n{lines}"
    return forbidden(call.info.group, call.info.plural, name, why)


def _check_owners(backend: Backend, call: Call, new: Object, before: list[Object], *, creating: bool) -> None:
    """Owners may delete what they own: so only who may delete it gives it one."""
    info, name = call.info, new["metadata"].get("name", "")
    if not creating:
        namespace = call.target.namespace if info.namespaced else ""
        asked = Attributes(call.user, "delete", info.group, info.plural, "", namespace, name)
        decision = backend.access.decide(asked)
        if not decision.allowed:
            why = f"cannot set an ownerRef on a resource you can't delete: {decision.reason}, <nil>"
            raise forbidden(info.group, info.plural, name, why)
    blocked = {owner["uid"] for owner in before if owner.get("blockOwnerDeletion")}
    for owner in new["metadata"].get("ownerReferences") or ():
        if owner.get("blockOwnerDeletion") and owner["uid"] not in blocked:
            _check_blocking(backend, call, name, owner)


def _check_blocking(backend: Backend, call: Call, name: str, owner: Object) -> None:
    info = call.info
    group, _, version = owner["apiVersion"].rpartition("/")
    served = backend.registry.by_kind(group, version, owner["kind"])
    if served is None:
        text = (
            "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion "
            f'{owner["apiVersion"]} Kind {owner["kind"]}: no matches for kind "{owner["kind"]}" in version '
            f'"{owner["apiVersion"]}"'
        )
        raise forbidden(info.group, info.plural, name, text)
    namespace = call.target.namespace if served.namespaced else ""
    asked = Attributes(call.user, "update", group, served.plural, "finalizers", namespace, owner["name"])
    decision = backend.access.decide(asked)
    if not decision.allowed:
        why = (
            "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set "
            f"finalizers on: {decision.reason}, <nil>"
        )
        raise forbidden(info.group, info.plural, name, why)
