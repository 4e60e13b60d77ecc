"""Hypothesis strategies for scripts: short histories of one object under many kinds of writes."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

Step = dict[str, Any]

MANAGERS = ("one", "two")
_values = st.sampled_from(["1", "2"])
_sizes = st.sampled_from([1, 2, 3, -1])
_strings = st.dictionaries(st.sampled_from(["a", "b", "c"]), _values, max_size=3)
_nullable_strings = st.dictionaries(st.sampled_from(["a", "b", "c"]), _values | st.none(), max_size=2)
_parts = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["x", "y"])},
        optional={"count": st.sampled_from([1, 2]), "hint": _values},
    ),
    max_size=2,
)
_widget_spec = st.fixed_dictionaries(
    {},
    optional={
        "size": _sizes,
        "color": st.sampled_from(["red", "green", "pink"]),
        "note": _values,
        "labels": _strings,
        "frozen": _strings,
        "tags": st.lists(_values, max_size=2),
        "words": st.lists(_values, max_size=2),
        "parts": _parts,
    },
)
_widget_change = st.fixed_dictionaries(
    {},
    optional={
        "size": _sizes | st.none(),
        "color": st.sampled_from(["red", None]),
        "note": _values | st.none(),
        "labels": _nullable_strings | st.none(),
        "frozen": _nullable_strings | st.none(),
        "tags": st.lists(_values, max_size=2) | st.none(),
        "parts": _parts | st.none(),
    },
)
_status = st.fixed_dictionaries(
    {},
    optional={
        "phase": st.sampled_from(["A", "B"]),
        "ready": st.sampled_from([0, 1]),
        "conditions": st.lists(
            st.fixed_dictionaries({"type": st.sampled_from(["R", "S"]), "status": st.just("True")}),
            max_size=2,
            unique_by=lambda condition: condition["type"],
        ),
    },
)
_ports = st.lists(
    st.fixed_dictionaries(
        {"port": st.sampled_from([80, 81]), "name": st.sampled_from(["h", "s"])},
        optional={"protocol": st.sampled_from(["TCP", "UDP"]), "targetPort": st.sampled_from([80, "web"])},
    ),
    max_size=2,
)
_service_spec = st.fixed_dictionaries({}, optional={"selector": _strings, "ports": _ports})
_metadata = st.fixed_dictionaries(
    {},
    optional={
        "labels": _strings,
        "annotations": _strings,
        "finalizers": st.lists(st.sampled_from(["example.com/f", "example.com/g"]), max_size=2, unique=True),
    },
)
_metadata_change = st.fixed_dictionaries(
    {},
    optional={
        "labels": _nullable_strings | st.none(),
        "annotations": _nullable_strings | st.none(),
        "finalizers": st.sampled_from([None, [], ["example.com/f"], ["example.com/g"]]),
        "resourceVersion": st.sampled_from(["${rv}", "1"]),
    },
)
BODIES = {
    "cm": ("data", _strings, _nullable_strings | st.none()),
    "widget": ("spec", _widget_spec, _widget_change),
    "svc": ("spec", _service_spec, _service_spec),
}
"""By alias: the field that holds what the kind is for, its whole values, and changes to it."""
_JSON_PATHS = {
    "cm": ("/data/a", "/data/b", "/data", "/metadata/labels", "/metadata/labels/a"),
    "widget": ("/spec/size", "/spec/note", "/spec/parts/0", "/spec/tags/-", "/spec/labels/a", "/status"),
    "svc": ("/spec/ports/0", "/spec/selector/a", "/spec/ports/0/port", "/metadata/annotations"),
}


@st.composite
def _object(draw: DrawFn, alias: str) -> dict[str, Any]:
    field, whole, _ = BODIES[alias]
    body: dict[str, Any] = {}
    if metadata := draw(_metadata):
        body["metadata"] = metadata
    body[field] = draw(whole)
    if alias == "widget" and draw(st.integers(0, 5)) == 0:
        body["status"] = draw(_status)
    return body


@st.composite
def _change(draw: DrawFn, alias: str) -> dict[str, Any]:
    field, _, change = BODIES[alias]
    body: dict[str, Any] = {}
    if metadata := draw(_metadata_change):
        body["metadata"] = metadata
    if draw(st.booleans()):
        body[field] = draw(change)
    return body


def _operation(op: str, path: str, value: Any) -> dict[str, Any]:
    return {"op": op, "path": path} if op == "remove" else {"op": op, "path": path, "value": value}


def _json_patch(alias: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    value: st.SearchStrategy[Any] = _values | _sizes | st.just({}) | st.just({"name": "x"})
    operation = st.builds(
        _operation,
        st.sampled_from(["add", "replace", "remove", "test"]),
        st.sampled_from(_JSON_PATHS[alias]),
        value,
    )
    return st.lists(operation, min_size=1, max_size=2)


@st.composite
def _step(draw: DrawFn, alias: str) -> Step:
    verbs = ["create", "apply", "apply", "apply", "merge", "merge", "json", "replace", "delete", "get"]
    if alias == "widget":
        verbs += ["status", "status", "scale"]
    else:
        verbs += ["strategic"]
    verb = draw(st.sampled_from(verbs))
    name = "a"
    body: dict[str, Any] | None
    query = [f"fieldManager={draw(st.sampled_from(MANAGERS))}"]
    if draw(st.integers(0, 7)) == 0:
        query.append("dryRun=All")
    match verb:
        case "get":
            return {"get": f"{alias}/{name}"}
        case "delete":
            bodies: st.SearchStrategy[dict[str, Any] | None] = st.sampled_from(
                [
                    None,
                    {"preconditions": {"resourceVersion": "${rv}"}},
                    {"preconditions": {"uid": "${uid}"}},
                    {"propagationPolicy": "Background"},
                ]
            )
            body = draw(bodies)
            return {"delete": f"{alias}/{name}"} | ({"body": body} if body else {})
        case "create":
            return {"create": f"{alias}/{name}?{'&'.join(query)}", "body": draw(_object(alias))}
        case "replace":
            changes = draw(_change(alias))
            return {"replace": f"{alias}/{name}?{'&'.join(query)}", "from": "old", "with": changes}
        case "apply":
            if draw(st.booleans()):
                query.append("force=true")
            return {"apply": f"{alias}/{name}?{'&'.join(query)}", "body": draw(_object(alias))}
        case "json":
            return {"json": f"{alias}/{name}?{'&'.join(query)}", "body": draw(_json_patch(alias))}
        case "status":
            kind = draw(st.sampled_from(["apply", "merge"]))
            if kind == "apply" and draw(st.booleans()):
                query.append("force=true")
            body = {"status": draw(_status)}
            return {kind: f"{alias}/{name}/status?{'&'.join(query)}", "body": body}
        case "scale":
            body = {"spec": {"replicas": draw(st.sampled_from([0, 1, 2, 200]))}}
            return {"merge": f"{alias}/{name}/scale?{'&'.join(query)}", "body": body}
    return {verb: f"{alias}/{name}?{'&'.join(query)}", "body": draw(_change(alias))}


@st.composite
def scripts(draw: DrawFn, least: int = 6) -> dict[str, Any]:
    """A script's data: an object, `least` to nine requests about it, and what a watch saw of them."""
    alias = draw(st.sampled_from(sorted(BODIES)))
    steps = draw(st.lists(_step(alias), min_size=least, max_size=9))
    saved = {"old": ".", "rv": "metadata.resourceVersion", "uid": "metadata.uid"}
    begin = {"create": f"{alias}/a", "save": saved}
    return {
        "about": f"A drawn history of {alias}.",
        "keep": ["managedFields"],
        "steps": [
            begin,
            {"watch": f"{alias}?resourceVersion=${{rv}}"},
            *steps,
            {"create": f"{alias}/last"},
            {"events": "", "last": "last"},
        ],
    }
