"""Answers: what the client accepts, and how objects, lists, tables and failures are written."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import yaml

from kubeloop.sandbox.pipeline.backend import Backend, as_read, in_version
from kubeloop.sandbox.pipeline.body import ACCEPTED, JSON, PROTOBUF, YAML
from kubeloop.sandbox.pipeline.request import Response
from kubeloop.sandbox.registry import Object, ResourceInfo
from kubeloop.sandbox.status import ApiFailure, bad_request, not_acceptable
from kubeloop.sandbox.store import Record, to_json
from kubeloop.sandbox.tables import to_table

Form = Literal["object", "table", "metadata", "metadata-list"]

GZIP_MIN = 128 * 1024
"""Answers above this many bytes are compressed when the client asks for it (the apiserver's threshold)."""
_META_GROUP = "meta.k8s.io"
META_VERSION = f"{_META_GROUP}/v1"


@dataclass(frozen=True, slots=True)
class Encoding:
    """How to write an answer."""

    form: Form = "object"
    media_type: str = JSON
    meta_version: str = META_VERSION
    """The version of meta.k8s.io in which tables and bare metadata are wanted."""


PLAIN = Encoding()
_WRITABLE = frozenset({JSON, YAML, PROTOBUF, "*/*", "application/*"})


@lru_cache(maxsize=256)
def negotiate(accept: str, *, table: bool = True) -> Encoding:
    """The first thing in an ``Accept`` header that can be written. Raises a 406 failure.

    Protobuf and CBOR are passed over: clients that prefer them list JSON as well.
    """
    if not accept:
        return PLAIN
    candidates: list[tuple[float, Encoding]] = []
    for part in accept.split(","):
        kind, *parameters = [piece.strip() for piece in part.split(";")]
        options = dict(p.partition("=")[::2] for p in parameters)
        if kind in ("*/*", "application/*"):
            kind = JSON
        if kind not in (JSON, YAML):
            continue
        form = _form(options, table=table)
        if form is None:
            continue
        try:
            quality = float(options.get("q", "1"))
        except ValueError:
            quality = 1.0
        version = f"{_META_GROUP}/{options['v']}" if form != "object" else META_VERSION
        candidates.append((-quality, Encoding(form, kind, version)))
    if not candidates:
        raise not_acceptable(f"only the following media types are accepted: {ACCEPTED}")
    return min(candidates, key=lambda candidate: candidate[0])[1]


@lru_cache(maxsize=256)
def check_writable(accept: str) -> None:
    """Refuse media types that no built-in kind can be written in. Raises a 406 failure."""
    kinds = [part.partition(";")[0].strip() for part in accept.split(",") if part.strip()]
    if kinds and not any(kind in _WRITABLE for kind in kinds):
        text = f"406: Not Acceptable\n\nAvailable representations: {ACCEPTED}"
        raise ApiFailure(406, "NotAcceptable", text, details={})


def _form(options: Mapping[str, str], *, table: bool) -> Form | None:
    kind = options.get("as")
    if not kind:
        return "object"
    if options.get("g") != _META_GROUP or options.get("v") not in ("v1", "v1beta1"):
        return None
    if kind == "Table":
        return "table" if table else None
    forms: dict[str, Form] = {
        "PartialObjectMetadata": "metadata",
        "PartialObjectMetadataList": "metadata-list",
    }
    return forms.get(kind)


def encode_value(value: Any, media_type: str) -> bytes:
    """A plain value as JSON (with a line feed, as Go's encoder ends) or YAML."""
    if media_type == YAML:
        text = yaml.dump(value, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, width=10**6)
        return text.encode()
    return to_json(value) + b"\n"


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True  # shared parts of objects are written out


def failure_response(failure: ApiFailure, accept: str = "") -> Response:
    """A failure as its Status, in YAML for those who want only that."""
    kind = YAML if accept.startswith(YAML) else JSON
    headers = {"content-type": kind, **{k.lower(): v for k, v in failure.headers.items()}}
    return Response(failure.code, headers, encode_value(failure.to_status(), kind))


def metadata_only(obj: Object, version: str = META_VERSION) -> Object:
    """A PartialObjectMetadata of `obj`."""
    return {"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": obj["metadata"]}


def table_options(query: Mapping[str, str]) -> Literal["Metadata", "None", "Object"]:
    """The ``includeObject`` of a table request. Raises a 400 failure."""
    include = query.get("includeObject") or "Metadata"
    if include == "None":
        return "None"
    if include == "Object":
        return "Object"
    if include == "Metadata":
        return "Metadata"
    raise bad_request(
        f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": must be '
        "'Metadata', 'Object', 'None', or empty"
    )


class Encoder:
    """Writes the objects of one resource in the form a request asked for."""

    def __init__(
        self, backend: Backend, info: ResourceInfo, encoding: Encoding, query: Mapping[str, str]
    ) -> None:
        self._backend = backend
        self._info = info
        self._encoding = encoding
        self.columns_sent = False
        """In a watch only the first table describes its columns."""
        self._include = table_options(query) if encoding.form == "table" else "Metadata"
        # Items of typed lists carry no apiVersion and kind; stored objects begin with exactly these.
        prefix = f'{{"apiVersion":"{info.api_version}","kind":"{info.kind}",'
        self._prefix = b"" if info.custom else prefix.encode()

    @property
    def content_type(self) -> str:
        return self._encoding.media_type

    def object(self, obj: Object) -> bytes:
        """One object that is no stored state as such (an answer to a dry run, say)."""
        form = self._encoding.form
        if form == "object":
            return encode_value(obj, self._encoding.media_type)
        if form == "metadata-list":
            if not self._info.custom:
                raise not_acceptable(
                    "you requested PartialObjectMetadataList, but the requested object is not a list "
                    f"(*core.{self._info.kind})"
                )
            raise ApiFailure(500, "", "content is not a list")
        if form == "metadata":
            partial = metadata_only(obj, self._encoding.meta_version)
            return encode_value(partial, self._encoding.media_type)
        meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        return encode_value(self._table([obj], meta), self._encoding.media_type)

    def record(self, record: Record) -> bytes:
        """One stored object; plain JSON is only made once per state."""
        info = self._info
        record = as_read(record, info)
        if self._encoding is PLAIN and record.obj["apiVersion"] == info.api_version:
            return record.json
        return self.object(in_version(record, info))

    def records(self, records: Sequence[Record], meta: dict[str, Any]) -> bytes:
        """A list of stored objects."""
        info, encoding = self._info, self._encoding
        if encoding.form != "object" and not meta.get("continue"):
            meta = {key: value for key, value in meta.items() if key != "continue"}
        if encoding.form == "table":
            objects = [in_version(record, info) for record in records]
            return encode_value(self._table(objects, meta), encoding.media_type)
        if encoding.form == "metadata":
            go = "unstructured.UnstructuredList" if info.custom else f"core.{info.list_name}"
            raise not_acceptable(
                f"you requested PartialObjectMetadata, but the requested object is a list (*{go})"
            )
        if encoding.form == "metadata-list":
            items = [metadata_only(record.obj, encoding.meta_version) for record in records]
            kind = {"kind": "PartialObjectMetadataList", "apiVersion": encoding.meta_version}
            return encode_value({**kind, "metadata": meta, "items": items}, encoding.media_type)
        head = {"kind": info.list_name, "apiVersion": info.api_version, "metadata": meta}
        if encoding.media_type == YAML:
            objects = [in_version(record, info) for record in records]
            return encode_value({**head, "items": objects}, YAML)
        items_json = b",".join(self._item(record) for record in records)
        return b'%s,"items":[%s]}\n' % (to_json(head)[:-1], items_json)

    def _item(self, record: Record) -> bytes:
        record = as_read(record, self._info)
        if record.obj["apiVersion"] != self._info.api_version:
            data = to_json(in_version(record, self._info))
        else:
            data = record.json
        prefix = self._prefix
        return b"{" + data[len(prefix) :] if prefix and data.startswith(prefix) else data

    def _table(self, objects: list[Object], meta: dict[str, Any]) -> Object:
        table = to_table(
            self._info,
            objects,
            list_meta=meta,
            include_object=self._include,
            now=self._backend.clock.now(),
        )
        version = self._encoding.meta_version
        if version != META_VERSION:
            for row in table["rows"]:
                if self._include == "Metadata":
                    row["object"] = metadata_only(row["object"], version)
            table["apiVersion"] = version
        return {**table, "columnDefinitions": None} if self.columns_sent else table


def respond(
    status: int,
    body: bytes,
    content_type: str,
    request_headers: Mapping[str, str],
    warnings: Sequence[str] = (),
) -> Response:
    """A finished answer, compressed when that was asked for and pays."""
    headers = {"content-type": content_type, "cache-control": "no-cache, private"}
    if warnings:
        headers["warning"] = ", ".join(warning_header(text) for text in warnings)
    if len(body) > GZIP_MIN and "gzip" in request_headers.get("accept-encoding", ""):
        body = gzip.compress(body, 1)
        headers["content-encoding"] = "gzip"
        headers["vary"] = "Accept-Encoding"
    return Response(status, headers, body)


def warning_header(text: str) -> str:
    """One entry of a ``Warning`` header: code 299, no agent."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'
