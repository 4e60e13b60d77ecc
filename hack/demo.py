"""The story of one WebApp, played live: the embedded API server, the operator as a process of its own, HTTP
between them. A step counts only once its effect was *observed through the API*; the exit code is 0 only if
every step was.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import yaml

from kubeloop.cache import Event, Informer
from kubeloop.client import Client, MergePatch, NotFound, connect, load_config
from kubeloop.model import Deployment, Resource
from kubeloop.sandbox import Sandbox
from webapp_operator.types import WebApp

ROOT = Path(__file__).resolve().parent.parent
STEP_TIMEOUT = 20.0
"""Seconds that one step may take; all of them together take a few."""
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)
NAMESPACE, NAME = "default", "hello"
KEY = f"{NAMESPACE}/{NAME}"


class StepFailed(Exception):
    """A step's effect was not observed in time."""


class Timeline:
    """Prints each step when it begins (on a terminal) and when its effect was seen."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._began = time.monotonic()
        self.steps = 0

    def title(self, text: str) -> None:
        """A heading, or a line of explanation."""
        self._print(self._style("1", text))

    def note(self, text: str = "") -> None:
        """A line that is no step."""
        self._print(self._style("2", text))

    def action(self, text: str) -> None:
        """What somebody does next."""
        self._print(f"           {self._style('33', '▶ ' + text)}")

    @contextmanager
    def step(self, doing: str) -> Iterator[Callable[[str], None]]:
        """Time what happens inside; it says what was seen by calling the value given."""
        seen: list[str] = []
        if self._live:
            self._stream.write(self._style("2", f"{self._clock()}   … {doing}"))
            self._stream.flush()
        started = time.monotonic()
        try:
            yield seen.append
        except BaseException:
            self._erase()
            self._print(f"{self._clock()}   {self._style('31', '✗')} {doing}")
            raise
        took = (time.monotonic() - started) * 1000
        self.steps += 1
        self._erase()
        text = seen[-1] if seen else doing
        self._print(f"{self._clock()}   {self._style('32', '✓')} {text:<74} {took:7.0f} ms")

    def _clock(self) -> str:
        return f"{time.monotonic() - self._began:6.2f} s"

    def _style(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._live and text else text

    def _erase(self) -> None:
        if self._live:
            self._stream.write("\r\x1b[2K")

    def _print(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class Watcher:
    """Sees WebApps and Deployments the way any client does: over the API, by watching."""

    def __init__(self, client: Client) -> None:
        self._changed = threading.Condition()
        self.apps = Informer(client, WebApp)
        self.deployments = Informer(client, Deployment)
        for informer in (self.apps, self.deployments):
            informer.add_handler(self._on_event)
            informer.start()

    def _on_event(self, _event: Event[Any], _initial: bool) -> None:
        with self._changed:
            self._changed.notify_all()

    def app(self) -> WebApp | None:
        """The WebApp of the story, as last seen."""
        return self.apps.store.get(KEY)

    def deployment(self) -> Deployment | None:
        """Its Deployment, as last seen."""
        return self.deployments.store.get(KEY)

    def until(self, seen: Callable[[], bool]) -> None:
        """Wait until `seen` holds; it is asked again at each event. Raises StepFailed after STEP_TIMEOUT."""
        deadline = time.monotonic() + STEP_TIMEOUT
        with self._changed:
            while not seen():
                left = deadline - time.monotonic()
                if left <= 0:
                    last = [obj.to_wire() if obj else None for obj in (self.app(), self.deployment())]
                    raise StepFailed(f"not seen within {STEP_TIMEOUT:.0f} s; last seen: {last}")
                self._changed.wait(left)

    def stop(self) -> None:
        """End the watches."""
        for informer in (self.apps, self.deployments):
            informer.stop()
        for informer in (self.apps, self.deployments):
            informer.join(5)


def play(sandbox: Sandbox, folder: Path, line: Timeline) -> None:
    """All acts, in order. Raises StepFailed at the first effect that does not show."""
    kubeconfig = folder / "kubeconfig"
    sandbox.kubeconfig(kubeconfig)
    client = connect(load_config(str(kubeconfig)), pool_size=8)
    install_crd(client, line)
    log = folder / "operator.log"
    with log.open("wb") as output:
        command = [sys.executable, "-m", "operator", "--kubeconfig", str(kubeconfig)]
        with line.step("operator starting") as seen:
            operator = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
            wait_for_watches(sandbox, operator, log)
            seen("operator started and watching (python -m operator)")
        watcher = Watcher(client)
        try:
            create(client, watcher, line)
            scale_to_zero(client, watcher, line)
            delete_child(client, watcher, line)
            change_spec(client, watcher, line)
            delete(client, watcher, line)
            stop(operator, line)
        except StepFailed:
            line.note(f"\nthe operator's last words:\n{tail(log)}")
            raise
        finally:
            watcher.stop()
            if operator.poll() is None:
                operator.kill()
                operator.wait()
    client.close()


def wait_for_watches(sandbox: Sandbox, operator: subprocess.Popen[bytes], log: Path) -> None:
    """Until the API server's log shows the operator's watches: what comes now is its work, not its start."""
    deadline, pause = time.monotonic() + STEP_TIMEOUT, threading.Event()
    while True:
        watches = sandbox.log.entries(verb="watch", user_agent="webapp-operator")
        if {"webapps", "deployments", "services"} <= {entry.resource for entry in watches}:
            return
        if operator.poll() is not None or time.monotonic() > deadline:
            raise StepFailed(f"the operator does not watch; its last words:\n{tail(log)}")
        pause.wait(0.02)


def install_crd(client: Client, line: Timeline) -> None:
    """The CRD, generated from the class, until the server has established it."""
    with line.step("installing the CRD") as seen:
        client.create(CRDS, WebApp.crd())
        deadline = time.monotonic() + STEP_TIMEOUT
        name = WebApp.crd_name()
        for event in client.watch(
            CRDS, field_selector=f"metadata.name={name}", timeout_seconds=int(STEP_TIMEOUT)
        ):
            conditions = event_object(event).get("status", {}).get("conditions") or []
            if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
                seen(f"CRD {name} established, generated from the pydantic class")
                return
            if time.monotonic() > deadline:
                break
        raise StepFailed("the CRD was not established")


def create(client: Client, watcher: Watcher, line: Timeline) -> None:
    """Act one: from YAML to a ready WebApp."""
    sample = yaml.safe_load((ROOT / "config/samples/hello.yaml").read_text())
    line.action("kubectl apply -f config/samples/hello.yaml")
    client.create(WebApp.resource, {**sample, "metadata": {**sample["metadata"], "namespace": NAMESPACE}})
    with line.step("waiting for its Deployment") as seen:
        watcher.until(lambda: watcher.deployment() is not None)
        seen(f"Deployment {KEY} created, owned by the WebApp")
    with line.step("waiting for its status") as seen:
        watcher.until(lambda: (app := watcher.app()) is not None and app.status is not None)
        app = watcher.app()
        seen(f"status filled: phase {app.status.phase if app and app.status else '?'}, finalizer in place")
    with line.step("waiting for its pods") as seen:
        watcher.until(lambda: is_ready(watcher, replicas=3))
        seen("Ready: 3 of 3 replicas available")


def scale_to_zero(client: Client, watcher: Watcher, line: Timeline) -> None:
    """Act two: somebody scales the child."""
    line.action(f"kubectl scale deployment/{NAME} --replicas=0        (somebody meddles)")
    generation = live(watcher).generation
    client.patch(Deployment.resource, NAME, NAMESPACE, MergePatch({"spec": {"replicas": 0}}))
    with line.step("waiting for the repair") as seen:
        watcher.until(lambda: live(watcher).generation >= generation + 2 and replicas(watcher) == 3)
        seen("healed: the Deployment wants 3 replicas again")
    with line.step("waiting for its pods") as seen:
        watcher.until(lambda: is_ready(watcher, replicas=3))
        seen("Ready again")


def delete_child(client: Client, watcher: Watcher, line: Timeline) -> None:
    """Act three: somebody deletes the child."""
    line.action(f"kubectl delete deployment/{NAME}                    (somebody is clumsy)")
    uid = live(watcher).uid
    client.delete(Deployment.resource, NAME, NAMESPACE, propagation="Background")
    with line.step("waiting for a new one") as seen:
        watcher.until(lambda: (d := watcher.deployment()) is not None and d.uid != uid)
        seen("healed: a new Deployment, with another uid")
    with line.step("waiting for its pods") as seen:
        watcher.until(lambda: is_ready(watcher, replicas=3))
        seen("Ready again")


def change_spec(client: Client, watcher: Watcher, line: Timeline) -> None:
    """Act four: the user wants something else."""
    line.action('kubectl patch webapp/hello -p \'{"spec":{"image":"nginx:1.28","replicas":5}}\'')
    patch = MergePatch({"spec": {"image": "nginx:1.28", "replicas": 5}})
    client.patch(WebApp.resource, NAME, NAMESPACE, patch)
    with line.step("waiting for the Deployment to follow") as seen:
        watcher.until(lambda: replicas(watcher) == 5 and image(watcher) == "nginx:1.28")
        seen("the Deployment follows: nginx:1.28, 5 replicas")
    with line.step("waiting for the roll-out") as seen:
        watcher.until(lambda: is_ready(watcher, replicas=5))
        seen("rolled out: 5 of 5 replicas run the new image")


def delete(client: Client, watcher: Watcher, line: Timeline) -> None:
    """Act five: the end."""
    line.action(f"kubectl delete webapp/{NAME}")
    client.delete(WebApp.resource, NAME, NAMESPACE)
    with line.step("waiting for Cleanup") as seen:
        watcher.until(lambda: watcher.app() is None)
        seen("Cleanup ran, the finalizer is off, the WebApp is gone")
    with line.step("waiting for the garbage collector") as seen:
        watcher.until(lambda: watcher.deployment() is None)
        seen("its Deployment went with it")
    try:
        client.get(Deployment.resource, NAME, NAMESPACE)
    except NotFound:
        return
    raise StepFailed("the Deployment is still there")


def stop(operator: subprocess.Popen[bytes], line: Timeline) -> None:
    """The operator stops when asked to."""
    line.action("kill -TERM <operator>")
    with line.step("waiting for the operator to stop") as seen:
        operator.send_signal(signal.SIGTERM)
        try:
            code = operator.wait(STEP_TIMEOUT)
        except subprocess.TimeoutExpired:
            raise StepFailed("the operator did not stop") from None
        if code != 0:
            raise StepFailed(f"the operator ended with exit code {code}")
        seen("the operator stopped cleanly, exit code 0")


def is_ready(watcher: Watcher, *, replicas: int) -> bool:
    """Whether the WebApp says that it is ready, about its current spec, and its Deployment bears it out."""
    app, deployment = watcher.app(), watcher.deployment()
    if app is None or app.status is None or deployment is None or deployment.status is None:
        return False
    return (
        app.status.ready
        and app.status.observed_generation == app.generation
        and app.status.available_replicas == replicas
        and deployment.status.observed_generation == deployment.generation
        and deployment.status.available_replicas == replicas
    )


def live(watcher: Watcher) -> Deployment:
    """The Deployment, which must be there."""
    deployment = watcher.deployment()
    if deployment is None:
        raise StepFailed("the Deployment is not there")
    return deployment


def replicas(watcher: Watcher) -> int | None:
    """How many replicas the Deployment wants."""
    deployment = watcher.deployment()
    return deployment.spec.get("replicas") if deployment is not None else None


def image(watcher: Watcher) -> str | None:
    """The image that the Deployment runs."""
    deployment = watcher.deployment()
    if deployment is None:
        return None
    containers = deployment.spec["template"]["spec"]["containers"]
    return str(containers[0]["image"])


def event_object(event: Any) -> dict[str, Any]:
    """The object of a watch event, however it comes."""
    decoded = yaml.safe_load(event) if isinstance(event, bytes) else event
    found: dict[str, Any] = decoded["object"]
    return found


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of a file."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def main() -> int:
    """Play it; 0 if every step was observed."""
    argparse.ArgumentParser(prog="make demo", description=__doc__).parse_args()
    line = Timeline(sys.stdout)
    line.title("From YAML to a healed Deployment: embedded API server, operator process, HTTP in between.\n")
    try:
        with tempfile.TemporaryDirectory(prefix="webapp-demo-") as folder:
            with line.step("API server starting") as seen:
                sandbox = Sandbox(http=True)
                sandbox.start()
                seen(f"API server ready at {sandbox.url}")
            try:
                play(sandbox, Path(folder), line)
            finally:
                sandbox.stop()
    except (StepFailed, OSError) as error:
        print(f"\nFAILED: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    line.title(f"\nAll {line.steps} steps were observed through the API.")
    line.note("Play on with kubectl and an operator of your own:  make sandbox")
    return 0


if __name__ == "__main__":
    sys.exit(main())
