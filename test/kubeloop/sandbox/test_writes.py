"""create, update, patch, delete: rules and texts as seen on kube-apiserver 1.36."""

from __future__ import annotations

from typing import Any

import pytest

from kubeloop.clock import FakeClock
from kubeloop.sandbox import Sandbox, SandboxFault


def test_a_create_fills_in_what_only_the_server_sets(api: Any, clock: FakeClock) -> None:
    reply = api.post(
        api.WEBAPPS,
        api.webapp(
            "a",
            uid="mine",
            generation=7,
            creationTimestamp="2020-01-01T00:00:00Z",
            deletionTimestamp="2020-01-01T00:00:00Z",
        )
        | {"status": {"ready": True}},
    )
    assert reply.status == 201
    metadata = reply.json["metadata"]
    assert metadata["uid"] != "mine"
    assert metadata["generation"] == 1
    assert metadata["creationTimestamp"] == clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    assert "deletionTimestamp" not in metadata
    assert "status" not in reply.json
    assert reply.json["spec"] == {"image": "nginx", "replicas": 1}


def test_a_generated_name_is_the_prefix_and_five_letters(api: Any) -> None:
    body = api.webapp("")
    body["metadata"] = {"generateName": "web-"}
    names = [api.post(api.WEBAPPS, body).json["metadata"]["name"] for _ in range(3)]
    assert len(set(names)) == 3
    assert all(name.startswith("web-") and len(name) == 9 for name in names)


@pytest.mark.parametrize(
    ("body", "status", "reason", "message"),
    [
        (
            b"{bad",
            400,
            "BadRequest",
            "couldn't get version/kind; json parse error: invalid character 'b' looking",
        ),
        (b"", 400, "BadRequest", "json parse error: unexpected end of JSON input (<empty>)"),
        (
            b'{"kind":"WebApp"}',
            400,
            "BadRequest",
            "the API version in the data () does not match the expected",
        ),
        (
            {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "x"}},
            422,
            "Invalid",
            'Foo.example.com "x" is invalid: kind: Invalid value: "Foo": must be WebApp',
        ),
        (
            {
                "apiVersion": "example.com/v1",
                "kind": "WebApp",
                "metadata": {"name": "x", "namespace": "other"},
                "spec": {"image": "a"},
            },
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            {"apiVersion": "example.com/v1", "kind": "WebApp", "metadata": {}, "spec": {"image": "a"}},
            422,
            "Invalid",
            "metadata.name: Required value: name or generateName is required",
        ),
        (
            {
                "apiVersion": "example.com/v1",
                "kind": "WebApp",
                "metadata": {"name": "x", "resourceVersion": "1"},
                "spec": {"image": "a"},
            },
            500,
            "",
            "resourceVersion should not be set on objects to be created",
        ),
    ],
)
def test_a_create_that_cannot_be(api: Any, body: Any, status: int, reason: str, message: str) -> None:
    reply = api.post(api.WEBAPPS, body)
    assert (reply.status, reply.reason) == (status, reason)
    assert message in reply.message


def test_an_existing_name_conflicts(api: Any) -> None:
    api.create("a")
    reply = api.post(api.WEBAPPS, api.webapp("a"))
    assert (reply.status, reply.reason) == (409, "AlreadyExists")
    assert reply.message == 'webapps.example.com "a" already exists'
    assert reply.json["details"] == {"name": "a", "group": "example.com", "kind": "webapps"}


def test_a_missing_namespace_is_not_found(api: Any) -> None:
    reply = api.post("/apis/example.com/v1/namespaces/nope/webapps", api.webapp("a"))
    assert (reply.status, reply.message) == (404, 'namespaces "nope" not found')


