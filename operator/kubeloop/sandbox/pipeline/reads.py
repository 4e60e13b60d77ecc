"""get and list: resourceVersion semantics, pages that stay consistent, selectors."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from kubeloop.sandbox.pipeline.backend import Backend, Call, in_version
from kubeloop.sandbox.pipeline.body import SyntaxFailure, parse_json
from kubeloop.sandbox.pipeline.encoding import Encoder, Encoding, respond
from kubeloop.sandbox.pipeline.options import ListOptions, parse_revision, revision_failure
from kubeloop.sandbox.pipeline.request import Response
from kubeloop.sandbox.pipeline.selectors import predicate
from kubeloop.sandbox.status import (
    ApiFailure,
    bad_request,
    expired,
    not_found,
    too_large_resource_version,
)
from kubeloop.sandbox.store import Compacted, Record, object_key

TOKEN_VERSION = "meta.k8s.io/v1"
EXPIRED_TOKEN = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new "
    "list without the continue parameter, or use the continue token in this response to retrieve the "
    "remainder of the results. Continuing with the provided token results in an inconsistent list - objects "
    "that were created, modified, or deleted between the time the first chunk was returned and now may show "
    "up in the list."
)
COMPACTED = "The resourceVersion for the provided list is too old."


def get(backend: Backend, call: Call, encoding: Encoding) -> Response:
    """GET of one object. A resourceVersion only says "not older than"; there is only one state to show."""
    info, target = call.info, call.target
    query = call.request.query
    if query and query.get("resourceVersion"):
        try:
            revision = parse_revision(query["resourceVersion"])
        except ValueError as error:
            raise revision_failure(error) from None
        if revision > backend.store.revision:
            raise too_large_resource_version(revision, backend.store.revision)
    record = _one(backend, call)
    if record is None:
        raise not_found(info.group, info.plural, target.name)
    encoder = Encoder(backend, info, encoding, query)
    return respond(200, encoder.record(record), encoder.content_type, call.request.headers, call.warnings)


def _one(backend: Backend, call: Call) -> Record | None:
    """The object a call names, as the server knows it."""
    info, target, store = call.info, call.target, backend.store
    namespace = target.namespace if info.namespaced else ""
    if not call.request.changes_ago:
        return store.get(info.key, namespace, target.name)
    records = store.list_at(info.key, _behind(backend, call), namespace or None)
    return next((record for record in records if record.name == target.name), None)


def _behind(backend: Backend, call: Call) -> int:
    """The newest revision that a server which lags behind knows."""
    store = backend.store
    return max(store.revision - call.request.changes_ago, store.compacted)


def list_objects(backend: Backend, call: Call, encoding: Encoding, options: ListOptions) -> Response:
    """GET of a collection."""
    info = call.info
    encoder = Encoder(backend, info, encoding, call.request.query)
    records, meta = select(backend, call, options)
    body = encoder.records(records, meta)
    return respond(200, body, encoder.content_type, call.request.headers, call.warnings)


def select(backend: Backend, call: Call, options: ListOptions) -> tuple[list[Record], dict[str, Any]]:
    """The objects of one page and the list's metadata. Raises 400, 410 and 504 failures."""
    info, store = call.info, backend.store
    namespace = call.target.namespace or None if info.namespaced else None
    matches, _ = predicate(options.label_selector, options.field_selector, info)
    start = ""
    if options.continue_:
        revision, start = _decode_token(options)
        state = _continued(backend, call, revision, start, namespace)
        if revision < 0:
            revision = store.revision
    else:
        state, revision = _first_page(backend, call, options, namespace)
    prefix = f"{namespace}/" if namespace else ""
    if start:
        state = [r for r in state if object_key(r.namespace, r.name)[len(prefix) :] >= start]
    selected = state if matches is None else [r for r in state if matches(in_version(r, info))]
    meta: dict[str, Any] = {"resourceVersion": str(revision)}
    limit = options.limit
    if limit > 0 and len(selected) > limit:
        last = selected[limit - 1]
        meta["continue"] = encode_token(revision, object_key(last.namespace, last.name)[len(prefix) :] + "\0")
        if matches is None:
            # With a selector the server would have to count what it has not looked at.
            meta["remainingItemCount"] = len(selected) - limit
        selected = selected[:limit]
    elif info.custom:
        # Lists of custom resources are written without omitting it.
        meta["continue"] = ""
    return selected, meta


def _first_page(
    backend: Backend, call: Call, options: ListOptions, namespace: str | None
) -> tuple[list[Record], int]:
    store, info = backend.store, call.info
    try:
        asked = parse_revision(options.resource_version)
    except ValueError as error:
        raise bad_request(f"invalid resource version: {error}") from None
    if asked > store.revision:
        raise too_large_resource_version(asked, store.revision)
    exact = options.match == "Exact" or (options.match == "" and options.limit > 0 and asked > 0)
    if call.request.changes_ago and not exact:
        behind = _behind(backend, call)
        return store.list_at(info.key, behind, namespace), behind
    if not exact:
        # "" asks for the newest state, "0" and "not older" for any: the newest always does.
        return store.current(info.key, namespace)
    try:
        return store.list_at(info.key, asked, namespace), asked
    except Compacted:
        raise expired(COMPACTED) from None


def _continued(
    backend: Backend, call: Call, revision: int, start: str, namespace: str | None
) -> list[Record]:
    store, info = backend.store, call.info
    if revision < 0:
        return store.current(info.key, namespace)[0]
    if revision > store.revision:
        raise too_large_resource_version(revision, store.revision)
    try:
        return store.list_at(info.key, revision, namespace)
    except Compacted:
        failure = expired(EXPIRED_TOKEN)
        failure.list_meta = {"continue": encode_token(-1, start)}
        raise failure from None


def encode_token(revision: int, start: str) -> str:
    """A continue token: where the next page starts, at which revision (-1: whatever is current then)."""
    token = json.dumps({"v": TOKEN_VERSION, "rv": revision, "start": "/" + start}, separators=(",", ":"))
    return base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")


def _decode_token(options: ListOptions) -> tuple[int, str]:
    if options.resource_version and options.resource_version != "0":
        raise bad_request("specifying resource version is not allowed when using continue")
    text = options.continue_
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        raise _bad_token(f"illegal base64 data at input byte {_bad_byte(text)}") from None
    try:
        token, _ = parse_json(raw)
        version, revision, start = token.get("v"), token.get("rv"), token.get("start")
    except SyntaxFailure as error:
        raise _bad_token(str(error)) from None
    except AttributeError:
        raise _bad_token("the token is no object") from None
    if version != TOKEN_VERSION:
        raise _bad_token(f'server does not recognize this encoded version "{version}"')
    if not isinstance(revision, int) or revision == 0:
        raise _bad_token("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not isinstance(start, str) or not start:
        raise _bad_token("encoded start key empty (version meta.k8s.io/v1)")
    return revision, start.removeprefix("/")


def _bad_token(why: str) -> ApiFailure:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")


def _bad_byte(text: str) -> int:
    """Where Go's decoder stops: at the first foreign byte, else where the last, incomplete group starts."""
    for index, char in enumerate(text):
        if not (char.isascii() and (char.isalnum() or char in "-_")):
            return index
    return len(text) // 4 * 4
