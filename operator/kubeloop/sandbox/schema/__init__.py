"""What is known of a kind's fields, and what that knowledge does to objects.

Contract: a `KindSchema` is immutable and thread-safe once built; its methods never change their arguments
and return the very object they got when there was nothing to do. `prune` is what decoding a request body
does to it (unknown fields, and for built-in kinds everything a round trip through the server's Go types
does); `default` and `validate` expect pruned objects.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from kubeloop.sandbox.cel import require, uses_rules
from kubeloop.sandbox.schema import causes, embedded, listtype, structural
from kubeloop.sandbox.schema.compile import BuiltinCompiler, compile_structural
from kubeloop.sandbox.schema.decode import DecodeError, decode, decode_over
from kubeloop.sandbox.schema.node import DEDUCED, Node
from kubeloop.sandbox.schema.validate import Check, problems, to_causes
from kubeloop.sandbox.status import ApiFailure, Cause, bad_request

if TYPE_CHECKING:
    from kubeloop.sandbox.cel.rules import Rules

Object = dict[str, Any]
Warn = Callable[[str], None]
"""Takes the text of a ``Warning`` header."""
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def read_data(name: str) -> Any:
    """A gzipped JSON file of this package's data."""
    packed = resources.files(__package__).joinpath("data", name).read_bytes()
    return json.loads(gzip.decompress(packed))


class Undecodable(ApiFailure):
    """400: a value that the kind's Go type cannot hold; `why` is the decoder's complaint alone."""

    def __init__(self, kind: str, version: str, why: str) -> None:
        text = f'{kind} in version "{version}" cannot be handled as a {kind}: {why}'
        super().__init__(400, "BadRequest", text)
        self.why = why


@cache
def definitions() -> dict[str, Any]:
    """Every OpenAPI definition of the simulated built-in kinds, without descriptions."""
    result: dict[str, Any] = read_data("schemas.json.gz")
    return result


@cache
def compiler() -> BuiltinCompiler:
    """The process-wide compiler of built-in definitions."""
    return BuiltinCompiler(definitions())


class KindSchema:
    """Base of both families; `root` carries the topology that server-side apply and patches need."""

    def __init__(self, kind: str, api_version: str, root: Node) -> None:
        self.kind = kind
        self.api_version = api_version
        self.root = root

    def empty(self) -> Object:
        """What a create starts from when field ownership is computed."""
        return {}

    def default(self, obj: Object) -> Object:
        """`obj` with the schema's defaults filled in."""
        return obj

    def prune(self, obj: Object) -> tuple[Object, list[str]]:
        """`obj` as the server decodes it, and the paths of unknown fields (ApiFailure 400: wrong types)."""
        return obj, []

    def converted(self, obj: Object, base: Object) -> Object:
        """`obj`, merged by an apply into `base`, as the kind's own type holds it.

        Custom resources only have one for their metadata: elsewhere, unlike in a decoded body, a forbidden
        null stays and is refused by validation.
        """
        del base
        return obj

    def validate(self, obj: Object, old: Object | None = None, warn: Warn | None = None) -> list[Cause]:
        """What is wrong with `obj`, given that it replaces `old`.

        What validation rules would find, but forgive because it was there before, goes to `warn`.
        """
        del obj, old, warn
        return []

    def validate_status(self, obj: Object, old: Object, warn: Warn | None = None) -> list[Cause]:
        """As `validate` for a write to ``/status``: only that field is looked at (but by all rules)."""
        del obj, old, warn
        return []


class BuiltinSchema(KindSchema):
    """A kind of the server itself; its defaults and validation are code (`kubeloop.sandbox.builtins`)."""

    def __init__(self, kind: str, api_version: str, definition: str) -> None:
        super().__init__(kind, api_version, compiler().node(definition))
        self.definition = definition
        self._empty: Object = self.root.zero

    def empty(self) -> Object:
        return self._empty

    def prune(self, obj: Object) -> tuple[Object, list[str]]:
        try:
            return decode(obj, self.root)
        except DecodeError as error:
            raise self._undecodable(error) from error

    def converted(self, obj: Object, base: Object) -> Object:
        try:
            return decode_over(obj, base, self.root)
        except DecodeError as error:
            raise self._undecodable(error) from error

    def _undecodable(self, error: DecodeError) -> ApiFailure:
        return Undecodable(self.kind, self.api_version.rpartition("/")[2], str(error))


