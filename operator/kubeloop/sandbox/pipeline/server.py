"""The pipeline put together: one request in, one answer (or one open watch) out."""

from __future__ import annotations

import logging

from kubeloop.sandbox import discovery
from kubeloop.sandbox.access import SYSTEM, Attributes, User
from kubeloop.sandbox.pipeline import deletes, reads, reviews, scale, watching, writes
from kubeloop.sandbox.pipeline.backend import Backend, Call
from kubeloop.sandbox.pipeline.body import JSON, MAX_BODY
from kubeloop.sandbox.pipeline.encoding import (
    Encoder,
    check_writable,
    encode_value,
    failure_response,
    negotiate,
    respond,
)
from kubeloop.sandbox.pipeline.options import list_options, parse_bool
from kubeloop.sandbox.pipeline.request import Request, Response, Target, parse_path
from kubeloop.sandbox.pipeline.saving import Result
from kubeloop.sandbox.pipeline.selectors import selected_name
from kubeloop.sandbox.pipeline.watching import WatchBody
from kubeloop.sandbox.registry import ResourceInfo
from kubeloop.sandbox.requestlog import Entry
from kubeloop.sandbox.status import (
    ApiFailure,
    bad_request,
    internal_error,
    no_such_path,
    not_found,
    not_implemented_here,
    qualified,
    request_too_large,
)

log = logging.getLogger(__name__)

Answer = Response | WatchBody

