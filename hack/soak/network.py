"""Between a simulated process and the sandbox: a network that loses, delays and delivers late.

A request travels on an actor of its own. So it arrives, and is carried out, also when its sender has given
up, was suspended or killed meanwhile: the cases in which a client does not know what became of a write."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubeloop.sandbox.inprocess import InProcessStream, InProcessTransport

from .actors import Killed, Process
from .simulation import Simulation

LOST = math.inf


@dataclass(eq=False)
class Link:
    """How the network treats one process at present. Seconds, each way; `LOST` never arrives."""

    rng: random.Random
    there: float = 0.0
    back: float = 0.0
    base: float = 0.004
    """On top of both comes something up to this."""
    crash: Callable[[str], bool] = field(default=lambda _method: False)
    """Asked when the server has answered a request of this method; true kills the process."""
    asked: Callable[[str], None] = field(default=lambda _target: None)
    """Told of each request that is sent."""

    def draw(self) -> tuple[float, float]:
        """How long this request takes to get there, and its answer back."""
        jitter = self.rng.random() * self.base, self.rng.random() * self.base
        return self.there + jitter[0], self.back + jitter[1]


class Network:
    """The threads on which requests travel."""

    def __init__(self, world: Simulation) -> None:
        self.world = world
        self._idle: list[_Carrier] = []

    def carry(self, job: _Job) -> None:
        """Have somebody carry it."""
        carrier = self._idle.pop() if self._idle else _Carrier(self)
        carrier.take(job)

    def free(self, carrier: _Carrier) -> None:
        """It has nothing more to do."""
        self._idle.append(carrier)


class _Job:
    """A request on its way. Its sender waits on `condition`."""

    def __init__(self, there: float, back: float, perform: Callable[[], Any]) -> None:
        self.there = there
        self.back = back
        self.perform = perform
        self.condition = threading.Condition()
        self.done = False
        self.answer: Any = None
        self.error: OSError | None = None
        self.dropped: Callable[[Any], None] = lambda _answer: None
        """Given the answer if nobody waits for it any more."""
        self.abandoned = False
        self.answered: Callable[[], None] = lambda: None
        """Called when the server has answered, before the answer is on its way."""


class _Carrier:
    def __init__(self, network: Network) -> None:
        self._network = network
        self._condition = threading.Condition()
        self._job: _Job | None = None
        network.world.spawn("wire", self._run)

    def take(self, job: _Job) -> None:
        with self._condition:
            self._job = job
            self._condition.notify_all()

    def _run(self) -> None:
        while True:
            with self._condition:
                while self._job is None:
                    self._condition.wait()
                job, self._job = self._job, None
            self._carry(job)
            self._network.free(self)

    def _carry(self, job: _Job) -> None:
        world = self._network.world
        if job.there == LOST:
            return
        world.sleep(job.there)
        try:
            job.answer = job.perform()
        except OSError as error:
            job.error = error
        job.answered()
        if job.back != LOST:
            world.sleep(job.back)
            with job.condition:
                job.done = True
                job.condition.notify_all()
        if (job.abandoned or job.back == LOST) and job.answer is not None:
            job.dropped(job.answer)


class SimulatedTransport:
    """A `kubeloop.client.Transport` of one process; `inner` is the sandbox's."""

    def __init__(self, network: Network, process: Process, link: Link, inner: InProcessTransport) -> None:
        self._network = network
        self._world = network.world
        self._process = process
        self.link = link
        self._inner = inner

    def request(
        self, method: str, target: str, *, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Any:
        """One request."""
        return self._exchange(
            method,
            target,
            timeout,
            lambda: self._inner.request(method, target, headers=headers, body=body, timeout=timeout),
            lambda _answer: None,
        )

    def stream(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str],
        connect_timeout: float,
        read_timeout: float,
    ) -> SimulatedStream:
        """Begin a request whose answer comes bit by bit."""
        inner: InProcessStream = self._exchange(
            method,
            target,
            connect_timeout,
            lambda: self._inner.stream(
                method, target, headers=headers, connect_timeout=connect_timeout, read_timeout=read_timeout
            ),
            InProcessStream.close,
        )
        return SimulatedStream(self._world, self.link, inner, read_timeout)

    def close(self) -> None:
        """Nothing is kept open."""

    def _exchange(
        self,
        method: str,
        target: str,
        timeout: float,
        perform: Callable[[], Any],
        dropped: Callable[[Any], None],
    ) -> Any:
        if self._process.killed:
            raise Killed
        self.link.asked(target)
        there, back = self.link.draw()
        job = _Job(there, back, perform)
        job.dropped = dropped
        job.answered = lambda: self._may_crash(method)
        self._network.carry(job)
        deadline = self._world.time + timeout
        try:
            with job.condition:
                while not job.done:
                    left = deadline - self._world.time
                    if left <= 0:
                        raise TimeoutError(f"no answer within {timeout:g} s")
                    job.condition.wait(left)
        except BaseException:
            job.abandoned = True
            raise
        if job.error is not None:
            raise job.error
        return job.answer

    def _may_crash(self, method: str) -> None:
        if not self._process.killed and self.link.crash(method):
            self._world.history.note(
                "crash", f"{self._process.name} dies while the answer to a {method} is on its way"
            )
            self._world.kill(self._process)


class SimulatedStream:
    """An answer that comes bit by bit, with a watch's patience."""

    def __init__(self, world: Simulation, link: Link, inner: InProcessStream, read_timeout: float) -> None:
        self._world = world
        self._link = link
        self._inner = inner
        self._read_timeout = read_timeout
        self._closed = False
        self.status = inner.status
        self.headers = inner.headers

    def set_read_timeout(self, seconds: float) -> None:
        """Change the silence that is allowed."""
        self._read_timeout = seconds

    def chunks(self) -> Iterator[bytes]:
        """What comes. Nothing does while the network is cut, but it is not lost."""
        heard = self._world.time
        while not self._closed:
            cut = self._link.back == LOST
            lines = [] if cut else self._inner.poll()
            if lines is None:
                return
            if lines:
                heard = self._world.time
                yield b"".join(lines)
                continue
            left = heard + self._read_timeout - self._world.time
            if left <= 0:
                raise TimeoutError(f"nothing came for {self._read_timeout:g} s")
            if cut:
                self._world.sleep(min(left, 1.0))
            else:
                self._inner.wait(min(left, 5.0))

    def close(self) -> None:
        """End it, and whoever waits for it."""
        self._closed = True
        self._inner.close()