def test_field_validation_warns_refuses_or_ignores(api: Any) -> None:
    body = api.webapp("a") | {"bar": 1}
    body["spec"] = {"image": "a", "foo": 1}
    warned = api.post(f"{api.WEBAPPS}?dryRun=All", body)
    assert (
        warned.headers["warning"] == '299 - "unknown field \\"bar\\"", 299 - "unknown field \\"spec.foo\\""'
    )
    ignored = api.post(f"{api.WEBAPPS}?dryRun=All&fieldValidation=Ignore", body)
    assert "warning" not in ignored.headers
    strict = api.post(f"{api.WEBAPPS}?fieldValidation=Strict", body)
    assert (strict.status, strict.message) == (
        400,
        'WebApp in version "v1" cannot be handled as a WebApp: strict decoding error: unknown field "bar", '
        'unknown field "spec.foo"',
    )


def test_repeated_fields_are_told(api: Any) -> None:
    body = (
        b'{"apiVersion":"example.com/v1","kind":"WebApp","metadata":{"name":"a"},'
        b'"spec":{"image":"a","image":"b"}}'
    )
    reply = api.post(api.WEBAPPS, body)
    assert reply.headers["warning"] == '299 - "duplicate field \\"spec.image\\""'
    assert reply.json["spec"]["image"] == "b"


def test_a_dry_run_changes_nothing(api: Any, sandbox: Sandbox) -> None:
    revision = sandbox.backend.store.revision
    assert api.post(f"{api.WEBAPPS}?dryRun=All", api.webapp("a")).status == 201
    assert api.get(f"{api.WEBAPPS}/a").status == 404
    assert sandbox.backend.store.revision == revision


def test_unknown_formats_are_refused(api: Any) -> None:
    reply = api("POST", api.WEBAPPS, b"x", "text/plain")
    assert (reply.status, reply.reason) == (415, "UnsupportedMediaType")
    api.create("a")
    reply = api("PATCH", f"{api.WEBAPPS}/a", {}, "application/strategic-merge-patch+json")
    assert reply.message == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )


def test_a_body_that_is_too_large_is_refused(api: Any) -> None:
    reply = api.post(api.WEBAPPS, api.webapp("a", annotations={"x": "y" * (3 * 1024 * 1024)}))
    assert (reply.status, reply.reason) == (413, "RequestEntityTooLarge")


def test_an_update_needs_the_current_revision(api: Any) -> None:
    live = api.create("a")
    old = dict(live, spec={"image": "b"})
    assert api.put(f"{api.WEBAPPS}/a", old).status == 200
    stale = api.put(f"{api.WEBAPPS}/a", old)
    assert (stale.status, stale.reason) == (409, "Conflict")
    assert stale.message == (
        'Operation cannot be fulfilled on webapps.example.com "a": the object has been modified; please '
        "apply your changes to the latest version and try again"
    )
    missing = api.put(f"{api.WEBAPPS}/a", api.webapp("a"))
    assert (missing.status, missing.message) == (
        422,
        'webapps.example.com "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified '
        "for an update",
    )


def test_an_update_that_changes_nothing_keeps_the_revision(
    api: Any, sandbox: Sandbox, clock: FakeClock
) -> None:
    live = api.create("a")
    clock.advance(10)
    mark = sandbox.log.mark()
    assert api.put(f"{api.WEBAPPS}/a", live).json == live
    assert api.merge(f"{api.WEBAPPS}/a", {"spec": {"replicas": 1}}).json == live
    assert [entry.wrote for entry in sandbox.log.writes(since=mark)] == [False, False]


def test_the_generation_counts_changes_of_the_spec_only(api: Any) -> None:
    path = f"{api.WEBAPPS}/a"
    api.create("a")
    assert api.merge(path, {"metadata": {"labels": {"a": "b"}}}).json["metadata"]["generation"] == 1
    assert api.merge(f"{path}/status", {"status": {"ready": True}}).json["metadata"]["generation"] == 1
    assert api.merge(path, {"spec": {"replicas": 2}}).json["metadata"]["generation"] == 2
    changed = api.merge(path, {"metadata": {"generation": 77, "creationTimestamp": "2020-01-01T00:00:00Z"}})
    assert changed.json["metadata"]["generation"] == 2


