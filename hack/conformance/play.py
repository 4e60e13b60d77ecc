"""Playing a script on a target: requests in order, captures, watches beside them."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from .address import Place, identity, place
from .script import METHODS, PATCH_TYPES, Json, Script, Step, own_crd
from .transports import Response, Transport
from .variables import MISSING, ScriptError, lookup, merge, substitute
from .watching import Collector, count, last, never

TIMEOUT = 30.0
"""Seconds for one request."""
USER_AGENT = "conformance/1"
"""Its first part is the field manager of writes that name none."""
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KEPT_HEADERS = ("content-type", "warning", "retry-after", "allow", "location", "www-authenticate")


class Target(Protocol):
    """A server that scripts are played on."""

    patience: float
    """Seconds to wait for something that should happen."""

    def transport(self, user: str) -> Transport:
        """Requests as one of: admin, operator, user, anonymous, stranger (a token nobody has)."""
        ...

    def idle(self) -> None:
        """Let a moment pass between two looks at something that takes time."""
        ...

    def wait(self, seconds: float) -> None:
        """Let the server's time go on."""
        ...

    def compact(self) -> None:
        """Drop the history: older resourceVersions are gone."""
        ...


@dataclass(slots=True)
class Answer:
    """What came back for one step: an answer, or the events that a watch had seen."""

    step: Step
    code: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Json = None
    events: list[Json] | None = None

    def view(self) -> Json:
        """What `until` looks at."""
        return {"code": self.code, "body": self.body}


def decode(response: Response) -> Json:
    """The body: JSON when it is, else text; None when empty."""
    if not response.body:
        return None
    try:
        return json.loads(response.body)
    except ValueError:
        return response.body.decode(errors="replace")


