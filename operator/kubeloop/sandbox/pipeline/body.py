"""Bodies: from bytes to plain values, with the server's limits and complaints.

JSON is read with Go's strictness (no NaN, nothing after the value); repeated keys are reported, as field
validation wants them. YAML is read as the server's YAML reader does: timestamps stay strings.
"""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from kubeloop.sandbox.pipeline import protobuf
from kubeloop.sandbox.status import (
    ApiFailure,
    bad_request,
    not_implemented_here,
    unsupported_media_type,
)

MAX_BODY = 3 * 1024 * 1024
"""Largest request body in bytes (the apiserver's MaxRequestBodyBytes)."""

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
ACCEPTED = f"{JSON}, {YAML}, {PROTOBUF}"


class SyntaxFailure(ValueError):
    """A body that is no JSON; the text is Go's."""


def media_type(headers: dict[str, str] | Any) -> str:
    """The content type without its parameters; JSON when the client named none."""
    return str(headers.get("content-type") or JSON).partition(";")[0].strip().lower()


def _no_constant(text: str) -> Any:
    raise SyntaxFailure(f"invalid character '{text[0]}' looking for beginning of value")


class _Pairs(dict[str, Any]):
    """An object in which some key was repeated."""

    repeated: tuple[str, ...] = ()


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) == len(pairs):
        return result
    marked = _Pairs(result)
    keys = [key for key, _ in pairs]
    marked.repeated = tuple(key for index, key in enumerate(keys) if key in keys[:index])
    return marked


_decoder = json.JSONDecoder(parse_constant=_no_constant)
_strict_decoder = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_pairs)


def parse_json(data: bytes, *, duplicates: bool = False) -> tuple[Any, list[str]]:
    """The value, and (if `duplicates`) the paths of repeated keys. Raises `SyntaxFailure` with Go's text."""
    try:
        # Go replaces what is no UTF-8 by U+FFFD; so does it with lone surrogate escapes, see store.to_json.
        text = data.decode("utf-8", "replace").strip()
        value = _strict_decoder.decode(text) if duplicates else _decoder.decode(text)
    except json.JSONDecodeError as error:
        raise SyntaxFailure(_go_text(error)) from None
    except RecursionError:
        raise SyntaxFailure("exceeded max depth") from None
    found: list[str] = []
    if duplicates:
        value = _unmark(value, "", found)
    return value, found


def _unmark(value: Any, path: str, found: list[str]) -> Any:
    """Report repeated keys. Walks only; values without them stay as they are."""
    if isinstance(value, dict):
        if isinstance(value, _Pairs):
            found.extend(f"{path}.{key}" if path else key for key in value.repeated)
            value = dict(value)
        for key, child in value.items():
            if isinstance(child, (dict, list)):
                value[key] = _unmark(child, f"{path}.{key}" if path else key, found)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            if isinstance(child, (dict, list)):
                value[index] = _unmark(child, f"{path}[{index}]", found)
    return value