def test_the_main_resource_and_its_status_do_not_touch_each_other(api: Any) -> None:
    path = f"{api.WEBAPPS}/a"
    api.create("a")
    assert "status" not in api.merge(path, {"status": {"ready": True}}).json
    written = api.merge(
        f"{path}/status",
        {"status": {"ready": True}, "spec": {"image": "z"}, "metadata": {"labels": {"u": "u"}}},
    ).json
    assert (written["status"], written["spec"]["image"]) == ({"ready": True}, "nginx")
    assert "labels" not in written["metadata"]


@pytest.mark.parametrize(
    ("patch", "status", "message"),
    [
        ({"metadata": {"uid": "1"}}, 422, 'metadata.uid: Invalid value: "1": field is immutable'),
        (
            {"metadata": {"name": "b"}},
            400,
            "the name of the object (b) does not match the name on the URL (a)",
        ),
        ({"metadata": {"resourceVersion": "1"}}, 409, "the object has been modified"),
        ({"metadata": {"finalizers": ["a b"]}}, 422, "metadata.finalizers: Invalid value"),
        ({"spec": None}, 422, "spec: Required value"),
        (b"x", 400, "error decoding patch: invalid character 'x' looking for beginning of value"),
        (
            b"[]",
            400,
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface",
        ),
        (
            {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}},
            422,
            'metadata.deletionTimestamp: Invalid value: "2020-01-01T00:00:00Z": field is immutable',
        ),
    ],
)
def test_a_patch_that_cannot_be(api: Any, patch: Any, status: int, message: str) -> None:
    api.create("a")
    reply = api.merge(f"{api.WEBAPPS}/a", patch)
    assert reply.status == status
    assert message in reply.message


def test_a_json_patch(api: Any) -> None:
    path, kind = f"{api.WEBAPPS}/a", "application/json-patch+json"
    api.create("a")
    done = api("PATCH", path, [{"op": "replace", "path": "/spec/image", "value": "b"}], kind)
    assert done.json["spec"]["image"] == "b"
    assert api("PATCH", path, [{"op": "test", "path": "/spec/image", "value": "z"}], kind).status == 422
    assert api("PATCH", path, {}, kind).message == (
        "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
    )


def test_an_apply_creates_owns_and_conflicts(api: Any) -> None:
    path = f"{api.WEBAPPS}/a"
    assert api.apply(f"{path}?fieldManager=me", api.webapp("a")).status == 201
    assert api.apply(f"{path}?fieldManager=me", api.webapp("a")).status == 200
    other = api.apply(f"{path}?fieldManager=you", api.webapp("a", "other"))
    assert (other.status, other.message) == (
        409,
        'Apply failed with 1 conflict: conflict with "me": .spec.image',
    )
    forced = api.apply(f"{path}?fieldManager=you&force=true", api.webapp("a", "other"))
    assert forced.json["spec"]["image"] == "other"


def test_a_repeated_apply_keeps_the_revision(api: Any, clock: FakeClock, sandbox: Sandbox) -> None:
    path = f"{api.WEBAPPS}/a?fieldManager=me"
    first = api.apply(path, api.webapp("a")).json
    clock.advance(60)
    mark = sandbox.log.mark()
    assert api.apply(path, api.webapp("a")).json == first
    assert not sandbox.log.writes(since=mark, only_effective=True)


def test_an_apply_with_a_uid_never_creates(api: Any) -> None:
    """Step 2 of the apply protocol: 409 when nothing is there, 422 when another object is."""
    body = api.webapp("a", uid="11")
    missing = api.apply(f"{api.WEBAPPS}/a?fieldManager=me&force=true", body)
    assert (missing.status, missing.message) == (
        409,
        'Operation cannot be fulfilled on webapps.example.com "a": uid mismatch: the provided object '
        "specified uid 11, and no existing object was found",
    )
    api.create("a")
    assert api.apply(f"{api.WEBAPPS}/a?fieldManager=me&force=true", body).status == 422


