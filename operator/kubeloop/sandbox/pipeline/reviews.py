"""Questions about access, asked by creating a review that is answered at once and kept nowhere.

``kubectl auth can-i`` and ``whoami`` ask these, and servers (an operator's metrics endpoint, say) that leave
authentication and authorisation to the cluster.
"""

from __future__ import annotations

from collections.abc import Callable

from kubeloop.sandbox.access import Attributes, User
from kubeloop.sandbox.pipeline.backend import Backend
from kubeloop.sandbox.pipeline.body import media_type, parse_object
from kubeloop.sandbox.pipeline.encoding import encode_value, negotiate, respond
from kubeloop.sandbox.pipeline.request import Request, Response, Target
from kubeloop.sandbox.rbac import Rbac
from kubeloop.sandbox.registry import Object
from kubeloop.sandbox.status import (
    ApiFailure,
    Cause,
    bad_request,
    invalid,
    method_not_allowed,
)

AUTHORIZATION, AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"


def review(backend: Backend, request: Request, target: Target, user: User) -> Response | None:
    """The answer, or None when the path means no review. Raises 400, 405, 415 and 422 failures."""
    found = _REVIEWS.get((target.group, target.resource))
    if found is None or target.version != "v1":
        return None
    kind, answer = found
    if request.method != "POST" or target.name:
        raise method_not_allowed()
    obj, _ = parse_object(request.body, media_type(request.headers), kind, custom=False)
    if obj.get("kind", kind) != kind:
        raise bad_request(
            f'{obj["kind"]} in version "{target.version}" cannot be handled as a {kind}: converting '
            f"({target.version}.{obj['kind']}) to ({target.version}.{kind}): unknown conversion"
        )
    head = {"kind": kind, "apiVersion": f"{target.group}/{target.version}"}
    metadata = obj.get("metadata") or {}
    spec = obj.get("spec") or {}
    body = {**head, "metadata": metadata, "spec": spec, "status": answer(backend, target, user, spec)}
    if kind == "SelfSubjectReview":
        del body["spec"]
    encoding = negotiate(request.headers.get("accept", ""))
    return respond(201, encode_value(body, encoding.media_type), encoding.media_type, request.headers)


def _self_access(backend: Backend, target: Target, user: User, spec: Object) -> Object:
    del target
    return _access(backend, "SelfSubjectAccessReview", user, spec)


def _subject_access(backend: Backend, target: Target, user: User, spec: Object) -> Object:
    del user
    kind = "LocalSubjectAccessReview" if target.namespace else "SubjectAccessReview"
    name, groups = spec.get("user") or "", tuple(spec.get("groups") or ())
    if not name and not groups:
        text = "at least one of user or group must be specified"
        raise _invalid(kind, Cause("FieldValueInvalid", f'Invalid value: "": {text}', "spec.user"))
    asked = spec.get("resourceAttributes") or {}
    if target.namespace and asked.get("namespace", "") != target.namespace:
        # The review's own namespace is the only one it may ask about.
        raise bad_request(f"spec.resourceAttributes.namespace must match namespace: {target.namespace}")
    return _access(backend, kind, User(name, groups, spec.get("uid") or ""), spec)


def _access(backend: Backend, kind: str, user: User, spec: Object) -> Object:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) == (path is None):
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        if resource is not None:
            why = "cannot be specified in combination with resourceAttributes"
        field = "spec.resourceAttributes" if resource is None else "spec.nonResourceAttributes"
        shown = "null" if path is None else "{}"
        raise _invalid(kind, Cause("FieldValueInvalid", f"Invalid value: {shown}: {why}", field))
    if resource is not None:
        names = ("group", "resource", "subresource", "namespace", "name")
        attributes = Attributes(user, resource.get("verb", ""), **{n: resource.get(n, "") for n in names})
    else:
        attributes = Attributes(user, (path or {}).get("verb", ""), path=(path or {}).get("path", ""))
    decision = backend.access.decide(attributes)
    status: Object = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return status


def _invalid(kind: str, cause: Cause) -> ApiFailure:
    return invalid(kind, AUTHORIZATION, "", [cause])


def _self_rules(backend: Backend, target: Target, user: User, spec: Object) -> Object:
    del target
    namespace = spec.get("namespace") or ""
    if not namespace:
        raise bad_request("no namespace on request")
    authorizer = backend.access.authorizer
    status: Object = {"resourceRules": [], "nonResourceRules": [], "incomplete": False}
    if isinstance(authorizer, Rbac):
        rules = authorizer.rules_of(user, namespace)
    elif authorizer is None:
        rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
        rules.append({"verbs": ["*"], "nonResourceURLs": ["*"]})
    else:
        # A function cannot be asked for its rules; the real server says the same of webhooks.
        status["incomplete"] = True
        status["evaluationError"] = "the authorizer does not support user rule resolution"
        return status
    for rule in rules:
        paths = rule.get("nonResourceURLs")
        if paths:
            status["nonResourceRules"].append({"verbs": rule["verbs"], "nonResourceURLs": paths})
        else:
            keys = ("verbs", "apiGroups", "resources", "resourceNames")
            status["resourceRules"].append({key: rule[key] for key in keys if rule.get(key)})
    return status


def _token(backend: Backend, target: Target, user: User, spec: Object) -> Object:
    del target, user
    token = spec.get("token") or ""
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    found = backend.access.user_of(token)
    if found is None:
        return {"user": {}, "error": "[invalid bearer token, token lookup failed]"}
    return {"authenticated": True, "user": _shown(found)}


def _whoami(backend: Backend, target: Target, user: User, spec: Object) -> Object:
    del backend, target, spec
    return {"userInfo": _shown(user)}


def _shown(user: User) -> Object:
    shown: Object = {"username": user.name}
    if user.uid:
        shown["uid"] = user.uid
    return {**shown, "groups": list(user.groups)} if user.groups else shown


_Answer = Callable[[Backend, Target, User, Object], Object]
_REVIEWS: dict[tuple[str, str], tuple[str, _Answer]] = {
    (AUTHORIZATION, "selfsubjectaccessreviews"): ("SelfSubjectAccessReview", _self_access),
    (AUTHORIZATION, "selfsubjectrulesreviews"): ("SelfSubjectRulesReview", _self_rules),
    (AUTHORIZATION, "subjectaccessreviews"): ("SubjectAccessReview", _subject_access),
    (AUTHORIZATION, "localsubjectaccessreviews"): ("LocalSubjectAccessReview", _subject_access),
    (AUTHENTICATION, "tokenreviews"): ("TokenReview", _token),
    (AUTHENTICATION, "selfsubjectreviews"): ("SelfSubjectReview", _whoami),
}
