"""What users do to WebApps and their children, and what goes wrong around the operator."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kubeloop.cache.core import READ_TIMEOUT
from kubeloop.sandbox import Sandbox, SandboxError

from .network import LOST
from .simulation import Simulation

if TYPE_CHECKING:
    from .webapps import Day, Replica

WEBAPPS, DEPLOYMENTS, SERVICES = "webapps.example.com", "deployments.apps", "services"
NAMES = 8
NAMESPACE = "default"
SHORT_LIVED = "short-lived"
LABELS = {"app": "theirs"}
FAR = 200
"""Changes that a restored server must be behind: more than its controllers make until all have noticed."""


class Users:
    """People, and other programs, with kubectl."""

    def __init__(self, world: Simulation, sandbox: Sandbox) -> None:
        self._world = world
        self._sandbox = sandbox
        self.pause = False
        self.hold = False
        """As `pause`, while the server's data are going back in time."""

    def live(self, rng: random.Random) -> None:
        """Now and then one of them does something."""
        acts: list[Callable[[random.Random, str], None]] = [
            *[self.create] * 4,
            *[self.change] * 4,
            *[self.scale] * 2,
            *[self.delete] * 2,
            *[self.edit_deployment] * 3,
            self.delete_child,
            self.delete_child,
            self.take_name,
            self.free_name,
            self.free_name,
            self.touch_webapp,
            self.namespace,
        ]
        while True:
            self._world.sleep(rng.expovariate(1 / rng.choice((0.5, 20.0, 60.0))))
            if self.pause or self.hold:
                continue
            act, name = rng.choice(acts), f"w{rng.randrange(NAMES)}"
            self._world.history.note("user", f"{act.__name__} {name}")
            try:
                act(rng, name)
            except SandboxError as error:
                self._world.history.note("user", f"in vain: {error}")

    def spec(self, rng: random.Random) -> dict[str, Any]:
        """What somebody might wish for."""
        spec: dict[str, Any] = {"image": f"nginx:1.{rng.randrange(30)}"}
        if rng.random() < 0.7:
            spec["replicas"] = rng.randrange(5)
        if rng.random() < 0.4:
            spec["port"] = rng.choice((80, 8080, 9000))
        if rng.random() < 0.2:
            spec["readinessPath"] = "/healthz"  # wrong where there is no port
        if rng.random() < 0.3:
            spec["env"] = [{"name": name, "value": str(rng.randrange(3))} for name in ("A", "B")]
        if rng.random() < 0.3:
            # The server writes these in another way than they are sent.
            spec["resources"] = {"requests": {"cpu": "1000m", "memory": "1024Mi"}}
        return spec

    def create(self, rng: random.Random, name: str, namespace: str = NAMESPACE) -> None:
        metadata = {"name": name, "namespace": namespace}
        head = {"apiVersion": "example.com/v1", "kind": "WebApp", "metadata": metadata}
        self._sandbox.create({**head, "spec": self.spec(rng)})

    def change(self, rng: random.Random, name: str) -> None:
        absent = dict.fromkeys(("port", "readinessPath", "env", "resources", "replicas"))
        self._sandbox.patch(WEBAPPS, name, {"spec": {**absent, **self.spec(rng)}}, NAMESPACE)

    def scale(self, rng: random.Random, name: str) -> None:
        wanted = {"spec": {"replicas": rng.randrange(6)}}
        self._sandbox.patch(WEBAPPS, name, wanted, NAMESPACE, subresource="scale")

    def delete(self, rng: random.Random, name: str) -> None:
        how = rng.choice(("", "", "Background", "Foreground", "Orphan"))
        self._sandbox.delete(WEBAPPS, name, NAMESPACE, propagation=how)
        if how == "Orphan":
            # Theirs to clean up: an orphan is nobody's, and the name is taken as long as it is there.
            self._world.sleep(30)
            self._drop_orphans(name)

    def _drop_orphans(self, name: str) -> None:
        for resource in (DEPLOYMENTS, SERVICES):
            found = self._sandbox.get(resource, name, NAMESPACE)
            if found is not None and not found["metadata"].get("ownerReferences"):
                self._sandbox.delete(resource, name, NAMESPACE)

    def edit_deployment(self, rng: random.Random, name: str) -> None:
        patches: list[dict[str, Any]] = [
            {"spec": {"replicas": rng.randrange(6)}},
            {"metadata": {"labels": {"app.kubernetes.io/name": "other"}}},
            {"metadata": {"labels": {"team": str(rng.randrange(9))}}},
            {"metadata": {"annotations": {"kubeloop.dev/applied": None}}},
            {"metadata": {"annotations": {"note": str(rng.randrange(9))}}},
            {"spec": {"paused": rng.random() < 0.2}},
            {"spec": {"template": {"metadata": {"annotations": {"restarted": str(self._world.time)}}}}},
            {"spec": {"minReadySeconds": rng.randrange(5)}},
        ]
        self._sandbox.patch(DEPLOYMENTS, name, rng.choice(patches), NAMESPACE)

    def delete_child(self, rng: random.Random, name: str) -> None:
        how = rng.choice(("", "Background", "Foreground"))
        self._sandbox.delete(rng.choice((DEPLOYMENTS, SERVICES)), name, NAMESPACE, propagation=how)

    def take_name(self, rng: random.Random, name: str) -> None:
        """Something of theirs is there first, or comes in between."""
        metadata = {"name": name, "namespace": NAMESPACE, "labels": {"foreign": "yes"}}
        if rng.random() < 0.3:
            ports = {"ports": [{"port": 1}], "selector": LABELS}
            self._sandbox.create({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": ports})
            return
        template = {
            "metadata": {"labels": LABELS},
            "spec": {"containers": [{"name": "c", "image": "theirs"}]},
        }
        spec = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": template}
        self._sandbox.create(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
        )

    def free_name(self, _: random.Random, name: str) -> None:
        for resource in (DEPLOYMENTS, SERVICES):
            found = self._sandbox.get(resource, name, NAMESPACE)
            if found is not None and found["metadata"].get("labels", {}).get("foreign"):
                self._sandbox.delete(resource, name, NAMESPACE)

    def touch_webapp(self, rng: random.Random, name: str) -> None:
        patches: list[tuple[dict[str, Any], str]] = [
            ({"metadata": {"finalizers": None}}, ""),
            ({"metadata": {"labels": {"team": str(rng.randrange(9))}}}, ""),
            ({"status": {"phase": "Failed", "ready": False}}, "status"),
            ({"status": None}, "status"),
        ]
        patch, subresource = rng.choice(patches)
        self._sandbox.patch(WEBAPPS, name, patch, NAMESPACE, subresource=subresource)

    def namespace(self, rng: random.Random, name: str) -> None:
        """One comes and goes, with all that is in it."""
        if self._sandbox.get("namespaces", SHORT_LIVED) is None:
            self._sandbox.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHORT_LIVED}})
            self.create(rng, name, SHORT_LIVED)
        else:
            self._sandbox.delete("namespaces", SHORT_LIVED)


