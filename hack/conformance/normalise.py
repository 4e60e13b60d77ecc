"""Answers without what differs from run to run.

uids, times, generated names and allocated addresses become symbols, numbered by first appearance, so that
"the same uid again" still shows. The resourceVersions of objects become ``<rv1>``, ``<rv2>`` … in numerical
order: whether an answer is newer than another is kept. Those of lists, tables and bookmarks move with writes
of others, so of them only is kept which object's they are not older than (``<rv3+>``).

Objects quoted in messages are written with their keys in order.

Where the real server's order is chance, ours is fixed: managed fields (sorted by whole seconds there), causes
of an apply conflict and of a schema violation, and what a configuration does not fit in (a Go map's order).
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .play import KEPT_HEADERS, Answer
from .script import Json, Script
from .variables import lookup

_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
# Times that a script writes itself lie before 2026 and stay.
_TIME = re.compile(r"\b20(?:2[6-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_TOKEN_VOLUME = re.compile(r"\bkube-api-access-[a-z0-9]{5}\b")
_VERSION_TEXT = re.compile(r"(?i)resource ?version|revision")
_EDGE_TEXT = re.compile(r"(?i)too (?:large|old) resource ?version")
_NUMBER = re.compile(r"(?<![\w.-])\d+(?![\w.-])")
_AGE = re.compile(r"^(?:\d+[smhd])+$")
_IP = re.compile(r"^\d+\.\d+\.\d+\.\d+$")
_REVISIONS = ("resourceVersion", "metadata.resourceVersion", "object.metadata.resourceVersion")
_QUOTED = '"{\\"'  # how an object begins that a message quotes as a string
_LONGEST_PREFIX = 58  # of generateName: five letters are put behind it
_HASH_LABEL = "pod-template-hash"


def normalise(script: Script, answers: Sequence[Answer], namespace: str) -> list[Json]:
    """The golden form: one value a recorded step."""
    symbols = _Symbols(namespace, keep_managed="managedFields" in script.keep)
    raw = [_raw(script, answer) for answer in answers]
    for answer, item in zip(answers, raw, strict=True):
        symbols.collect_names([answer.body, answer.events])
        symbols.collect(item)
    symbols.order()
    return [symbols.replaced(item) for item in raw]


def _raw(script: Script, answer: Answer) -> dict[str, Any]:
    step = answer.step
    result: dict[str, Any] = {"step": step.label}
    only = step.options.get("only", script.only)
    ignore = [*script.ignore, *step.options.get("ignore", ())]
    if answer.events is not None:
        result["events"] = [_projected(event, only, ignore) for event in answer.events]
        return result
    result["code"] = answer.code
    kept = {name: answer.headers[name] for name in KEPT_HEADERS if name in answer.headers}
    if kept.get("content-type") == "application/json":
        del kept["content-type"]
    if kept:
        result["headers"] = kept
    if answer.body is not None:
        failed = answer.code is None or answer.code >= 400
        result["body"] = answer.body if failed else _projected(answer.body, only, ignore)
    return result


def _projected(value: Json, only: Iterable[str], ignore: Iterable[str]) -> Json:
    if only and isinstance(value, dict):
        value = {path: _present(lookup(value, path)) for path in only}
    for path in ignore:
        value = _without(value, path.split("."))
    return value


def _present(value: Any) -> Json:
    return value if isinstance(value, dict | list | str | int | float | bool | None) else "<nothing>"


def _without(value: Json, path: Sequence[str]) -> Json:
    """`value` without what stands at `path`; ``*`` is every item of a list or every key."""
    if not path or not isinstance(value, dict | list):
        return value
    head, rest = path[0], path[1:]
    if isinstance(value, list):
        return [_without(item, rest) for item in value] if head == "*" else value
    if not rest:
        return {} if head == "*" else {key: item for key, item in value.items() if key != head}
    return {key: _without(item, rest) if head in ("*", key) else item for key, item in value.items()}


def _walk(value: Json) -> Iterator[Json]:
    """Every value inside, objects in the order of their keys (servers differ in theirs)."""
    yield value
    if isinstance(value, dict):
        for key in sorted(value):
            yield from _walk(value[key])
    elif isinstance(value, list):
        for item in value:
            yield from _walk(item)


def _is_list(value: dict[str, Any]) -> bool:
    kind = value.get("kind")
    return "items" in value or "rows" in value or (isinstance(kind, str) and kind.endswith("List"))


class _Symbols:
    def __init__(self, namespace: str, *, keep_managed: bool) -> None:
        self._namespace = namespace
        self._keep_managed = keep_managed
        self._uids: dict[str, str] = {}
        self._words: dict[str, str] = {}
        self._hashes: dict[str, str] = {}
        self._revisions: list[int] = []
        self._found: set[int] = set()

    # -- first pass

    def collect(self, step: Json) -> None:
        """Note every uid, name and revision of one step."""
        bookmarks = {id(e["object"]) for e in step.get("events", ()) if _bookmark(e)}
        for value in _walk(step):
            if isinstance(value, str):
                for uid in _UUID.findall(value):
                    self._uids.setdefault(uid, f"<uid{len(self._uids) + 1}>")
            elif isinstance(value, dict):
                metadata = value.get("metadata")
                if isinstance(metadata, dict):
                    loose = _is_list(value) or id(value) in bookmarks
                    if not loose:
                        self._note_revision(metadata.get("resourceVersion"))
                for path in _REVISIONS[1:]:  # a projection
                    self._note_revision(value.get(path))

    def collect_names(self, answer: Json) -> None:
        """Note generated names and hashes, also in what a script does not keep."""
        for value in _walk(answer):
            if isinstance(value, dict) and isinstance(value.get("metadata"), dict):
                self._note_names(value["metadata"])

    def _note_names(self, metadata: dict[str, Any]) -> None:
        prefix, name = metadata.get("generateName"), metadata.get("name")
        if isinstance(prefix, str) and isinstance(name, str) and prefix:
            cut = prefix[:_LONGEST_PREFIX]
            if name.startswith(cut) and name != prefix:
                self._words.setdefault(name, f"{cut}<random{len(self._words) + 1}>")
        labels = metadata.get("labels")
        if isinstance(labels, dict) and _HASH_LABEL in labels:
            self._hashes.setdefault(str(labels[_HASH_LABEL]), f"<hash{len(self._hashes) + 1}>")

    def _note_revision(self, revision: Any) -> None:
        if isinstance(revision, str) and revision.isdigit() and revision != "0":
            self._found.add(int(revision))

    def order(self) -> None:
        """All revisions are known now."""
        self._revisions = sorted(self._found)

    # -- second pass

    def replaced(self, step: Json) -> Json:
        """The step with symbols."""
        result = {key: self._value(key, value, False) for key, value in step.items() if key != "events"}
        if "events" in step:
            result["events"] = [self._value("event", e, _bookmark(e)) for e in step["events"]]
        return {"step": step["step"], **{key: result[key] for key in result if key != "step"}}

    def _value(self, key: str, value: Json, loose: bool) -> Json:
        if isinstance(value, str):
            return self._string(key, value, loose)
        if isinstance(value, list):
            if key.endswith("cells"):
                value = ["<age>" if isinstance(item, str) and _AGE.match(item) else item for item in value]
            return [self._value(key, item, loose) for item in value]
        if isinstance(value, dict):
            value = _in_order(value)
            here = loose or _is_list(value)
            result = {}
            for name, item in sorted(value.items()):
                if name.endswith("managedFields") and isinstance(item, list):
                    if not self._keep_managed:
                        continue
                    item = sorted((entry for entry in item if not _of_controllers(entry)), key=_manager)
                # Only the metadata of the list itself is the list's.
                inner = here if name in ("metadata", "object") else False
                inner = loose if name == "resourceVersion" else inner
                result[self._string("", name, False)] = self._value(name, item, inner)
            return result
        if key in ("nodePort", "healthCheckNodePort") and isinstance(value, int) and value >= 30000:
            return "<port>"
        return value

    def _string(self, key: str, value: str, loose: bool) -> str:
        if key in _REVISIONS:
            return self._revision(value, loose)
        if key in ("continue", "metadata.continue"):
            return "<continue>" if value else value
        if key in ("clusterIP", "clusterIPs") and _IP.match(value):
            return "<ip>"
        if key == "message" and _QUOTED in value:
            value, quoted = self._without_quotes(value)
            text = self._string(key, value, loose)
            for symbol, shown in quoted.items():
                text = text.replace(symbol, shown)
            return text
        value = value.replace(self._namespace, "<ns>")
        value = _UUID.sub(lambda match: self._uids.get(match[0], "<uid>"), value)
        value = _TIME.sub(lambda match: "<microtime>" if match[1] else "<time>", value)
        value = _TOKEN_VOLUME.sub("kube-api-access-<random>", value)
        for word, symbol in (*self._words.items(), *self._hashes.items()):
            value = value.replace(word, symbol)
        head, errors, lines = value.partition("errors:\n")
        if errors and key == "message":
            # What a configuration does not fit the schema in comes in the order of a Go map.
            value = head + errors + "\n".join(sorted(lines.split("\n")))
        if key in ("message", "warning", "") and _VERSION_TEXT.search(value):
            # What is too old or too new is said beside the server's newest, which others move.
            exact = not _EDGE_TEXT.search(value)
            value = _NUMBER.sub(lambda match: self._number(match[0]) if exact else "<rv>", value)
        return value

    def _without_quotes(self, message: str) -> tuple[str, dict[str, str]]:
        """`message` with placeholders for the objects it quotes, and what they stand for."""
        decoder = json.JSONDecoder()
        quoted: dict[str, str] = {}
        rest, done = message, ""
        while _QUOTED in rest:
            before, _, _ = rest.partition(_QUOTED)
            text, length = decoder.raw_decode(rest[len(before) :])
            try:
                shown = json.dumps(self._value("", json.loads(text), False), sort_keys=True)
            except ValueError:
                shown = text
            symbol = f"<object{len(quoted)}>"
            quoted[symbol] = shown
            done, rest = f"{done}{before}{symbol}", rest[len(before) + length :]
        return done + rest, quoted

    def _number(self, text: str) -> str:
        number = int(text)
        return f"<rv{self._revisions.index(number) + 1}>" if number in self._found else "<rv>"

    def _revision(self, value: str, loose: bool) -> str:
        if not value.isdigit() or value == "0":
            return value
        number = int(value)
        if loose:
            return f"<rv{bisect_right(self._revisions, number)}+>"
        return f"<rv{self._revisions.index(number) + 1}>" if number in self._found else value


def _bookmark(event: Json) -> bool:
    return isinstance(event, dict) and event.get("type") == "BOOKMARK"


def _of_controllers(entry: Json) -> bool:
    """Whether controllers own this: how far they are at the moment of an answer is chance."""
    return bool(entry.get("manager") == "kube-controller-manager")


def _manager(entry: Json) -> list[str]:
    return [str(entry.get(key, "")) for key in ("operation", "manager", "subresource", "apiVersion")]


def _in_order(status: dict[str, Any]) -> dict[str, Any]:
    """A Status whose causes come in no certain order, with them sorted (and so in its message)."""
    causes = lookup(status, "details.causes")
    if not isinstance(causes, list) or len(causes) < 2:
        return status
    conflict = any(cause.get("reason") == "FieldManagerConflict" for cause in causes)
    custom = str(status["details"].get("group", "")).endswith(".example.com")
    if not conflict and not custom:
        return status
    ordered = sorted(causes, key=lambda cause: [str(cause.get(key, "")) for key in ("field", "message")])
    message = str(status.get("message", "")).replace(_sentence(causes), _sentence(ordered))
    return {**status, "message": message, "details": {**status["details"], "causes": ordered}}


def _sentence(causes: list[Json]) -> str:
    return ", ".join(f"{cause.get('field')}: {cause.get('message')}" for cause in causes)