NOT_FOUND = Response(
    404,
    {"content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff"},
    b"404 page not found\n",
)
HEALTH = ("/healthz", "/livez", "/readyz")
NOT_SIMULATED = (
    "log",
    "exec",
    "attach",
    "portforward",
    "proxy",
    "eviction",
    "binding",
    "ephemeralcontainers",
)
"""Subresources of the real server that are refused by name instead of with a 404."""
REAL_GROUPS = frozenset(
    f"{name}.k8s.io"
    for name in (
        "admissionregistration",
        "authentication",
        "authorization",
        "certificates",
        "discovery",
        "events",
        "flowcontrol.apiserver",
        "metrics",
        "networking",
        "node",
        "resource",
        "scheduling",
        "storage",
    )
) | {"autoscaling", "batch", "policy"}
REAL_RESOURCES = {
    "": (
        "bindings",
        "componentstatuses",
        "endpoints",
        "nodes",
        "persistentvolumeclaims",
        "persistentvolumes",
        "podtemplates",
        "replicationcontrollers",
    ),
    "apps": ("controllerrevisions", "daemonsets", "statefulsets"),
}
"""What the real server serves beyond the simulated kinds: refused by name.

Quotas and limit ranges are left to the 404 of an unknown resource, with which ``kubectl describe namespace``
can live; nothing else would be true for them either, as none exist.
"""
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class ApiServer:
    """Handles requests. Thread-safe: any number of transports may call `handle` at once."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.stopped = False
        """Set when the sandbox stops: transports refuse further requests."""

    def handle(self, request: Request) -> Answer:
        """The whole pipeline. Never raises; a fault of the sandbox is a 500 kept in `backend.faults`."""
        backend = self.backend
        target = parse_path(request.path)
        verb = verb_of(request, target)
        user = SYSTEM
        call: Call | None = None
        answer: Answer
        try:
            if not request.internal:
                user = backend.access.authenticate(request.headers)
                backend.access.authorize(_attributes(user, verb, target, request))
            if len(request.body) > MAX_BODY:
                raise request_too_large(MAX_BODY)
            info = self._resolve(target)
            if info is None:
                answer = self._other(request, target, user)
            else:
                call = Call(request, target, user, info)
                if info.warning:
                    call.warn(info.warning)
                answer = self._dispatch(call, verb)
        except ApiFailure as failure:
            answer = failure_response(failure, request.headers.get("accept", ""))
            if call is not None and call.warnings and failure.code < 500:
                answer.headers["warning"] = respond(0, b"", JSON, {}, call.warnings).headers["warning"]
        except Exception as error:
            # The one place where a fault of ours is caught: the client gets a Status, the test the fault.
            log.exception("sandbox fault in %s %s", request.method, request.target)
            backend.faults.append(error)
            answer = failure_response(internal_error(f"{type(error).__name__}: {error}"))
        if request.method == "HEAD" and isinstance(answer, Response):
            answer = Response(answer.status, answer.headers, b"")
        self._record(request, target, verb, user, call, answer.status)
        return answer

    def _resolve(self, target: Target) -> ResourceInfo | None:
        if not target.resource:
            return None
        info = self.backend.registry.find(target.group, target.version, target.resource)
        if info is None:
            return None
        if target.namespaced_path and not info.namespaced:
            return None
        if info.namespaced and target.name and not target.namespaced_path:
            return None
        return info

    def _other(self, request: Request, target: Target, user: User) -> Answer:
        """Paths that name no served resource: discovery, OpenAPI, health, questions about access."""
        if target.resource:
            answer = reviews.review(self.backend, request, target, user)
            if answer is not None:
                return answer
        if request.path in HEALTH or request.path.startswith(tuple(f"{path}/" for path in HEALTH)):
            return Response(200, {"content-type": "text/plain; charset=utf-8"}, b"ok")
        if request.method in ("GET", "HEAD"):
            accept = request.headers.get("accept", "")
            document = discovery.document(self.backend.registry, request.path, accept)
            if document is not None:
                body, content_type = document
                return respond(200, body, content_type, request.headers)
            if request.path.startswith("/openapi/v3/"):
                return Response(404, {}, b"")
        if target.resource and _real(target):
            raise not_implemented_here(f"{qualified(target.group, target.resource)}")
        if target.resource and not self._custom_group(target):
            raise no_such_path()
        return NOT_FOUND

    def _custom_group(self, target: Target) -> bool:
        """Whether a path lies in a group of CRDs, or in none that is served: those have a plain 404."""
        infos = [i for i in self.backend.registry.infos() if i.group == target.group]
        return not infos or any(info.custom for info in infos)

    def _dispatch(self, call: Call, verb: str) -> Answer:
        info, target, request = call.info, call.target, call.request
        method, subresource = request.method, target.subresource
        if not info.custom:
            _check_path(call)
        if target.extra or (subresource and subresource not in info.subresources):
            if subresource in NOT_SIMULATED and not info.custom:
                raise not_implemented_here(f"{info.plural}/{subresource}")
            if not info.custom:
                raise no_such_path()
            raise not_found(info.group, info.plural, target.name)
        if verb == "watch":
            options = list_options(request.query, watch=target.watch_path)
            encoding = negotiate(request.headers.get("accept", ""))
            return watching.watch(self.backend, call, encoding, options, target.name or None)
        if verb == "list":
            options = list_options(request.query)
            encoding = negotiate(request.headers.get("accept", ""))
            return reads.list_objects(self.backend, call, encoding, options)
        if info.namespaced and not target.namespace and verb != "deletecollection":
            if not info.custom:
                raise _not_supported(call, method)
            return NOT_FOUND
        if subresource == "scale":
            return self._scale(call, verb)
        if verb == "get" and subresource != "finalize":
            return reads.get(self.backend, call, negotiate(request.headers.get("accept", "")))
        _check_verb(call, verb, method)
        match verb:
            case "create":
                return self._written(call, writes.create_object(self.backend, call))
            case "update":
                return self._written(call, writes.update_object(self.backend, call))
            case "patch":
                return self._written(call, writes.patch_object(self.backend, call))
            case "delete":
                obj = deletes.delete_object(self.backend, call)
                return self._object(call, 200, obj)
        records, meta = deletes.delete_collection(self.backend, call)
        encoding = negotiate(request.headers.get("accept", ""))
        encoder = Encoder(self.backend, info, encoding, request.query)
        return respond(
            200, encoder.records(records, meta), encoder.content_type, request.headers, call.warnings
        )

    def _scale(self, call: Call, verb: str) -> Response:
        match verb:
            case "get":
                obj = scale.get_scale(self.backend, call)
            case "update":
                obj = scale.put_scale(self.backend, call)
            case "patch":
                obj = scale.patch_scale(self.backend, call)
            case _:
                raise _not_supported(call, call.request.method)
        return self._object(call, 200, obj)

    def _written(self, call: Call, result: Result) -> Response:
        status = 201 if result.created else 200
        headers = call.request.headers
        encoding = negotiate(headers.get("accept", ""))
        encoder = Encoder(self.backend, call.info, encoding, call.request.query)
        record = result.record
        body = encoder.record(record) if record is not None else encoder.object(result.obj)
        return respond(status, body, encoder.content_type, headers, call.warnings)

    def _object(self, call: Call, status: int, obj: dict[str, object]) -> Response:
        """An answer that is no object of the resource as such: a Status, a Scale, a last state."""
        headers = call.request.headers
        encoding = negotiate(headers.get("accept", ""))
        if obj["kind"] == call.info.kind:
            body = Encoder(self.backend, call.info, encoding, call.request.query).object(obj)
        else:
            body = encode_value(obj, encoding.media_type)
        return respond(status, body, encoding.media_type, headers, call.warnings)

    def note(self, request: Request, user: str, status: int, fault: str) -> None:
        """Put a request that never got here into the log: a fault answered it (status 0: nobody did)."""
        target = parse_path(request.path)
        self._record(request, target, verb_of(request, target), User(user), None, status, fault)

    def _record(
        self,
        request: Request,
        target: Target,
        verb: str,
        user: User,
        call: Call | None,
        status: int,
        fault: str = "",
    ) -> None:
        backend = self.backend
        backend.log.add(
            Entry(
                number=backend.log.number(),
                time=backend.clock.now(),
                verb=verb,
                group=target.group,
                resource=target.resource,
                namespace=target.namespace,
                name=target.name,
                subresource=target.subresource,
                user=user.name,
                user_agent=request.headers.get("user-agent", ""),
                manager=call.manager if call is not None else "",
                status=status,
                wrote=call.wrote if call is not None else False,
                internal=request.internal,
                path=request.path,
                fault=fault,
                content_type=request.headers.get("content-type", ""),
            )
        )


def _real(target: Target) -> bool:
    """Whether the real server serves this, and the sandbox does not."""
    return target.group in REAL_GROUPS or target.resource in REAL_RESOURCES.get(target.group, ())


def verb_of(request: Request, target: Target) -> str:
    """The verb as audit and RBAC say it."""
    method = request.method
    if not target.resource:
        return method.lower()
    if method in ("GET", "HEAD"):
        if target.watch_path:
            return "watch"
        if target.name:
            return "get"
        query = request.query
        return "watch" if query and "watch" in query and parse_bool(query["watch"]) else "list"
    if method == "DELETE" and not target.name:
        return "deletecollection"
    return _VERBS.get(method, method.lower())


def _attributes(user: User, verb: str, target: Target, request: Request) -> Attributes:
    name = target.name
    if not name and verb in ("list", "watch", "deletecollection"):
        # A selection of one name is a request for that object: rules for single names cover it.
        name = selected_name(request.query.get("fieldSelector", ""))
    return Attributes(
        user,
        verb,
        target.group,
        target.resource,
        target.subresource,
        target.namespace,
        name,
        target.path,
    )


def _check_path(call: Call) -> None:
    """What the routes of built-in kinds refuse before any handler is asked. Raises 400 and 406 failures."""
    check_writable(call.request.headers.get("accept", ""))
    for char in "/%":
        if char in call.target.name:
            text = f"Name parameter invalid: \"{call.target.name}\": may not contain '{char}'"
            raise no_such_path() if char == "/" else bad_request(text)


def _check_verb(call: Call, verb: str, method: str) -> None:
    """Refuse what the resource does not do. Raises 400 and 405 failures."""
    info, target = call.info, call.target
    if target.subresource and verb not in ("update", "patch"):
        raise _not_supported(call, method)
    if target.subresource == "finalize" and verb != "update" and not call.request.internal:
        raise _not_supported(call, method)
    if verb == "create" and target.name and not info.custom:
        raise _not_supported(call, method)
    if verb in ("update", "patch") and not target.name:
        raise bad_request("name must be provided") if info.custom else _not_supported(call, method)
    if verb not in info.verbs:
        raise _not_supported(call, method)


def _not_supported(call: Call, method: str) -> ApiFailure:
    info = call.info
    # The real server knows no verb for other methods and leaves the place empty.
    verb = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(method, "")
    if info.custom:
        details = {"group": info.group, "kind": info.plural}
        text = f'{verb} is not supported on resources of kind "{info.qualified}"'
        return ApiFailure(405, "MethodNotAllowed", text, details=details)
    return ApiFailure(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
        details={},
    )