class Troubles:
    """What goes wrong between the operator and the server, and with both of them."""

    def __init__(self, day: Day) -> None:
        self._day = day
        self._world = day.world
        self._sandbox = day.sandbox
        self.pause = False

    def live(self, rng: random.Random) -> None:
        """One thing after the other; several of these run at once."""
        troubles: list[Callable[[random.Random], None]] = [
            *[self.request_misbehaves] * 5,
            *[self.watch_misbehaves] * 3,
            self.network_cut,
            self.network_slow,
            self.server_away,
            self.history_forgotten,
            self.data_restored,
            self.replica_killed,
            self.replica_crashes,
            self.replica_crashes,
            self.replica_stopped,
            self.replica_suspended,
        ]
        while True:
            self._world.sleep(rng.expovariate(1 / 15))
            if not self.pause:
                self._day.disturbances += 1
                rng.choice(troubles)(rng)

    def end(self) -> None:
        """All of them, but for a server that is away, which comes back by itself."""
        while self._sandbox.api.stopped:
            self._world.sleep(1.0)
        self._sandbox.faults.clear()
        self._sandbox.faults.wake()
        for replica in self._day.replicas:
            self._calm(replica)
            replica.process.suspended = False

    def _calm(self, replica: Replica) -> None:
        link = replica.link
        link.there, link.back, link.base = 0.0, 0.0, 0.004
        link.crash = lambda _method: False

    def _note(self, text: str) -> None:
        self._world.history.note("fault", text)

    def _rule(self, rng: random.Random, effect: dict[str, Any], seconds: float, **which: Any) -> None:
        likely = rng.choice((0.2, 0.5, 1.0))
        rule = self._sandbox.faults.add(user_agent="operator", probability=likely, **which, **effect)
        self._note(f"for {seconds:.0f} s, {likely}: {effect} {which}")
        self._world.sleep(seconds)
        rule.remove()

    def request_misbehaves(self, rng: random.Random) -> None:
        effects: list[dict[str, Any]] = [
            {"status": 409},
            {"status": 409},
            {"status": 429, "retry_after": rng.choice((1, 10))},
            {"status": rng.choice((500, 502, 503, 504))},
            {"status": rng.choice((400, 401, 403, 404, 422))},
            {"refuse": True},
            {"reset": True},
            {"silence": True},
            {"lose_answer": True},
            {"lose_answer": True},
            {"latency": rng.random() * 40},
            {"truncate": rng.randrange(2000)},
        ]
        verb = rng.choice((None, "patch", "patch", "create", "delete", "get"))
        resource = rng.choice((None, "webapps", "webapps/status", "deployments", "services", "leases"))
        self._rule(rng, rng.choice(effects), rng.random() * 40, verb=verb, resource=resource)

    def watch_misbehaves(self, rng: random.Random) -> None:
        events = rng.choice((0, 1, 3, 10))
        effects: list[dict[str, Any]] = [
            {"end_after": events},
            {"reset_after": events},
            {"silence_after": events},
            {"gone_after": events},
            {"drop_bookmarks": True},
            {"truncate": rng.randrange(5000)},
            {"status": rng.choice((403, 429, 500, 503))},
        ]
        resource = rng.choice((None, "webapps", "deployments", "services"))
        self._rule(rng, rng.choice(effects), rng.random() * 90, verb=("watch", "list"), resource=resource)

    def _victim(self, rng: random.Random) -> Replica:
        leader = self._day.leader()
        return leader if leader is not None and rng.random() < 0.7 else rng.choice(self._day.replicas)

    def network_cut(self, rng: random.Random) -> None:
        victim, seconds = self._victim(rng), rng.choice((3, 20, 90)) * rng.random()
        self._note(f"the network of {victim.name} is cut for {seconds:.0f} s")
        victim.link.there, victim.link.back = rng.choice((0.0, LOST)), LOST
        self._world.sleep(seconds)
        self._calm(victim)

    def network_slow(self, rng: random.Random) -> None:
        victim = self._victim(rng)
        victim.link.base = rng.choice((0.1, 1.0, 3.0))
        self._note(f"the network of {victim.name} is slow: {victim.link.base} s")
        self._world.sleep(rng.random() * 60)
        self._calm(victim)

    def server_away(self, rng: random.Random) -> None:
        if self._sandbox.api.stopped:
            return
        seconds = rng.choice((0.0, 3.0, 30.0)) * rng.random()
        self._note(f"the server is away for {seconds:.0f} s")
        self._sandbox.halt()
        self._world.sleep(seconds)
        self._sandbox.resume("keep")

    def history_forgotten(self, _: random.Random) -> None:
        self._note("history forgotten")
        self._sandbox.compact()

    def data_restored(self, rng: random.Random) -> None:
        """The server comes back as it was minutes ago. Users wait until that has been noticed."""
        backup, revision = self._sandbox.backup(), self._sandbox.backend.store.revision
        self._world.sleep(240 + 240 * rng.random())
        far = self._sandbox.backend.store.revision - revision > FAR
        if self.pause or self._day.users.hold or self._sandbox.api.stopped or not far:
            return
        self._day.users.hold = True
        self._note("the server comes back with a backup's data")
        self._sandbox.halt()
        self._world.sleep(rng.random() * 5)
        self._sandbox.resume(backup)
        self._world.sleep(READ_TIMEOUT + 60)
        self._day.users.hold = False

    def replica_killed(self, rng: random.Random) -> None:
        victim = self._victim(rng)
        self._note(f"{victim.name} is killed")
        self._world.kill(victim.process)

    def replica_crashes(self, rng: random.Random) -> None:
        """It dies while the answer to one of its next writes is on its way."""
        victim = self._victim(rng)
        likely = rng.choice((0.05, 0.3))
        self._note(f"{victim.name} will crash")
        victim.link.crash = lambda method: method != "GET" and rng.random() < likely
        self._world.sleep(20)
        self._calm(victim)

    def replica_stopped(self, rng: random.Random) -> None:
        victim = self._victim(rng)
        self._note(f"{victim.name} is asked to stop")
        victim.stop.set()

    def replica_suspended(self, rng: random.Random) -> None:
        victim = self._victim(rng)
        process = victim.process
        seconds = rng.choice((1, 8, 40)) * rng.random()
        self._note(f"{victim.name} is suspended for {seconds:.0f} s")
        process.suspended = True
        self._world.sleep(seconds)
        process.suspended = False