def test_an_apply_body_is_yaml_and_knows_no_surrogates(api: Any) -> None:
    path = f"{api.WEBAPPS}/a?fieldManager=me"
    text = b"apiVersion: example.com/v1\nkind: WebApp\nmetadata: {name: a}\nspec: {image: 2001-01-01}\n"
    assert api.apply(path, text).json["spec"]["image"] == "2001-01-01"
    escaped = b'{"apiVersion":"example.com/v1","kind":"WebApp","spec":{"image":"\\ud83d\\ude00"}}'
    refused = api.apply(path, escaped)
    assert (refused.status, refused.message) == (
        400,
        "error decoding YAML: error converting YAML to JSON: yaml: found invalid Unicode character escape "
        "code",
    )


def test_apply_options_are_checked(api: Any) -> None:
    api.create("a")
    unnamed = api.apply(f"{api.WEBAPPS}/a", {})
    assert unnamed.status == 422
    assert "fieldManager: Required value: is required for apply patch" in unnamed.message
    forced = api.merge(f"{api.WEBAPPS}/a?force=true", {})
    assert "force: Forbidden: may not be specified for non-apply patch" in forced.message


def test_a_delete_without_finalizers_answers_a_status(api: Any) -> None:
    live = api.create("a")
    reply = api.delete(f"{api.WEBAPPS}/a")
    assert reply.json == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {
            "name": "a",
            "group": "example.com",
            "kind": "webapps",
            "uid": live["metadata"]["uid"],
        },
    }
    assert api.delete(f"{api.WEBAPPS}/a").status == 404


def test_a_finalizer_keeps_the_object_until_it_is_removed(api: Any, clock: FakeClock) -> None:
    """R0.17: while it is there the server only sets deletionTimestamp."""
    path = f"{api.WEBAPPS}/a"
    api.create("a", finalizers=["a.b/c", "a.b/d"])
    deleted = api.delete(path).json
    assert deleted["metadata"]["deletionTimestamp"] == clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    assert deleted["metadata"]["deletionGracePeriodSeconds"] == 0
    assert deleted["metadata"]["generation"] == 2
    again = api.delete(path).json
    assert again == deleted
    added = api.merge(path, {"metadata": {"finalizers": ["a.b/c", "a.b/d", "x.y/z"]}})
    assert added.status == 422
    assert added.message == (
        'WebApp.example.com "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added '
        'if the object is being deleted, found new finalizers []string{"x.y/z"}'
    )
    kept = api.merge(path, {"metadata": {"finalizers": ["a.b/c"], "deletionTimestamp": None}}).json
    assert kept["metadata"]["deletionTimestamp"] == deleted["metadata"]["deletionTimestamp"]
    assert api.merge(path, {"metadata": {"finalizers": None}}).status == 200
    assert api.get(path).status == 404


def test_delete_preconditions(api: Any) -> None:
    live = api.create("a")
    uid = api.delete(f"{api.WEBAPPS}/a", {"preconditions": {"uid": "1"}})
    assert (uid.status, uid.message) == (
        409,
        'Operation cannot be fulfilled on WebApp.example.com "a": the UID in the precondition (1) does not '
        f"match the UID in record ({live['metadata']['uid']}). The object might have been deleted and then "
        "recreated",
    )
    revision = api.delete(f"{api.WEBAPPS}/a", {"preconditions": {"resourceVersion": "1"}})
    assert revision.status == 409
    bogus = api.delete(f"{api.WEBAPPS}/a?propagationPolicy=Bogus")
    assert bogus.status == 422
    right = {"preconditions": {"uid": live["metadata"]["uid"]}}
    assert api.delete(f"{api.WEBAPPS}/a", right).status == 200


