"""The WebApp kind, its CRD, and how it is read."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import tracemalloc
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from kubeloop.model import Deployment
from webapp_operator.types import WebApp

CONFIG = Path(__file__).parents[2] / "config"
CRD = CONFIG / "crd" / "webapps.yaml"
VERSION = WebApp.crd()["spec"]["versions"][0]
SPEC = VERSION["schema"]["openAPIV3Schema"]["properties"]["spec"]
STATUS = VERSION["schema"]["openAPIV3Schema"]["properties"]["status"]


def test_the_crd_has_the_names_of_the_tutorial() -> None:
    """R0.1."""
    crd = WebApp.crd()

    assert crd["metadata"]["name"] == "webapps.example.com"
    assert (crd["spec"]["group"], crd["spec"]["scope"]) == ("example.com", "Namespaced")
    assert crd["spec"]["names"] == {
        "kind": "WebApp",
        "plural": "webapps",
        "singular": "webapp",
        "shortNames": ["wa"],
    }
    assert (VERSION["name"], VERSION["served"], VERSION["storage"]) == ("v1", True, True)


def test_the_spec_requires_an_image_and_defaults_to_one_replica() -> None:
    """R0.2, D6."""
    assert SPEC["required"] == ["image"]
    assert SPEC["properties"]["image"]["type"] == "string"
    assert SPEC["properties"]["replicas"] == {
        "description": "Desired number of pods.",
        "type": "integer",
        "format": "int32",
        "default": 1,
        "minimum": 0,
    }


def test_every_field_is_described() -> None:
    """R0.2."""

    def undescribed(schema: dict[str, Any], path: str) -> list[str]:
        found = []
        for name, child in schema.get("properties", {}).items():
            found += [] if child.get("description") else [f"{path}.{name}"]
            found += undescribed(child, f"{path}.{name}")
            found += undescribed(child.get("items", {}), f"{path}.{name}[]")
        return found

    assert undescribed(SPEC, "spec") + undescribed(STATUS, "status") == []


def test_the_status_is_a_subresource_with_camel_case_fields() -> None:
    """R0.3, R0.4, R0.25."""
    assert VERSION["subresources"]["status"] == {}
    assert STATUS["properties"]["availableReplicas"]["format"] == "int32"
    assert STATUS["properties"]["ready"]["type"] == "boolean"
    assert STATUS["properties"]["phase"]["enum"] == ["Pending", "Provisioning", "Ready", "Failed"]
    assert STATUS["properties"]["conditions"]["x-kubernetes-list-map-keys"] == ["type"]


def test_kubectl_scale_and_autoscalers_find_their_fields() -> None:
    """D5."""
    assert VERSION["subresources"]["scale"] == {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }


def test_kubectl_get_shows_what_matters() -> None:
    """R0.6, R0.25."""
    columns = [(column["name"], column["type"]) for column in VERSION["additionalPrinterColumns"]]

    assert columns == [
        ("Image", "string"),
        ("Replicas", "integer"),
        ("Available", "integer"),
        ("Ready", "boolean"),
        ("Phase", "string"),
        ("Age", "date"),
    ]


def test_the_manifest_in_config_is_the_one_of_the_class() -> None:
    """R0.5. After a wanted change: `webapp-operator crd > config/crd/webapps.yaml`."""
    assert CRD.read_text(encoding="utf-8") == WebApp.crd_yaml()


@pytest.mark.e2e
def test_the_real_server_accepts_the_crd(tmp_path: Path) -> None:
    """Needs `kubectl` and a cluster in $KUBECONFIG; a dry run, so nothing is installed."""
    done = subprocess.run(
        ["kubectl", "apply", "--server-side", "--validate=strict", "--dry-run=server", "-f", str(CRD)],
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(tmp_path)},
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_the_samples_are_valid() -> None:
    """R0.6: name hello, namespace default, image nginx:1.27, replicas 3."""
    hello = yaml.safe_load((CONFIG / "samples" / "hello.yaml").read_text(encoding="utf-8"))
    full = yaml.safe_load((CONFIG / "samples" / "webapp-full.yaml").read_text(encoding="utf-8"))

    assert hello == {
        "apiVersion": "example.com/v1",
        "kind": "WebApp",
        "metadata": {"name": "hello", "namespace": "default"},
        "spec": {"image": "nginx:1.27", "replicas": 3},
    }
    for sample in (hello, full):
        assert by_schema(sample["spec"])
        assert by_model(sample["spec"])
    assert set(full["spec"]) == set(SPEC["properties"])


def test_objects_of_a_smaller_crd_decode_too() -> None:
    """An older CRD has a status of three fields and prunes the rest."""
    seen = WebApp.model_validate_json(
        """{"apiVersion": "example.com/v1", "kind": "WebApp",
            "metadata": {"name": "hello", "namespace": "default", "uid": "u", "resourceVersion": "7",
                         "generation": 2, "labels": null, "managedFields": [{"fieldsV1": {"f:spec": {}}}]},
            "spec": {"image": "nginx:1.27", "replicas": 3, "novel": {"deep": 1}},
            "status": {"availableReplicas": 3, "ready": true, "observedGeneration": 2}}"""
    )

    assert (seen.spec.image, seen.spec.replicas, seen.spec.port) == ("nginx:1.27", 3, None)
    assert seen.status is not None
    assert (seen.status.ready, seen.status.available_replicas, seen.status.conditions) == (True, 3, ())
    assert seen.status.phase is None


@pytest.mark.parametrize("status", ["null", "{}"])
def test_an_empty_status_decodes(status: str) -> None:
    seen = WebApp.model_validate_json(
        f'{{"metadata": {{"name": "a"}}, "spec": {{"image": "x"}}, "status": {status}}}'
    )

    assert seen.spec.replicas == 1
    assert seen.status is None or seen.status.available_replicas == 0


def as_json_schema(node: Any) -> Any:
    """A structural schema as the draft 4 JSON Schema that means the same."""
    if isinstance(node, list):
        return [as_json_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    out = {key: as_json_schema(value) for key, value in node.items() if key not in ("default", "nullable")}
    if node.get("format") == "int32":
        out = {"minimum": -(2**31), "maximum": 2**31 - 1, **out}
    return {"anyOf": [{"type": "null"}, out]} if node.get("nullable") else out


CHECKER = jsonschema.Draft4Validator(as_json_schema(SPEC))


def by_schema(spec: dict[str, Any]) -> bool:
    """Whether the schema accepts it."""
    return bool(CHECKER.is_valid(spec))


def by_model(spec: dict[str, Any]) -> bool:
    """Whether the class accepts it, types taken strictly."""
    try:
        WebApp.__pydantic_validator__.validate_json(json.dumps({"spec": spec}), strict=True)  # type: ignore[attr-defined]
    except ValidationError:
        return False
    return True


TEXT = st.sampled_from(["", "x", "nginx:1.27", "a b", "/", "/ready", "nope", "500m", "1Gi", "1.5", "ü"])
SCALAR = TEXT | st.sampled_from([-1, 0, 1, 80, 65535, 65536, 2**31 - 1, 2**31, 1.5]) | st.booleans()
KEYS = st.sampled_from(
    ["name", "value", "valueFrom", "prefix", "configMapRef", "secretRef", "requests", "limits", "cpu"]
)
VALUE = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
)
REFERENCE = st.fixed_dictionaries({"name": TEXT}, optional={"optional": SCALAR | st.none()})
LIKELY = st.one_of(
    st.lists(
        st.fixed_dictionaries(
            {"name": TEXT}, optional={"value": SCALAR | st.none(), "valueFrom": st.dictionaries(TEXT, SCALAR)}
        ),
        max_size=2,
    ),
    st.lists(
        st.fixed_dictionaries(
            {}, optional={"prefix": TEXT, "configMapRef": REFERENCE, "secretRef": REFERENCE}
        ),
        max_size=2,
    ),
    st.fixed_dictionaries(
        {}, optional={"requests": st.dictionaries(TEXT, SCALAR), "limits": st.dictionaries(TEXT, SCALAR)}
    ),
)
NULLABLE = sorted(name for name, schema in SPEC["properties"].items() if schema.get("nullable"))


@settings(max_examples=120)
@given(st.data())
def test_schema_and_class_accept_and_refuse_the_same(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(SPEC["properties"])))
    value = data.draw(VALUE | LIKELY | st.none() if name in NULLABLE else VALUE | LIKELY)
    spec = {"image": "x", name: value}

    assert by_model(spec) == by_schema(spec)


def test_a_cached_webapp_and_its_deployment_cost_less_than_three_kilobytes() -> None:
    app = {
        "metadata": {
            "namespace": "default",
            "resourceVersion": "123456",
            "generation": 1,
            "creationTimestamp": "2026-08-01T00:00:00Z",
            "finalizers": ["webapp.example.com/cleanup"],
        },
        "spec": {"image": "nginx:1.27", "replicas": 3},
        "status": {
            "observedGeneration": 1,
            "phase": "Ready",
            "ready": True,
            "replicas": 3,
            "availableReplicas": 3,
            "conditions": [
                {
                    "type": kind,
                    "status": "True",
                    "reason": "DeploymentAvailable",
                    "message": "all 3 pods are available",
                    "observedGeneration": 1,
                    "lastTransitionTime": "2026-08-01T00:00:00Z",
                }
                for kind in ("Ready", "Progressing", "Degraded")
            ],
        },
    }
    deployment = {
        "metadata": {**app["metadata"], "annotations": {"deployment.kubernetes.io/revision": "1"}},
        "spec": {
            "replicas": 3,
            "template": {"spec": {"containers": [{"name": "app", "image": "nginx:1.27"}]}},
        },
        "status": {"observedGeneration": 1, "replicas": 3, "availableReplicas": 3, "updatedReplicas": 3},
    }
    pairs = []
    for number in range(300):
        app["metadata"] |= {"name": f"hello-{number}", "uid": f"{number:036}"}
        deployment["metadata"] |= {
            "name": f"hello-{number}",
            "uid": f"9{number:035}",
            "labels": {"webapp.example.com/name": f"hello-{number}", "app.kubernetes.io/name": "webapp"},
            "ownerReferences": [
                {
                    "apiVersion": "example.com/v1",
                    "kind": "WebApp",
                    "name": f"hello-{number}",
                    "uid": f"{number:036}",
                }
            ],
        }
        pairs.append((json.dumps(app), json.dumps(deployment)))
    kept: list[object] = [
        WebApp.model_validate_json(pairs[0][0]),
        Deployment.model_validate_json(pairs[0][1]),
    ]
    gc.collect()
    tracemalloc.start()
    try:
        for first, second in pairs:
            kept += [WebApp.model_validate_json(first), Deployment.model_validate_json(second)]
        gc.collect()
        each = tracemalloc.get_traced_memory()[0] / len(pairs)
    finally:
        tracemalloc.stop()

    assert len(kept) == 602
    assert each < 3072, each
