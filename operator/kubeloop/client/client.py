"""`Client`: the verbs of the API on any resource, with dicts in and out."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Literal

from kubeloop.client.answers import Answer, ObjectList, Page, RequestInfo, decode_object, decode_page
from kubeloop.client.cancel import Cancel
from kubeloop.client.credentials import Anonymous, Credentials
from kubeloop.client.errors import AlreadyExists, Expired, NotFound
from kubeloop.client.patches import Apply, Patch, encode_json
from kubeloop.client.proof import is_our_creation
from kubeloop.client.requests import describe, target
from kubeloop.client.retry import RetryPolicy
from kubeloop.client.sender import CONNECT_TIMEOUT, Call, Sender
from kubeloop.client.transport import Stream, Transport
from kubeloop.client.watch import WatchStream
from kubeloop.clock import Clock, StopEvent
from kubeloop.model import Resource

REQUEST_TIMEOUT = 30.0
"""Seconds for one try of a request; the server itself gives up on non-watches after 60."""

READ_TIMEOUT = 150.0
"""Seconds of silence after which a watch is taken for dead. The server sends a bookmark about every minute;
two missed ones and some slack mean that nobody is there (a half-open connection would be silent for ever)."""

PAGE_SIZE = 500
"""Objects a page, as client-go's pager and kubectl ask for."""

FieldValidation = Literal["Ignore", "Warn", "Strict"]

_METADATA = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1,application/json"
"""What to accept if only metadata is wanted; whole objects from servers that do not know the form, as
client-go's metadata client does."""