def test_propagation_is_a_finalizer(api: Any) -> None:
    for policy, finalizer in (("Foreground", "foregroundDeletion"), ("Orphan", "orphan")):
        api.create(policy.lower())
        reply = api.delete(f"{api.WEBAPPS}/{policy.lower()}?propagationPolicy={policy}")
        assert reply.json["metadata"]["finalizers"] == [finalizer]


def test_a_collection_is_deleted_by_selector(api: Any) -> None:
    api.create("a", labels={"x": "y"})
    api.create("b")
    reply = api.delete(f"{api.WEBAPPS}?labelSelector=x%3Dy")
    assert [item["metadata"]["name"] for item in reply.json["items"]] == ["a"]
    assert [item["metadata"]["name"] for item in api.get(api.WEBAPPS).json["items"]] == ["b"]


def test_scale_is_a_view_on_the_spec(api: Any) -> None:
    """D5."""
    path = f"{api.WEBAPPS}/a"
    api.create("a")
    api.merge(f"{path}/status", {"status": {"replicas": 1, "selector": "app=a"}})
    scale = api.get(f"{path}/scale").json
    assert (scale["kind"], scale["apiVersion"], scale["spec"], scale["status"]) == (
        "Scale",
        "autoscaling/v1",
        {"replicas": 1},
        {"replicas": 1, "selector": "app=a"},
    )
    assert api.merge(f"{path}/scale", {"spec": {"replicas": 5}}).json["spec"] == {"replicas": 5}
    live = api.get(path).json
    assert (live["spec"]["replicas"], live["metadata"]["generation"]) == (5, 2)
    assert api.put(f"{path}/scale", scale).status == 409
    del scale["metadata"]["resourceVersion"]
    assert api.put(f"{path}/scale", scale).json["spec"] == {"replicas": 1}
    assert api.merge(f"{path}/scale", {"spec": {"replicas": -1}}).status == 422


def test_a_deployment_scales_by_every_kind_of_patch(api: Any) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    api.post(
        path,
        {
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": [{"name": "c", "image": "x"}]},
                },
            },
        },
    )
    body = {"spec": {"replicas": 2}}
    strategic = api("PATCH", f"{path}/web/scale", body, "application/strategic-merge-patch+json")
    assert (strategic.json["spec"], strategic.json["status"]["selector"]) == ({"replicas": 2}, "a=b")
    config = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}}
    config["spec"] = {"replicas": 3}
    applied = api.apply(f"{path}/web/scale?fieldManager=hpa", config)
    assert applied.status == 409
    assert 'conflict with "curl" with subresource "scale" using autoscaling/v1' in applied.message
    negative = api.merge(f"{path}/web/scale", {"spec": {"replicas": -1}})
    assert negative.message == (
        'Scale.autoscaling "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal '
        "to 0"
    )


def test_wrong_methods_are_told(api: Any) -> None:
    api.create("a")
    assert api.put(api.WEBAPPS, {}).message == "name must be provided"
    reply = api.delete(f"{api.WEBAPPS}/a/status")
    assert (reply.status, reply.message) == (
        405,
        'delete is not supported on resources of kind "webapps.example.com"',
    )


def test_a_fault_of_the_sandbox_is_a_500_and_is_kept_for_the_test() -> None:
    sandbox = Sandbox(step=True)

    def broken(*_: object) -> None:
        raise ZeroDivisionError("oops")

    sandbox.start()
    sandbox.backend.store.get = broken  # type: ignore[method-assign, assignment]
    answer = sandbox.transport().request("GET", "/api/v1/namespaces/default")
    sandbox.stop()
    assert answer.status == 500
    assert b'"reason":"InternalError"' in answer.body
    assert b"Traceback" not in answer.body
    with pytest.raises(SandboxFault, match="oops"):
        sandbox.check()