def _go_text(error: json.JSONDecodeError) -> str:
    """The complaint of Go's encoding/json for the usual kinds of broken JSON."""
    text, at, message = error.doc, error.pos, error.msg
    if at >= len(text):
        return "unexpected end of JSON input"
    where = {
        "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
        "Expecting ':' delimiter": "after object key",
        "Extra data": "after top-level value",
        "Invalid control character at": "in string literal",
        "Illegal trailing comma before end of object": "looking for beginning of object key string",
        "Illegal trailing comma before end of array": "looking for beginning of value",
    }.get(message)
    if message == "Expecting ',' delimiter":
        inside_object = text.rfind("{", 0, at) > text.rfind("[", 0, at)
        where = "after object key:value pair" if inside_object else "after array element"
    if message.startswith("Unterminated string"):
        return "unexpected end of JSON input"
    return f"invalid character '{text[at]}' {where or 'looking for beginning of value'}"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A safe loader without timestamps, which counts repeated keys."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self.repeated: list[str] = []


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[str, Any]:
    loader.flatten_mapping(node)
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            # JSON has string keys only; the server writes scalars as they stand in the text.
            key = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else str(key)
        if key in result:
            loader.repeated.append(f'line {key_node.start_mark.line + 1}: key "{key}" already set in map')
        result[key] = loader.construct_object(value_node, deep=True)
    return result


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if not tag.endswith((":timestamp", ":value"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}

# What looks octal but has a digit that is none is read as a decimal fraction by Go, so 080 is 80.
_Loader.add_implicit_resolver("!decimal", re.compile(r"^[-+]?0[0-7]*[89][0-9]*$"), list("-+0"))
_Loader.add_constructor("!decimal", lambda _, node: int(float(node.value)))
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^[yYnN]$"), list("yYnN"))
_Loader.bool_values = {**yaml.SafeLoader.bool_values, "y": True, "n": False}


_SURROGATE_ESCAPE = re.compile(rb"(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]")


def parse_yaml(data: bytes) -> tuple[Any, list[str]]:
    """The value of one YAML document and its repeated keys. Raises `SyntaxFailure`.

    A body that is plain JSON takes the faster reader; both read it the same, but for surrogate escapes, which
    YAML does not have: the real server refuses them for ever (R: apply bodies must be UTF-8).
    """
    if _SURROGATE_ESCAPE.search(data):
        raise SyntaxFailure("yaml: found invalid Unicode character escape code")
    if data[:1] == b"{":
        try:
            value, duplicates = parse_json(data, duplicates=True)
        except SyntaxFailure:
            pass  # YAML's flow style may still read it
        else:
            if not duplicates:
                return value, []
    loader = _Loader(data)
    try:
        value = loader.get_single_data()
        return value, loader.repeated
    except yaml.MarkedYAMLError as error:
        # go-yaml counts from 1 in the scanner and from 0 in the parser.
        at = error.problem_mark.line if error.problem_mark else 0
        line = f"line {at + isinstance(error, yaml.scanner.ScannerError)}: " if at else ""
        raise SyntaxFailure(f"yaml: {line}{error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise SyntaxFailure(f"yaml: {error}") from None
    finally:
        loader.dispose()


_GO_TYPE_META = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


def check_media_type(kind: str) -> None:
    """Refuse what create, update and delete do not read. Raises a 415 failure."""
    if kind not in (JSON, YAML, PROTOBUF):
        raise unsupported_media_type(
            f"the body of the request was in an unknown format - accepted media types include: {ACCEPTED}"
        )


def parse_protobuf(data: bytes) -> dict[str, Any]:
    """An object of a built-in kind. Raises 400 and 501 failures."""
    try:
        return protobuf.decode(data)
    except protobuf.UnknownKindError as error:
        raise not_implemented_here(f"protobuf bodies of {error}; send JSON") from None
    except protobuf.ProtobufError as error:
        raise bad_request(str(error)) from None


def parse_object(
    data: bytes, kind: str, expected_kind: str, *, custom: bool
) -> tuple[dict[str, Any], list[str]]:
    """An object of a create or update, and complaints about repeated keys. Raises 400 and 415 failures."""
    check_media_type(kind)
    if kind == PROTOBUF:
        return parse_protobuf(data), []
    try:
        if kind == YAML:
            value, repeated = parse_yaml(data)
        else:
            value, paths = parse_json(data, duplicates=True)
            repeated = [f'duplicate field "{path}"' for path in paths]
    except SyntaxFailure as error:
        raise _unrecognized(
            expected_kind, f"couldn't get version/kind; json parse error: {error}", data
        ) from None
    if value is None and not custom:
        value = {}  # Go decodes null into a struct as an empty one
    if not isinstance(value, dict):
        name = go_type(value)
        text = (
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {name} into Go value of "
            f"type {_GO_TYPE_META}"
        )
        raise _unrecognized(expected_kind, text, data)
    if custom and not value.get("kind"):
        raise _unrecognized(
            expected_kind, f"Object 'Kind' is missing in '{data.decode(errors='replace')}'", data
        )
    return value, repeated


def go_type(value: Any) -> str:
    """What Go's decoder calls a JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    names: dict[type[Any], str] = {str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _unrecognized(expected_kind: str, why: str, data: bytes) -> ApiFailure:
    return bad_request(
        f"the object provided is unrecognized (must be of type {expected_kind}): {why} ({_peek(data)})"
    )


def _peek(data: bytes) -> str:
    """The beginning of a body as the server quotes it."""
    if not data:
        return "<empty>"
    if not data.lstrip().startswith(b"{"):
        return data[:30].hex() + (" ..." if len(data) > 30 else "")
    text = data[:30].decode(errors="replace")
    return text + (" ..." if len(data) > 30 else "")
