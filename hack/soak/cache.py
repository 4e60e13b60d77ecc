"""Hours of informers: random writes under everything that can go wrong between them and the server.

Promises:

- soon after the faults have stopped (`settle_bound`) the store, and what handlers were told, equal the
  server;
- for each object, handlers hear of a first version, then newer ones of the same uid, then its end; each once;
- an own write is seen by the next read, and nothing older replaces it; what was deleted does not come back;
- however bad it gets, a watched scope costs at most `REQUESTS_A_MINUTE` requests;
- no thread dies, and objects that cannot be read are reported, and nothing else is.

Faults: cut, silent, broken and expired watches, watches without bookmarks, lost and truncated answers,
refused and reset connections, 401, 403, 429, 5xx, 504, latency, stale lists, a forgotten history, a server
that is away and comes back with its data, without, or with those of a backup; a CRD that is missing for a
while; rights and tokens that are taken away; a network that is cut."""

from __future__ import annotations

import random
from collections import deque
from functools import partial
from typing import Any

from kubeloop.cache import Informer
from kubeloop.client import ApiError, Client, MergePatch, NotFound, TransportError
from kubeloop.model import DynamicObject
from kubeloop.sandbox import Sandbox, SandboxError, User

from .actors import Process, ProcessClock
from .cachetroubles import Troubles, settle_bound
from .gadgets import CRD, MAPS, NAMES, NAMESPACES, Gadget, Judge, Tokens
from .harness import Result, Worst, source, world
from .network import Link, Network, SimulatedTransport
from .simulation import Simulation

REQUESTS_A_MINUTE = 75
"""A watch that the server ends after a second, as often as it likes, may be opened anew: one a second. All
other troubles are slower."""


