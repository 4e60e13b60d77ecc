"""From a body to an object: kind and version checked, unknown fields dropped, defaults set."""

from __future__ import annotations

from typing import Any

from kubeloop.sandbox.pipeline import metadata as meta
from kubeloop.sandbox.pipeline.backend import Call
from kubeloop.sandbox.pipeline.body import parse_object
from kubeloop.sandbox.pipeline.options import WriteOptions
from kubeloop.sandbox.registry import Object, ResourceInfo
from kubeloop.sandbox.status import ApiFailure, Cause, bad_request, invalid


def decode_body(call: Call, kind: str, options: WriteOptions) -> Object:
    """The object in a request's body. Raises 400, 415 and 422 failures."""
    info = call.info
    value, repeated = parse_object(call.request.body, kind, info.kind, custom=info.custom)
    if not info.custom:
        # Built-in kinds are decoded into what the path names; only saying something else is wrong.
        value.setdefault("kind", info.kind)
        value.setdefault("apiVersion", info.api_version)
    found = value.get("apiVersion", "")
    if info.custom and found != info.api_version:
        raise bad_request(
            f"the API version in the data ({found}) does not match the expected API version "
            f"({info.api_version})"
        )
    check_kind(value, info)
    try:
        return decode_object(call, value, options, repeated)
    except (meta.MetadataShapeError, StrictError) as error:
        raise cannot_be_handled(info, str(error)) from None


class StrictError(ValueError):
    """Complaints that a client with ``fieldValidation=Strict`` wants refused."""


def check_kind(value: Object, info: ResourceInfo) -> None:
    """Refuse an object of another kind. Raises 400 and 422 failures."""
    kind, version = value.get("kind"), str(value.get("apiVersion", ""))
    if kind == info.kind and (info.custom or version == info.api_version):
        return
    if info.custom:
        cause = Cause("FieldValueInvalid", f'Invalid value: "{kind}": must be {info.kind}', "kind")
        name = (value.get("metadata") or {}).get("name", "")
        raise invalid(str(kind), info.group, name, [cause])
    raise bad_request(
        f'{kind} in version "{version.rpartition("/")[2]}" cannot be handled as a {info.kind}: no kind '
        f'"{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
    )


def cannot_be_handled(info: ResourceInfo, why: str) -> ApiFailure:
    """400: the body is an object of the right kind, but not of its shape."""
    return bad_request(f'{info.kind} in version "{info.version}" cannot be handled as a {info.kind}: {why}')


def decode_object(call: Call, value: dict[str, Any], options: WriteOptions, repeated: list[str]) -> Object:
    """`value` normalised, pruned and defaulted; complaints become warnings or, if Strict, a failure.

    Raises `MetadataShapeError`, `StrictError` and a 400 failure.
    """
    info = call.info
    metadata, unknown_metadata = meta.normalise(value.get("metadata"), typed=not info.custom)
    # The order of the first two keys is what encoders rely on.
    obj: Object = {"apiVersion": info.api_version, "kind": info.kind, "metadata": metadata}
    for key, child in value.items():
        if key not in obj:
            obj[key] = child
    obj, unknown = info.schema.prune(obj)
    report(call, options, repeated, [*unknown_metadata, *unknown])
    obj = info.schema.default(obj)
    return info.strategy.defaults(obj)


def report(call: Call, options: WriteOptions, repeated: list[str], unknown: list[str]) -> None:
    """Tell the client of dropped fields, as its ``fieldValidation`` wants. Raises `StrictError`."""
    if options.validation == "Ignore" or not (repeated or unknown):
        return
    complaints = [*repeated, *(f'unknown field "{path}"' for path in unknown)]
    if options.validation == "Strict":
        listed = ", ".join(complaints)
        raise StrictError(f"strict decoding error: {listed}")
    for complaint in complaints:
        call.warn(complaint)