class Client:
    """Talks to one API server. Thread-safe; every wait ends when `stop` is set.

    All methods raise `ApiError` (its subclasses tell what kind) when the server refuses, and
    `TransportError` when there is no usable answer, after retrying what may be retried.

    `fence`, if given, is called before each try of each write and raises to forbid it. `observer` is called
    after each try.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        credentials: Credentials | None = None,
        clock: Clock | None = None,
        stop: StopEvent | None = None,
        user_agent: str = "kubeloop",
        retry: RetryPolicy | None = None,
        timeout: float = REQUEST_TIMEOUT,
        fence: Callable[[], None] | None = None,
        observer: Callable[[RequestInfo], None] | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.transport = transport
        self._sender = Sender(
            transport,
            credentials=credentials or Anonymous(),
            stop=stop or StopEvent(clock),
            user_agent=user_agent,
            retry=retry or RetryPolicy(),
            timeout=timeout,
            fence=fence,
            observer=observer,
            rng=rng or random.Random(),
        )

    # Reading

    def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, metadata_only: bool = False
    ) -> dict[str, Any]:
        """One object, as the server has it now. `metadata_only` as in `list_page`."""
        call = Call(
            "get",
            describe(resource, name, namespace),
            "GET",
            resource.path(namespace, name),
            accept=_METADATA.format("") if metadata_only else "",
        )
        return decode_object(self._sender.perform(call), call.verb, call.what)

    def get_document(self, path: str) -> dict[str, Any]:
        """A JSON document of the server that is no object of the API: a discovery or OpenAPI path."""
        call = Call("get", path, "GET", path, gzip=True)
        return decode_object(self._sender.perform(call), call.verb, call.what)

    def list_page(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        limit: int | None = PAGE_SIZE,
        continue_: str | None = None,
        resource_version: str | None = None,
        resource_version_match: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        metadata_only: bool = False,
        retry: RetryPolicy | None = None,
        cancel: Cancel | None = None,
    ) -> Page:
        """One page of a list; without `resource_version` what is true now. Continue with its `continue_`.

        With `metadata_only` the items are PartialObjectMetadata of meta.k8s.io/v1. A server that does not
        know that form sends whole objects.
        """
        query = {
            "limit": limit,
            "continue": continue_,
            # The token implies them, and the server refuses both together.
            "resourceVersion": None if continue_ else resource_version,
            "resourceVersionMatch": None if continue_ else resource_version_match,
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
        }
        what = describe(resource, None, namespace)
        call = Call(
            "list",
            what,
            "GET",
            target(resource.path(namespace), query),
            accept=_METADATA.format("List") if metadata_only else "",
            gzip=True,
            retry=retry,
            cancel=cancel,
        )
        return decode_page(self._sender.perform(call), what, resource)

    def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int = PAGE_SIZE,
        metadata_only: bool = False,
    ) -> ObjectList:
        """All objects, page by page. A list that expires in the middle is begun again, unpaged.
        `metadata_only` as in `list_page`."""
        pages: list[Page] = []
        page_size: int | None = limit
        while True:
            token = pages[-1].continue_ if pages else None
            try:
                page = self.list_page(
                    resource,
                    namespace,
                    limit=page_size,
                    continue_=token,
                    label_selector=label_selector,
                    field_selector=field_selector,
                    metadata_only=metadata_only,
                )
            except Expired:
                if page_size is None:
                    raise
                pages, page_size = [], None
                continue
            pages.append(page)
            if not page.continue_:
                items = [item for each in pages for item in each.items]
                return ObjectList(items, page.resource_version)

    def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str = "",
        timeout_seconds: int | None = None,
        bookmarks: bool = True,
        initial_events: bool = False,
        label_selector: str | None = None,
        field_selector: str | None = None,
        metadata_only: bool = False,
        connect_timeout: float = CONNECT_TIMEOUT,
        read_timeout: float = READ_TIMEOUT,
    ) -> WatchStream:
        """Changes after `resource_version`. With `initial_events` first everything that exists (a streaming
        list), ended by a bookmark. `metadata_only` as in `list_page`. Nothing is sent before the stream is
        iterated or opened."""
        query = {
            "watch": True,
            "allowWatchBookmarks": bookmarks or None,
            "resourceVersion": resource_version,
            "resourceVersionMatch": "NotOlderThan" if initial_events else None,
            "sendInitialEvents": initial_events or None,
            "timeoutSeconds": timeout_seconds,
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
        }
        path = target(resource.path(namespace), query)
        what = describe(resource, None, namespace)
        accept = {"Accept": _METADATA.format("")} if metadata_only else {}
        sent: dict[str, str] = {}

        def begin() -> Stream:
            identity = self._sender.identity("watch", what)
            sent.clear()
            sent.update(identity)
            return self.transport.stream(
                "GET",
                path,
                headers={**self._sender.base, **accept, **identity},
                connect_timeout=connect_timeout,
                read_timeout=read_timeout,
            )

        return WatchStream(begin, lambda: self._sender.renew(sent, "watch", what), what)

    # Writing

    def create(
        self,
        resource: Resource,
        obj: Mapping[str, Any],
        *,
        namespace: str | None = None,
        field_manager: str | None = None,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Create an object; the namespace is that of its metadata unless given.

        When the answer of a try was lost and the next one says AlreadyExists, that is success if the object
        there is beyond doubt the one that was sent (see `proof`), else `AlreadyExists` is raised.
        """
        metadata = obj.get("metadata") or {}
        name = metadata.get("name")
        space = (namespace or metadata.get("namespace")) if resource.namespaced else None
        call = Call(
            "create",
            describe(resource, name or metadata.get("generateName"), space),
            "POST",
            target(resource.path(space), _options(field_manager, dry_run)),
            body=encode_json(obj),
            content_type="application/json",
            repeatable=bool(name),  # a second try with generateName would make a second object
        )
        try:
            return decode_object(self._sender.perform(call), call.verb, call.what)
        except AlreadyExists:
            if not (call.uncertain and name and not dry_run):
                raise
            live = self.get(resource, str(name), space)
            if not is_our_creation(obj, live, field_manager):
                raise
            return live

    def replace(
        self,
        resource: Resource,
        obj: Mapping[str, Any],
        *,
        subresource: str | None = None,
        field_manager: str | None = None,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Replace an object (PUT). With a resourceVersion in it, `Conflict` if it was changed meanwhile."""
        metadata = obj.get("metadata") or {}
        name, namespace = str(metadata.get("name")), metadata.get("namespace")
        call = Call(
            "update",
            describe(resource, name, namespace, subresource),
            "PUT",
            target(resource.path(namespace, name, subresource), _options(field_manager, dry_run)),
            body=encode_json(obj),
            content_type="application/json",
        )
        return decode_object(self._sender.perform(call), call.verb, call.what)

    def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str | None,
        patch: Patch,
        *,
        subresource: str | None = None,
        field_manager: str | None = None,
        force: bool | None = None,
        field_validation: FieldValidation | None = None,
        dry_run: bool = False,
    ) -> Answer:
        """Change part of an object. An `Apply` needs a `field_manager` and creates what is not there.

        `field_validation` says what the server does about fields that it does not know: it drops them with a
        warning (its default), without one, or refuses.
        """
        if isinstance(patch, Apply) and not field_manager:
            raise ValueError("a server-side apply needs a field manager")
        call = Call(
            "apply" if isinstance(patch, Apply) else "patch",
            describe(resource, name, namespace, subresource),
            "PATCH",
            target(
                resource.path(namespace, name, subresource),
                {**_options(field_manager, dry_run), "force": force, "fieldValidation": field_validation},
            ),
            body=patch.encode(),
            content_type=patch.content_type,
            repeatable=patch.repeatable,
        )
        response = self._sender.perform(call)
        return Answer(response.status, response.body, call.verb, call.what)

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str | None = None,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Ask for deletion, of the object with `uid` and `resource_version` if given (else `Conflict`).

        The answer is the object if it lives on for now (finalizers), else a Status. `propagation` is
        Background, Foreground or Orphan.
        """
        preconditions = {"uid": uid, "resourceVersion": resource_version}
        preconditions = {key: value for key, value in preconditions.items() if value}
        options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if preconditions:
            options["preconditions"] = preconditions
        if propagation:
            options["propagationPolicy"] = propagation
        call = Call(
            "delete",
            describe(resource, name, namespace),
            "DELETE",
            target(resource.path(namespace, name), _options(None, dry_run)),
            body=encode_json(options),
            content_type="application/json",
        )
        try:
            return decode_object(self._sender.perform(call), call.verb, call.what)
        except NotFound:
            if not call.uncertain:
                raise
            return {"kind": "Status", "apiVersion": "v1", "status": "Success"}  # an earlier try did it

    def close(self) -> None:
        """Close idle connections."""
        self.transport.close()


def _options(field_manager: str | None, dry_run: bool) -> dict[str, object | None]:
    return {"fieldManager": field_manager, "dryRun": "All" if dry_run else None}
