"""An hour of the whole WebApp operator: two replicas with election, workers, Events, against the sandbox.

Promises:

- within `settle_bound` after users and faults have stopped, each WebApp's Deployment and Service are as its
  spec says, its status tells the truth about them, what was deleted is gone, and no child is without its
  owner;
- then nothing is written for ten minutes, through resyncs and a restart of the operator;
- what belongs to somebody else is never touched, not even by a forced apply (D2);
- in no minute one object costs more than `WRITES_A_MINUTE` writes;
- a replica that is asked to stop does so in time, and no thread dies.

See `webappusers` for what users do and what goes wrong.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import Any

from kubeloop.cache.core import READ_TIMEOUT
from kubeloop.client import Client
from kubeloop.clock import StopEvent
from kubeloop.controller.result import RESYNC
from kubeloop.controller.worker import RESYNC_JITTER
from kubeloop.leader import ElectionSettings, LeaseLock
from kubeloop.manager import Manager, WriteGate
from kubeloop.manager.telemetry import Telemetry
from kubeloop.observe.events import EventRecorder
from kubeloop.sandbox import DeploymentOptions, Sandbox
from webapp_operator.reconcile import webapp_controller
from webapp_operator.types import WebApp

from .actors import Process, ProcessClock
from .harness import Result, Worst, source, world
from .network import Link, Network, SimulatedTransport
from .simulation import Simulation
from .webappusers import DEPLOYMENTS, SERVICES, WEBAPPS, Troubles, Users

REPLICAS = 2
WORKERS = 3
AGENT = "operator"
WRITES_A_MINUTE = 120
"""The dozen tries that the backoff makes in the first minute, each of four requests, and as many again to
say so in the status; and the burst of repairs."""
QUIET = 600.0
"""Seconds in which nothing may be written once all is well: two resyncs."""


def settle_bound() -> float:
    """Seconds: a watch that fell silent at the last moment, then a resync, which puts right whatever was
    refused for good."""
    return READ_TIMEOUT + RESYNC.total_seconds() * (1 + RESYNC_JITTER) + 60.0


class Replica:
    """One replica of the operator: a process that is started anew whenever it has ended."""

    def __init__(self, day: Day, number: int) -> None:
        self.day = day
        self.number = number
        self.rng = source(day.seed, f"replica-{number}")
        self.link = Link(source(day.seed, f"link-{number}"))
        self.lives = 0
        self.begin()

    def begin(self) -> None:
        """A new process."""
        world = self.day.world
        self.lives += 1
        self.name = f"{AGENT}-{self.number}-{self.lives}"
        self.process = Process(self.name)
        self.clock = ProcessClock(world, self.process, offset=self.rng.uniform(0, 1e6))
        self.stop = StopEvent(self.clock)
        self.lost: list[str] = []
        telemetry = Telemetry(lease="soak", process=False)
        gate = WriteGate(elected_only=True, refusals=telemetry.refusals)
        client, event_client = self._client(gate), self._client(gate)
        events = EventRecorder(event_client, "example.com/webapp-operator", self.name, clock=self.clock)
        self.manager = Manager(client, workers=WORKERS, clock=self.clock, telemetry=telemetry, events=events)
        self.manager.add(webapp_controller())
        lock = LeaseLock(self._transport(), "default", "webapp-operator", clock=self.clock, agent=self.name)
        self.manager.elect(lock, ElectionSettings(self.name), gate, self._on_lost)
        world.spawn("main", self._run, self.process)

    def _transport(self) -> SimulatedTransport:
        return SimulatedTransport(self.day.network, self.process, self.link, self.day.sandbox.transport())

    def _client(self, gate: WriteGate) -> Client:
        return Client(
            self._transport(), clock=self.clock, stop=self.stop, user_agent=self.name, fence=gate.check
        )

    def _on_lost(self, why: str) -> None:
        self.day.world.history.note("lost", f"{self.name}: {why}")
        self.day.world.kill(self.process)

    def _run(self) -> None:
        before = self.day.disturbances
        clean = self.manager.run(self.stop)
        self.day.world.history.note(
            "stop", f"{self.name} has stopped, {'cleanly' if clean else 'not in time'}"
        )
        assert clean or self.day.disturbances > before, f"{self.name} did not stop in time"

    @property
    def leads(self) -> bool:
        """Whether it may write."""
        elector = self.manager.elector
        assert elector is not None
        return not self.process.killed and elector.fence.until > self.clock.steady


class Day:
    """The cluster, the operator, and what happens to them."""

    def __init__(self, world: Simulation, seed: int, worst: Worst) -> None:
        self.world = world
        self.seed = seed
        self.worst = worst
        self.rng = source(seed, "day")
        options = DeploymentOptions(ready_after=self.rng.choice((0.2, 5.0, 20.0)))
        history = self.rng.choice((100, 1000, 10_000))
        self.sandbox = Sandbox(clock=world, seed=seed, deployments=options, history=history)
        self.sandbox.start()
        self.sandbox.apply(WebApp.crd())
        self.network = Network(world)
        self.disturbances = 0
        self.replicas: list[Replica] = []
        self.replicas += [Replica(self, number) for number in range(REPLICAS)]
        self.users = Users(world, self.sandbox)
        self.troubles = Troubles(self)
        self._judged = 0
        self._written: dict[tuple[str, str, str], deque[float]] = {}
        world.spawn("restarts", self._restarts)
        world.spawn("witness", self._witness)

    def leader(self) -> Replica | None:
        """Who may write."""
        return next((replica for replica in self.replicas if replica.leads), None)

    def _restarts(self) -> None:
        while True:
            self.world.sleep(1.0)
            for replica in self.replicas:
                if not self.world.alive(replica.process):
                    replica.begin()

    def _witness(self) -> None:
        while True:
            self.world.sleep(20.0)
            self.judge_writes()
            if not self.sandbox.api.stopped:
                self.judge_foreign()

    def writes(self, since: int = 0) -> list[Any]:
        """What the operator has written, or tried to, beside its Lease."""
        found = self.sandbox.log.writes(since=since, user_agent=AGENT)
        return [entry for entry in found if entry.resource != "leases"]

    def judge_writes(self) -> None:
        """No object may cost too much."""
        mark = self.sandbox.log.mark()
        for entry in self.writes(self._judged):
            if entry.resource == "events":
                continue
            self.world.history.note("write", str(entry))
            key = (entry.resource, entry.namespace, entry.name)
            times = self._written.setdefault(key, deque())
            times.append(self.world.time)
            while times[0] <= self.world.time - 60:
                times.popleft()
            self.worst.keep("writes a minute", len(times), WRITES_A_MINUTE, f"writes of {key} in a minute")
        self._judged = mark

    def judge_foreign(self) -> None:
        """Nobody else's object bears a trace of the operator."""
        for resource in (DEPLOYMENTS, SERVICES):
            for obj in self.sandbox.list(resource):
                if not obj["metadata"].get("labels", {}).get("foreign"):
                    continue
                managers = {each.get("manager") for each in obj["metadata"].get("managedFields", ())}
                assert "webapp-operator" not in managers, f"somebody else's object was written to: {obj}"

    # The end

    def problems(self) -> list[str]:
        """What is not as it should be."""
        found: list[str] = []
        apps = {_key(obj): obj for obj in self.sandbox.list(WEBAPPS)}
        deployments = {_key(obj): obj for obj in self.sandbox.list(DEPLOYMENTS)}
        services = {_key(obj): obj for obj in self.sandbox.list(SERVICES)}
        for key, app in apps.items():
            found += [f"{key}: {what}" for what in _problems(app, deployments.get(key), services.get(key))]
        uids = {app["metadata"]["uid"] for app in apps.values()}
        for key, child in [*deployments.items(), *services.items()]:
            for owner in child["metadata"].get("ownerReferences", ()):
                if owner["uid"] not in uids:
                    found.append(f"{child['kind']} {key} has outlived its owner")
        return found

    def settle(self, what: str) -> None:
        """All ends: soon all is well, and nothing is written any more."""
        self.troubles.end()
        self.world.history.note("fault", f"calm: {what}")
        began = self.world.time
        while problems := self.problems():
            self.world.sleep(1.0)
            passed = self.world.time - began
            assert passed <= settle_bound(), f"{what}, {passed:.0f} s later:\n" + "\n".join(problems)
        self.worst.keep("settled after", self.world.time - began, settle_bound(), "settled after")
        # The status that says so is the last write but for Events, which wait for their turn.
        self.world.sleep(60.0)

    def silent(self, what: str) -> None:
        """Nothing may be written for ten minutes."""
        mark = self.sandbox.log.mark()
        self.world.sleep(QUIET)
        writes, told = [], 0
        for entry in self.writes(mark):
            if entry.resource == "events":
                told += 1
            else:
                writes.append(str(entry))
        assert not writes, f"written for nothing, {what}:\n" + "\n".join(writes)
        # What cannot be put right is told of once more, as a series, in a long while.
        failed = [
            app for app in self.sandbox.list(WEBAPPS) if (app.get("status") or {}).get("phase") == "Failed"
        ]
        assert told <= 2 * len(failed), f"{told} Events about {len(failed)} WebApps in trouble, {what}"
        assert not (problems := self.problems()), "\n".join(problems)

    def run(self, minutes: float) -> None:
        """The hour, and what must hold at its end."""
        for number in range(2):
            rng = source(self.seed, f"user-{number}")
            self.world.spawn(f"user-{number}", partial(self.users.live, rng))
            rng = source(self.seed, f"trouble-{number}")
            self.world.spawn(f"trouble-{number}", partial(self.troubles.live, rng))
        while self.world.time < minutes * 60:
            self.world.sleep(min(600 + self.rng.random() * 900, minutes * 60 - self.world.time))
            self.users.pause = self.troubles.pause = True
            self.settle("faults and users have stopped")
            self.users.pause = self.troubles.pause = False
        self.users.pause = self.troubles.pause = True
        self.settle("at the end")
        self.silent("all was well")
        leader = self.leader()
        assert leader is not None, "nobody leads"
        leader.stop.set()
        self.world.sleep(30.0)
        self.silent("the operator was restarted")


