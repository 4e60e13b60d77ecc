import json

import pytest

from kubeloop.sandbox import DeploymentOptions, Sandbox, User

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1"}}
HELLO = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: hello, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: hello}}
  template:
    metadata: {labels: {app: hello}}
    spec: {containers: [{name: web, image: nginx}]}
"""


# Two minutes of rollout take no time: whoever expects something moves the clock that stands still.
@pytest.mark.sandbox(deployments=DeploymentOptions(ready_after=120))
def test_a_rollout(sandbox: Sandbox) -> None:
    sandbox.apply_yaml(HELLO)
    sandbox.advance(60)
    sandbox.expect("deployment", "hello").to_have(status={"availableReplicas": None}, within=0)
    sandbox.expect("deployment", "hello").to_have_available(3, within=300)
    with pytest.raises(AssertionError, match="hello never had 4 available replicas within 30 s; last status"):
        sandbox.expect("deployment", "hello").to_have_available(4, within=30)


# The write is done, the answer is lost: what a client makes of that is worth a test.
def test_a_lost_answer(sandbox: Sandbox) -> None:
    client = sandbox.transport()
    fault = sandbox.faults.add(verb="create", resource="configmaps", lose_answer=True, count=1)
    body = json.dumps(SETTINGS).encode()
    with pytest.raises(ConnectionResetError):
        client.request("POST", CONFIG_MAPS, body=body)
    assert client.request("POST", CONFIG_MAPS, body=body).status == 409
    assert fault.fired == 1
    assert [entry.status for entry in sandbox.log.writes(resource="configmaps")] == [201, 409]


# A watch that was cut, and a server that came back with an older backup of its data.
def test_a_server_that_forgot(sandbox: Sandbox) -> None:
    client = sandbox.transport()
    backup = sandbox.backup()
    sandbox.create(SETTINGS)
    sandbox.faults.add(verb="watch", end_after=1)
    watch = client.stream("GET", f"{CONFIG_MAPS}?watch=1&resourceVersion=0")
    assert [json.loads(line)["type"] for line in watch.poll() or ()] == ["ADDED"]
    assert watch.poll() is None
    sandbox.restart(backup)
    assert sandbox.list("configmaps", "default") == []


# Rights come from Role objects: apply your own manifests, and see whether they are enough.
@pytest.mark.sandbox(rbac=True, tokens={"t": User("system:serviceaccount:default:robot")})
def test_rights(sandbox: Sandbox) -> None:
    answer = sandbox.transport("t").request("GET", CONFIG_MAPS)
    assert answer.status == 403
    assert "cannot list resource" in json.loads(answer.body)["message"]
