import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubeloop.sandbox import Sandbox

HERE = Path(__file__).parent
GREETING = {
    "apiVersion": "compat.example.com/v1",
    "kind": "Greeting",
    "metadata": {"name": "hello", "namespace": "default"},
    "spec": {"text": "good morning"},
}

# kopf runs as it does in production, as a process: the sandbox listens, on the machine's own clock. Starting
# it takes a second, or many on a busy machine.
pytestmark = pytest.mark.sandbox(http=True, clock=None)


@pytest.fixture
def operator(sandbox: Sandbox, tmp_path: Path) -> Iterator[None]:
    sandbox.apply_yaml((HERE.parent / "greetings.yaml").read_text())
    environment = {**os.environ, "KUBECONFIG": str(sandbox.kubeconfig(tmp_path / "kubeconfig"))}
    with subprocess.Popen(["kopf", "run", "-A", str(HERE / "greeter.py")], env=environment) as running:
        yield
        running.terminate()


@pytest.mark.usefixtures("operator")
def test_a_lost_config_map_comes_back(sandbox: Sandbox) -> None:
    sandbox.create(GREETING)
    sandbox.expect("greeting", "hello").to_have(status={"observedGeneration": 1}, within=90)
    sandbox.delete("configmaps", "hello", "default")
    sandbox.expect("configmap", "hello").to_have(data={"text": "good morning"}, within=90)


@pytest.mark.usefixtures("operator")
def test_a_server_that_is_overloaded_is_tried_again(sandbox: Sandbox) -> None:
    fault = sandbox.faults.add(verb="create", resource="configmaps", status=503, count=1)
    sandbox.create(GREETING)
    sandbox.expect("configmap", "hello").to_exist(within=90)
    assert fault.fired == 1
    assert sandbox.log.entries(verb="create", resource="configmaps", status=503)