def _key(obj: Mapping[str, Any]) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def _ours(app: Mapping[str, Any], child: Mapping[str, Any] | None) -> bool:
    owners = [] if child is None else child["metadata"].get("ownerReferences", [])
    return any(owner["uid"] == app["metadata"]["uid"] for owner in owners)


def _problems(
    app: Mapping[str, Any], deployment: dict[str, Any] | None, service: dict[str, Any] | None
) -> list[str]:
    """What is wrong about one WebApp and its children."""
    if "deletionTimestamp" in app["metadata"]:
        return ["is still there, though deleted"]
    spec, status = app["spec"], app.get("status") or {}
    found: list[str] = []
    if status.get("observedGeneration") != app["metadata"]["generation"]:
        found.append(f"status is about generation {status.get('observedGeneration')}")
    reasons = {each["type"]: (each["status"], each["reason"]) for each in status.get("conditions", ())}
    if "readinessPath" in spec and "port" not in spec:
        wanted = ("False", "InvalidSpec")
        return found if reasons.get("Ready") == wanted else [*found, f"Ready is {reasons.get('Ready')}"]
    foreign = [child for child in (deployment, service) if child is not None and not _ours(app, child)]
    if deployment in foreign or (service in foreign and "port" in spec):
        wanted = ("False", "Conflict")
        return found if reasons.get("Ready") == wanted else [*found, f"Ready is {reasons.get('Ready')}"]
    if deployment is None:
        return [*found, "has no Deployment"]
    found += _differences(spec, deployment)
    if ("port" in spec) != (service is not None and service not in foreign):
        found.append(f"Service is {'there' if service else 'missing'}")
    elif "port" in spec and service is not None and service["spec"]["ports"][0]["port"] != spec["port"]:
        found.append(f"Service has the port {service['spec']['ports'][0]['port']}")
    return found + _untruths(app, deployment)