class Day:
    """The server, its users, the informers, and what happens to them."""

    def __init__(self, world: Simulation, seed: int, worst: Worst) -> None:
        self.world = world
        self.seed = seed
        self.worst = worst
        self.rng = source(seed, "faults")
        robot = User("robot")
        self.tokens = Tokens()
        self.forbidden = False
        self.sandbox = Sandbox(
            clock=world,
            seed=seed,
            history=self.rng.choice((50, 300, 10_000)),
            tokens={"token-1": robot, "admin": User("admin", ("system:masters",))},
            authorizer=lambda asked: asked.user.name != "robot" or not self.forbidden,
        )
        self.sandbox.start()
        self.furnish()
        self.process = Process("operator")
        self.clock = ProcessClock(world, self.process, offset=1000.0)
        self.network = Network(world)
        self.link = Link(source(seed, "link"))
        self.writer_link = Link(source(seed, "writer-link"))
        client = self.client(self.link, "informers")
        self.gadgets = Informer(client, Gadget, clock=self.clock, rng=source(seed, "gadgets"))
        self.maps = Informer[DynamicObject](
            client,
            MAPS,
            namespaces=NAMESPACES,
            clock=self.clock,
            streaming=self.rng.random() < 0.5,
            rng=source(seed, "maps"),
        )
        self.troubles = Troubles(self)
        self.judges = {"gadgets": Judge(world, "gadgets"), "configmaps": Judge(world, "configmaps")}
        world.checks += [judge.check for judge in self.judges.values()]
        self.gadgets.add_handler(self.judges["gadgets"].hear)
        self.maps.add_handler(self.judges["configmaps"].hear)
        self.quiet = False
        """Whether users, and faults, pause."""
        self.stale = False
        self.epoch = 0
        self.writes = 0

    def client(self, link: Link, agent: str) -> Client:
        """A client of the process."""
        inner = self.sandbox.transport()
        transport = SimulatedTransport(self.network, self.process, link, inner)
        return Client(transport, credentials=self.tokens, clock=self.clock, user_agent=agent)

    def furnish(self) -> None:
        """What has to be there for anything to be written."""
        for name in NAMESPACES:
            self.sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self.sandbox.apply(CRD)

    def note(self, text: str) -> None:
        self.world.history.note("fault", text)

    # Users

    def user(self, rng: random.Random) -> None:
        """Somebody who creates, changes and deletes."""
        while True:
            self.world.sleep(rng.expovariate(1 / rng.choice((0.3, 3.0, 3.0, 10.0))))
            if not self.quiet:
                try:
                    self._write(rng)
                except SandboxError:
                    continue  # the CRD is missing, or the object there already

    def _write(self, rng: random.Random) -> None:
        gadget = rng.random() < 0.5
        resource = "gadgets.soak.example.com" if gadget else "configmaps"
        namespace, name = rng.choice(NAMESPACES), f"n{rng.randrange(NAMES)}"
        self.writes += 1
        if rng.random() < 0.3:
            self.sandbox.delete(resource, name, namespace)
            return
        size: Any = "unreadable" if rng.random() < 0.1 else self.writes
        content = {"spec": {"size": size}} if gadget else {"data": {"n": str(self.writes)}}
        if self.sandbox.get(resource, name, namespace) is not None:
            self.sandbox.patch(resource, name, content, namespace)
            return
        kind = {"apiVersion": "soak.example.com/v1", "kind": "Gadget"}
        head = kind if gadget else {"apiVersion": "v1", "kind": "ConfigMap"}
        self.sandbox.create({**head, "metadata": {"name": name, "namespace": namespace}, **content})

    def own_writer(self, rng: random.Random) -> None:
        """Writes of the process itself, each of which it must see at once and from then on (D3)."""
        client, store = self.client(self.writer_link, "writer"), self.maps.store
        last: dict[str, tuple[int, int]] = {}  # key: version (0: deleted) and in which epoch
        while True:
            self.world.sleep(rng.expovariate(0.5))
            if self.quiet:
                continue
            key = f"{rng.choice(NAMESPACES)}/own-{rng.randrange(3)}"
            self._look(key, last)
            namespace, _, name = key.partition("/")
            epoch = self.epoch
            try:
                if rng.random() < 0.3:
                    known = store.get(key)
                    if known is None:
                        continue
                    client.delete(MAPS, name, namespace, uid=known.uid)
                    store.forget(key, uid=known.uid)
                    version = 0
                else:
                    answer = self._put(client, name, namespace)
                    store.write_through(answer)
                    version = int(answer["metadata"]["resourceVersion"])
            except (ApiError, TransportError):
                last.pop(key, None)  # it may have been carried out
                continue
            last[key] = (version, epoch)
            if epoch == self.epoch:
                self._look(key, last)

    def _put(self, client: Client, name: str, namespace: str) -> dict[str, Any]:
        data = {"data": {"n": str(self.world.time)}}
        try:
            return client.patch(MAPS, name, namespace, MergePatch(data)).object
        except NotFound:
            head = {"apiVersion": "v1", "kind": "ConfigMap"}
            return client.create(MAPS, {**head, "metadata": {"name": name, "namespace": namespace}, **data})

    def _look(self, key: str, last: dict[str, tuple[int, int]]) -> None:
        version, epoch = last.get(key, (0, -1))
        if epoch != self.epoch or self.stale:
            return
        found = self.maps.store.version_of(key)
        if version:
            assert found >= version, f"{key} was written as {version}, and is read as {found or 'gone'}"
        else:
            assert not found, f"{key} was deleted, and is read as {found}"

    # What must hold

    def end_faults(self) -> None:
        """All of them, whoever made them."""
        self.sandbox.faults.clear()
        self.sandbox.faults.wake()
        self.forbidden = False
        for link in (self.link, self.writer_link):
            link.there, link.back, link.base = 0.0, 0.0, 0.004

    def differences(self) -> list[str]:
        """Between the server on one side, stores and handlers on the other."""
        found: list[str] = []
        watched: list[tuple[str, Informer[Any]]] = [
            ("gadgets.soak.example.com", self.gadgets),
            ("configmaps", self.maps),
        ]
        for resource, informer in watched:
            there, bad = {}, set()
            for namespace in NAMESPACES:
                for obj in self.sandbox.list(resource, namespace):
                    metadata = obj["metadata"]
                    key = f"{namespace}/{metadata['name']}"
                    if (obj.get("spec") or {}).get("size") == "unreadable":
                        bad.add(key)
                    else:
                        there[key] = (metadata["uid"], int(metadata["resourceVersion"]))
            judge = self.judges[resource.partition(".")[0]]
            # Of what cannot be read any more handlers hear nothing, not even that.
            told = {key: state for key, state in judge.told.items() if key not in bad}
            held = {each.key: (each.uid, each.resource_version) for each in informer.store.list()}
            pairs = (("store", held), ("handlers", told))
            found += [f"{resource} {who}: {_difference(there, what)}" for who, what in pairs if what != there]
            if (known := set(informer.undecodable)) != bad:
                found.append(f"{resource} unreadable: {known} instead of {bad}")
        return found

    def compare(self) -> None:
        """Raise unless everybody agrees with the server."""
        found = self.differences()
        assert not found, "\n".join(found)

    def bounded(self) -> None:
        """No scope may ask too often."""
        for scope, asked in self.asked.items():
            while asked and asked[0] <= self.world.time - 60:
                asked.popleft()
            self.worst.keep(
                "requests a minute", len(asked), REQUESTS_A_MINUTE, f"requests for {scope} in a minute"
            )

    asked: dict[str, deque[float]]

    def count_requests(self) -> None:
        """Have the link tell of each request."""
        self.asked = {}

        def count(target: str) -> None:
            self.asked.setdefault(target.partition("?")[0], deque()).append(self.world.time)
            self.bounded()

        self.link.asked = count

    def run(self, minutes: float) -> None:
        """Storms, and after each of them a look whether all is well."""
        self.count_requests()
        self.world.spawn("start", self.gadgets.start, self.process)
        self.world.spawn("start", self.maps.start, self.process)
        for number in range(2):
            self.world.spawn(f"user-{number}", partial(self.user, source(self.seed, f"user-{number}")))
        for number in range(3):
            self.world.spawn(
                f"trouble-{number}", partial(self.troubles.live, source(self.seed, f"trouble-{number}"))
            )
        own = source(self.seed, "own")
        self.world.spawn("own-writer", partial(self.own_writer, own), self.process)
        while self.world.time < minutes * 60:
            self.world.sleep(min(300 + self.rng.random() * 600, minutes * 60 - self.world.time))
            while self.quiet:
                self.world.sleep(1.0)
            self.calm()
        self.gadgets.stop()
        self.maps.stop()
        assert self.gadgets.join(5), "an informer does not stop"
        assert self.maps.join(5), "an informer does not stop"

    def calm(self) -> None:
        """No faults, no users: soon everybody agrees."""
        self.quiet = True
        # A fault that is under way ends by itself; the server has to be there, and its CRD.
        while self.sandbox.api.stopped:
            self.world.sleep(1.0)
        self.troubles.restore_crd()
        self.end_faults()
        new = f"token-{self.rng.random()}"
        self.sandbox.access.tokens[new] = User("robot")
        self.tokens.current = new
        self.note("calm")
        began = self.world.time
        agreed: float | None = None
        while self.world.time < began + settle_bound():
            self.end_faults()
            self.world.sleep(1.0 if agreed is None else 10.0)
            if self.differences():
                agreed = None
            elif agreed is None:
                agreed = self.world.time - began
        self.compare()
        self.worst.keep("settled after", agreed or 0.0, settle_bound(), "settled after")
        assert self.gadgets.handler_errors == self.maps.handler_errors == 0
        self.quiet = False


def _difference(there: dict[str, tuple[str, int]], here: dict[str, tuple[str, int]]) -> str:
    keys = sorted(key for key in {*there, *here} if there.get(key) != here.get(key))
    return ", ".join(f"{key} is {there.get(key)}, not {here.get(key)}" for key in keys[:5])


def soak(seed: int, minutes: float) -> Result:
    """Informers for an hour."""
    worst = Worst()
    with world("cache", seed) as it:
        day = Day(it, seed, worst)
        day.run(minutes)
        day.sandbox.check()
        counts = dict(it.history.counts)
        counts["writes"] = day.writes
        counts["lists"] = day.gadgets.lists + day.maps.lists
        counts["watches"] = day.gadgets.watches + day.maps.watches
        day.sandbox.stop()
    return Result(it.history.digest, counts, worst.values)