class CustomSchema(KindSchema):
    """A custom resource's schema: `openapi` is the version's ``openAPIV3Schema``."""

    def __init__(self, kind: str, api_version: str, openapi: Object) -> None:
        root = compile_structural(openapi)
        meta = compiler().node(OBJECT_META)
        topology = root.copy()
        topology.type = "object"
        topology.fields = {**root.fields, "metadata": meta}
        for key in ("apiVersion", "kind"):
            topology.fields[key] = Node("string", "string")
        if topology.element is DEDUCED and not root.preserve and openapi.get("additionalProperties") is None:
            topology.element = None
        super().__init__(kind, api_version, topology)
        self.openapi = openapi
        self._structural = root
        self._meta = meta
        self._check = Check(openapi)
        status = openapi.get("properties", {}).get("status")
        self._status_check = Check(status) if status else None
        self._rules = _rules(openapi)
        self._embeds = embedded.leads_to_embedded(root)

    def empty(self) -> Object:
        return {"apiVersion": self.api_version, "kind": self.kind}

    def default(self, obj: Object) -> Object:
        result: Object = structural.default(obj, self._structural)
        return result

    def prune(self, obj: Object) -> tuple[Object, list[str]]:
        unknown: list[str] = []
        result: Object = structural.prune(obj, self._structural, "", unknown, root=True)
        result, strange = self._with_clean_metadata(result)
        unknown += [f"metadata.{path}" for path in strange]
        if self._embeds:
            result = embedded.clean(result, self._structural, "", self._tidy, unknown)
        return structural.drop_nulls(result, self._structural), sorted(unknown)

    def converted(self, obj: Object, base: Object) -> Object:
        if obj.get("metadata") is base.get("metadata"):
            return obj
        return self._with_clean_metadata(obj)[0]

    def _with_clean_metadata(self, obj: Object) -> tuple[Object, list[str]]:
        metadata = obj.get("metadata")
        if not isinstance(metadata, dict):
            return obj, []
        clean, strange = self._tidy(metadata)
        return (obj if clean is metadata else {**obj, "metadata": clean}), strange

    def _tidy(self, metadata: Object) -> tuple[Object, list[str]]:
        """Metadata as its Go type holds it, and the unknown fields of it."""
        try:
            return decode(metadata, self._meta)
        except DecodeError as error:
            raise bad_request(str(error)) from error

    def validate(self, obj: Object, old: Object | None = None, warn: Warn | None = None) -> list[Cause]:
        found = problems(self._check, obj) if old is None else problems(self._check, obj, old)
        result = to_causes(found) if found else []
        if self._embeds:
            result += embedded.validate(obj, self._structural, "", _check_metadata)
        return self._with_rules(result + self._list_causes(obj, old), obj, old, warn)

    def validate_status(self, obj: Object, old: Object, warn: Warn | None = None) -> list[Cause]:
        result: list[Cause] = []
        if self._status_check is not None and "status" in obj:
            if "status" in old:
                found = problems(self._status_check, obj["status"], old["status"])
            else:
                found = problems(self._status_check, obj["status"])
            result = to_causes(found, "status")
        return self._with_rules(result + self._list_causes(obj, old), obj, old, warn)

    def _with_rules(
        self, found: list[Cause], obj: Object, old: Object | None, warn: Warn | None
    ) -> list[Cause]:
        """`found` and what validation rules have to say; they are not asked about values of wrong types."""
        if self._rules is None:
            return found
        from kubeloop.sandbox.cel import rules

        if any(cause.reason in causes.BLOCKING for cause in found):
            return [*found, rules.unchecked()]
        if old is None:
            return found + rules.evaluate(self._rules, obj)
        return found + rules.evaluate(self._rules, obj, old, warn=warn)

    def _list_causes(self, obj: Object, old: Object | None) -> list[Cause]:
        found = listtype.duplicates(obj, self._structural)
        if found and old is not None and listtype.duplicates(old, self._structural):
            return []
        return found


def _check_metadata(metadata: Object) -> list[Cause]:
    from kubeloop.sandbox.pipeline.metadata import validate_create  # which imports this package

    return validate_create(metadata, "path", namespaced="namespace" in metadata)


def _rules(openapi: Object) -> Rules | None:
    """The validation rules of a schema; the library behind them is not even imported when there are none."""
    if not uses_rules(openapi):
        return None
    require()
    from kubeloop.sandbox.cel.rules import compile_rules

    return compile_rules(openapi)


@cache
def builtin(kind: str, api_version: str, definition: str) -> BuiltinSchema:
    """The schema of a built-in kind, compiled once."""
    return BuiltinSchema(kind, api_version, definition)