def _differences(spec: Mapping[str, Any], deployment: Mapping[str, Any]) -> list[str]:
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    pairs = {
        "replicas": (spec.get("replicas", 1), deployment["spec"]["replicas"]),
        "image": (spec["image"], container["image"]),
        "env": (
            {each["name"]: each.get("value") for each in spec.get("env", ())},
            {each["name"]: each.get("value") for each in container.get("env", ())},
        ),
        "ports": (
            [spec["port"]] if "port" in spec else [],
            [each["containerPort"] for each in container.get("ports", ())],
        ),
        "containers": (1, len(deployment["spec"]["template"]["spec"]["containers"])),
    }
    return [f"{what} is {is_} instead of {wanted}" for what, (wanted, is_) in pairs.items() if wanted != is_]


def _untruths(app: Mapping[str, Any], deployment: Mapping[str, Any]) -> list[str]:
    """Where the status says something else than the Deployment shows."""
    wanted, pods, shown = (
        deployment["spec"]["replicas"],
        deployment.get("status") or {},
        app.get("status") or {},
    )
    counts = [pods.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")]
    seen = pods.get("observedGeneration") == deployment["metadata"]["generation"]
    ready = seen and counts == [wanted] * 3
    conditions = {each["type"]: each["status"] for each in shown.get("conditions", ())}
    pairs = {
        "ready": (ready, shown.get("ready", False)),
        "condition Ready": (str(ready), conditions.get("Ready")),
        "condition Degraded": ("False", "False" if not ready else conditions.get("Degraded")),
        "phase": (True, (shown.get("phase") == "Ready") == ready),
        "replicas": (counts[0], shown.get("replicas", 0)),
        "available": (counts[2], shown.get("availableReplicas", 0)),
    }
    return [
        f"status: {what} is {is_} instead of {should}"
        for what, (should, is_) in pairs.items()
        if should != is_
    ]


def soak(seed: int, minutes: float) -> Result:
    """The operator for an hour."""
    worst = Worst()
    with world("webapps", seed) as it:
        day = Day(it, seed, worst)
        day.run(minutes)
        day.sandbox.check()
        counts = dict(it.history.counts)
        counts["lives"] = sum(replica.lives for replica in day.replicas)
        for replica in day.replicas:
            it.kill(replica.process)
        day.sandbox.stop()
    return Result(it.history.digest, counts, worst.values)