class Player:
    """Plays one script once."""

    def __init__(self, script: Script, target: Target, *, suffix: str = "") -> None:
        """`suffix` tells namespaces apart when a script is played several times on one target."""
        self._script = script
        self._target = target
        self.namespace = script.slug + suffix
        self.group = f"{script.slug}{suffix}.example.com"
        self._variables: dict[str, Any] = {"ns": self.namespace, "group": self.group}
        self._watches: dict[str, Collector] = {}
        self._last_watch = ""
        self.waited_in_vain: list[str] = []
        """Steps whose `until` never came true."""
        self._made: list[str] = []  # cluster-scoped things to remove in the end

    def play(self) -> list[Answer]:
        """Every recorded step's answer. Raises `ScriptError` when the script cannot go on."""
        try:
            self._prepare()
            answers = []
            for step in self._script.steps:
                answer = self._step(step)
                if step.recorded and answer is not None:
                    answers.append(answer)
                elif answer is not None and answer.code is not None and answer.code >= 400:
                    raise ScriptError(f"{self._script.id}: {step.label}: {answer.code} {answer.body}")
            return answers
        finally:
            self._clean_up()

    # -- before and after

    def _prepare(self) -> None:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        self._must("POST", "/api/v1/namespaces", namespace)
        if "serviceaccount" in self._script.needs:
            self._poll(f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default", {"code": 200})
        if self._script.crd:
            crd = own_crd(substitute(self._script.crd, self._variables), self.group)
            self._must("POST", CRDS, crd)
            self._made.append(f"{CRDS}/foos.{self.group}")
            self._variables["crd"] = crd
            self.settle_crd(crd)

    def settle_crd(self, crd: Json) -> None:
        """Wait until the server serves every version of `crd`."""
        spec = crd["spec"]
        established = {"body.status.conditions[type=Established].status": "True"}
        self._poll(f"{CRDS}/{crd['metadata']['name']}", established)
        for version in spec["versions"]:
            if version["served"]:
                path = f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}?limit=1"
                self._poll(path, {"code": 200})

    def _clean_up(self) -> None:
        for watch in self._watches.values():
            watch.close()
        for path in [*reversed(self._made), f"/api/v1/namespaces/{self.namespace}"]:
            self._send("admin", "DELETE", path, {}, None)

    def _must(self, method: str, path: str, body: Json) -> None:
        headers = {"content-type": "application/json"}
        response = self._send("admin", method, path, headers, json.dumps(body).encode())
        if response.status >= 400:
            raise ScriptError(f"{self._script.id}: {method} {path}: {response.status} {decode(response)}")

    def _poll(self, path: str, until: Mapping[str, Any]) -> None:
        step = Step("get", path, {"until": until}, recorded=False)
        answer = self._request(step)
        if not _holds(answer, until):
            raise ScriptError(f"{self._script.id}: waited in vain for {until} of {path}: {answer.view()}")

    # -- steps

    def _step(self, step: Step) -> Answer | None:
        match step.verb:
            case "wait":
                self._target.wait(float(step.target))
                return None
            case "compact":
                self._target.compact()
                return None
            case "watch":
                return self._watch(step)
            case "events":
                return self._events(step)
            case "close":
                self._watches.pop(step.target or self._last_watch).close()
                return None
        return self._request(step)

    def _request(self, step: Step) -> Answer:
        where = self._place(step)
        method = METHODS[step.verb]
        headers, body = self._headers(step), self._body(step, where)
        if body is not None and "content-type" not in headers:
            headers["content-type"] = PATCH_TYPES.get(step.verb, "application/json")
        user = step.options.get("as", "admin")
        deadline = time.monotonic() + self._target.patience
        while True:
            response = self._send(user, method, where.target, headers, body)
            answer = Answer(step, response.status, response.headers, decode(response))
            if "until" not in step.options:
                break
            if time.monotonic() > deadline:
                self.waited_in_vain.append(step.label)
                break
            if _holds(answer, substitute(step.options["until"], self._variables)):
                break
            self._target.idle()
        if method in ("POST", "PATCH", "PUT") and answer.code == 201 and "/namespaces/" not in where.path:
            self._remember(where, answer.body)
        self._save(step, answer.body)
        return answer

    def _place(self, step: Step) -> Place:
        target = str(substitute(step.target, self._variables))
        create = step.verb == "create"
        kinds = self._script.kinds
        return place(target, kinds, namespace=self.namespace, group=self.group, create=create)

    def _remember(self, where: Place, body: Json) -> None:
        name = lookup(body, "metadata.name")
        if isinstance(name, str):
            self._made.append(where.path if where.path.endswith(f"/{name}") else f"{where.path}/{name}")

    def _headers(self, step: Step) -> dict[str, str]:
        headers = {"user-agent": USER_AGENT, "accept": step.options.get("accept", "application/json")}
        if "type" in step.options:
            headers["content-type"] = step.options["type"]
        more: dict[str, str] = substitute(step.options.get("headers", {}), self._variables)
        headers.update({name.lower(): value for name, value in more.items()})
        return headers

    def _body(self, step: Step, where: Place) -> bytes | None:
        options = step.options
        if "raw" in options:
            return str(substitute(options["raw"], self._variables)).encode()
        body: Json = None
        filled = step.verb in ("create", "replace", "apply")
        if "body" in options:
            body = options["body"]
        elif "from" in options:
            name = options["from"]
            body = self._variables[name] if name in self._variables else self._manifest(name)
        elif step.verb in ("create", "replace") and not where.subresource:
            body = self._manifest(where.alias)
        if "with" in options:
            body = merge(body if body is not None else {}, options["with"])
        if body is None and not filled:
            return None
        body = substitute(body, self._variables)
        if filled and (body is None or isinstance(body, dict)):
            body = merge(identity(where, self.group), body or {})
        return json.dumps(body, ensure_ascii=False).encode()

    def _manifest(self, name: str) -> Json:
        if name not in self._script.manifests:
            raise ScriptError(f"{self._script.id}: no manifest {name!r}")
        return self._script.manifests[name]

    def _save(self, step: Step, body: Json) -> None:
        for name, path in step.options.get("save", {}).items():
            value = lookup(body, path)
            if value is MISSING:
                raise ScriptError(f"{self._script.id}: {step.label}: no {path} in {body}")
            self._variables[name] = value

    def _send(
        self, user: str, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        transport = self._target.transport(user)
        return transport.request(method, target, headers=headers, body=body, timeout=TIMEOUT)

    # -- watches

    def _watch(self, step: Step) -> Answer:
        where = self._place(step)
        query = f"watch=true&{where.query}" if where.query else "watch=true"
        # A literal path is sent as it is.
        url = where.target if where.kind is None else f"{where.path}?{query}"
        transport = self._target.transport(step.options.get("as", "admin"))
        headers = self._headers(step)
        stream = transport.stream("GET", url, headers=headers, connect_timeout=5.0, read_timeout=TIMEOUT)
        if stream.status >= 400:
            text = b"".join(stream.chunks())
            stream.close()
            body = json.loads(text) if text.lstrip().startswith(b"{") else text.decode(errors="replace")
            return Answer(step, stream.status, stream.headers, body)
        self._last_watch = str(step.options.get("id", "w"))
        self._watches[self._last_watch] = Collector(stream, self.namespace)
        return Answer(step, stream.status, stream.headers)

    def _events(self, step: Step) -> Answer:
        name = step.target or self._last_watch
        if name not in self._watches:
            raise ScriptError(f"{self._script.id}: {step.label}: no open watch {name!r}")
        watch = self._watches[name]
        until_end = step.options.get("until") == "end"
        enough: Callable[[list[Json]], int | None]
        if until_end:
            enough = never
        elif "last" in step.options:
            enough = last(step.options["last"])
        elif "count" in step.options:
            enough = count(step.options["count"])
        else:
            raise ScriptError(f"{self._script.id}: {step.label}: how many? (count, last, or until: end)")
        events = watch.take(enough, self._target.patience, self._target.idle)
        for key, path in step.options.get("save", {}).items():
            self._variables[key] = lookup(events, path)
        if until_end and not watch.ended:
            events = [*events, "the stream did not end"]
        return Answer(step, events=events)


def _holds(answer: Answer, until: Mapping[str, Any]) -> bool:
    view = answer.view()
    return all(_same(lookup(view, path), wanted) for path, wanted in until.items())


def _same(found: Any, wanted: Any) -> bool:
    return found is MISSING if wanted is None else bool(found == wanted)
